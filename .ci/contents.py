"""Fails where wheel or sdist lack a file of the repository that they must have, or have one too many.

    python .ci/contents.py dist

What they must have is what git knows: a template, a query or a prompt that is added cannot be forgotten.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

PACKAGE = "mmbu_async/"
AT_LEAST = {
    "mmbu_async/py.typed",
    "mmbu_async/store/schema.sql",
    "mmbu_async/store/queries.sql",
    "mmbu_async/images/limits.toml",
    "mmbu_async/makers.toml",
}
"""Files of each kind, so that an empty answer of git's is no proof."""


def tracked(*paths: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", *paths], capture_output=True, text=True, check=True)
    return set(listed.stdout.splitlines())


def compared(what: str, held: set[str], wanted: set[str], *, more: bool) -> list[str]:
    """Differences in words; `more`: further files are no mistake."""
    lacking = [f"{what} lacks {name}" for name in sorted(wanted - held)]
    return lacking + ([] if more else [f"{what} has {name} too many" for name in sorted(held - wanted)])


def main(folder: Path) -> int:
    [wheel] = folder.glob("*.whl")
    [sdist] = folder.glob("*.tar.gz")
    package = tracked(PACKAGE)
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        mistakes = compared("the wheel", {n for n in names if ".dist-info/" not in n}, package, more=False)
        if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
            mistakes.append("the wheel lacks its licence")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    wanted = package | tracked(
        "tests/", "benchmarks/", "docs/", "docker/", "*.md", "mkdocs.yml", "requirements.lock"
    )
    mistakes += compared("the sdist", held, wanted, more=True)
    mistakes += [f"the repository lacks {name}" for name in sorted(AT_LEAST - package)]
    for line in mistakes:
        sys.stdout.write(line + "\n")
    sys.stdout.write(f"{wheel.name}: {len(package)} files; {sdist.name}: {len(wanted)} files at least\n")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
