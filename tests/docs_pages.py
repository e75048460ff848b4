"""The commands of README.md and docs/: which blocks there are, and what becomes of each.

    python -m tests.docs_pages            lists every block that is not run with its page, and why

A page is run as it stands, from top to bottom in one shell, in a folder of its own. What it takes as given
comes from `tests/docs/given/PAGE.sh`, which is run before it; its lines `#: WORD=TEXT` say what stands for
a word of the page. A block that begins with `# NAME.toml`, or has the title NAME, is the file of that name.
Over a block of commands a comment can say `<!-- not run: REASON -->` (it never is) or `<!-- run at length:
REASON -->` (it is with MMBU_DOCS_AT_LENGTH=1).
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
GIVEN = Path(__file__).parent / "docs" / "given"
AT_LENGTH = "MMBU_DOCS_AT_LENGTH"
SHELLS = ("bash",)
"""The one name of a language under which commands stand; others would escape the tests."""
REASONS = (
    "needs Docker",
    "needs systemd",
    "needs a cluster",
    "needs a run at work",
    "needs a GPU",
    "needs several machines",
    "needs a checkout's environment",
    "needs the published package",
    "needs a benchmark's own data",
    "needs a maker's own service",
    "is run by .ci/run",
    "changes this shell",
    "takes minutes",
)
"""How a reason can begin. Another one is a decision, and belongs here first."""
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w-]*)(?P<more>[^\n]*)\n(?P<text>.*?)^(?P=indent)```\s*$",
    re.DOTALL | re.MULTILINE,
)
_MARK = re.compile(r"<!-- (?P<how>not run|run at length): (?P<reason>[^>]+?) -->\s*\Z")
_FILE = re.compile(r"\A# (?P<name>[\w./-]+\.(?:toml|csv|yaml))\b[^\n]*\n")
_TITLE = re.compile(r'title="(?P<name>[^"]+)"')
_ADDRESS = re.compile(r"(https?://(?:localhost|127\.0\.0\.1)):(\d+)")
_PORT = re.compile(r"(--(?:\w+-)*port[ =])(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Commands that stand together on a page."""

    line: int
    text: str
    how: str = "run"
    reason: str = ""

    @property
    def runs(self) -> bool:
        return self.how == "run" or (self.how == "run at length" and bool(os.environ.get(AT_LENGTH)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page with its commands, and the files that it shows."""

    path: Path
    blocks: tuple[Block, ...]
    files: dict[str, str] = field(default_factory=dict)
    odd: tuple[str, ...] = ()
    """Blocks of commands under another name than `bash`."""

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def given(self) -> str:
        """The script of what the page takes as given, '' if it takes nothing."""
        file = GIVEN / f"{self.name.removesuffix('.md').replace('/', '.')}.sh"
        return file.read_text("utf-8") if file.exists() else ""


def pages() -> list[Page]:
    """README.md and every page under docs/ and docker/ that has commands."""
    found = [
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "docker").rglob("*.md")),
    ]
    return [page for page in map(read, found) if page.blocks or page.odd]


def read(path: Path) -> Page:
    text = path.read_text("utf-8")
    blocks, files, odd = [], {}, []
    for fence in _FENCE.finditer(text):
        language, body = fence["language"], _dedented(fence["text"], fence["indent"])
        line = text.count("\n", 0, fence.start()) + 1
        if language in ("sh", "shell", "console", "zsh"):
            odd.append(f"{path}:{line}: ```{language}")
        elif language in SHELLS:
            mark = _MARK.search(text, 0, fence.start())
            how = {"how": mark["how"], "reason": " ".join(mark["reason"].split())} if mark else {}
            blocks.append(Block(line=line, text=body, **how))
        elif (named := _FILE.match(body) or _TITLE.search(fence["more"])) is not None:
            files[named["name"]] = body
    return Page(path=path, blocks=tuple(blocks), files=files, odd=tuple(odd))


def _dedented(text: str, indent: str) -> str:
    return "".join(line.removeprefix(indent) for line in text.splitlines(keepends=True))


def staged(page: Page, simulator: str) -> tuple[str, dict[str, str]]:
    """The page for bash, and its files. Ports at which it serves become free ones, in its files too; other
    addresses of this machine are the simulator's."""
    blocks = [block for block in page.blocks if block.runs]
    text = "".join(f"\necho '--- line {block.line}' >&2\n{block.text}" for block in blocks)
    ports = {port: str(_free_port()) for _, port in _PORT.findall(text) if port != "0"}

    def addressed(text: str) -> str:
        return _ADDRESS.sub(lambda at: f"{at[1]}:{ports[at[2]]}" if at[2] in ports else simulator, text)

    whole = page.given + text
    for word, meant in re.findall(r"^#: (\S+)=(.*)$", page.given, re.MULTILINE):
        whole = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", meant.replace("\\", r"\\"), whole)
    whole = _PORT.sub(lambda found: found[1] + ports.get(found[2], found[2]), addressed(whole))
    whole = whole.replace("=…", "=sk-of-the-stage-0123456789").replace(".venv/bin/", "")
    files = {name: addressed(content) for name, content in page.files.items()}
    return "set -euo pipefail\n" + whole, files


def commands(blocks: Iterable[Block]) -> Iterator[tuple[int, str]]:
    """Every command line with its line's number; continued lines are one."""
    for block in blocks:
        joined, start = "", 0
        for offset, line in enumerate(block.text.splitlines(), 1):
            start = start or offset
            joined += line
            if joined.endswith("\\"):
                joined = joined[:-1] + " "
            elif _open_quote(joined):
                joined += "\n"
            else:
                yield block.line + start, joined
                joined, start = "", 0


def _open_quote(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return True
    return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def main() -> None:
    """Each block that is not run, and the sums."""
    counted = {"run": 0, "run at length": 0, "not run": 0}
    for page in pages():
        for block in page.blocks:
            counted[block.how] += 1
            if block.how != "run":
                sys.stdout.write(f"{page.name}:{block.line}: {block.how}: {block.reason}\n")
    sys.stdout.write(", ".join(f"{how}: {count}" for how, count in counted.items()) + "\n")


if __name__ == "__main__":
    main()
