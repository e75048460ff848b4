"""Shells complete commands, flags and the names of runs and benchmarks, and wait for no slow import."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import StoreKit

_SCRIPT = f"""#!{sys.executable}
import atexit, os, sys
from mmbu_async.__main__ import main
def told():
    open(os.environ["LOADED"], "w").write(" ".join(sys.modules))
atexit.register(told)
main()
"""
SLOW = {"scipy", "pyarrow", "datasets", "matplotlib", "aiohttp", "pandas"}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """`mmbu` as an installed script has it: the shells' functions go by its name."""
    file = tmp_path / "bin" / "mmbu"
    file.parent.mkdir()
    file.write_text(_SCRIPT)
    file.chmod(0o755)
    return file


@pytest.fixture
def store(kit: StoreKit) -> Path:
    with kit.open() as store:
        kit.begin(store, name="night")
        kit.begin(store, name="noon")
        kit.begin(store, name="other")
    return kit.path


def completed(program: Path, shell: str, line: str) -> list[str]:
    """What the shell is told for a line that ends where the cursor is."""
    words = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
        "fish": {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    done = subprocess.run(
        [program],
        env=os.environ
        | words
        | {"_MMBU_COMPLETE": f"complete_{shell}", "LOADED": str(program.with_suffix(".loaded"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    loaded = set(program.with_suffix(".loaded").read_text().split())
    assert not loaded & SLOW
    lines = done.stdout.strip().splitlines()
    if shell == "zsh":
        # _arguments '*: :(("night":"m" ...))'
        return [one.partition("((")[2] or one for one in lines]
    return [one.partition("\t")[0] for one in lines]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_runs_and_benchmarks(program: Path, store: Path, shell: str) -> None:
    def offers(line: str) -> str:
        return " ".join(completed(program, shell, line))

    assert "rejudge" in offers("mmbu rej")
    assert "--max-cost" in offers("mmbu run --max-c")
    found = offers(f"mmbu report --store {store} n")
    assert "night" in found
    assert "noon" in found
    assert "other" not in found
    assert "mmbu-closed" in offers("mmbu run mmbu-c")


@pytest.mark.parametrize(
    "command", ["resume", "compare", "export", "view", "status", "pause", "judges", "plan"]
)
def test_every_command_that_takes_a_run_offers_it(program: Path, store: Path, command: str) -> None:
    assert completed(program, "bash", f"mmbu {command} --store {store} ot") == ["other"]


def test_what_cannot_be_read_completes_to_nothing(program: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"no store of ours" * 100)
    for path in (broken, tmp_path / "missing.sqlite", tmp_path):
        assert completed(program, "bash", f"mmbu report --store {path} n") == []
    assert not (tmp_path / "missing.sqlite").exists()


def test_bash_itself(program: Path, store: Path, tmp_path: Path) -> None:
    """The function that `--show-completion` prints, in the shell it is for."""
    bash = shutil.which("bash")
    assert bash is not None
    script = (
        'source <("$MMBU" --show-completion); COMP_WORDS=("$MMBU" report ni); COMP_CWORD=2; '
        '_mmbu_completion "$MMBU"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    own = {"MMBU": str(program), "MMBU_STORE": str(store), "LOADED": str(tmp_path / "loaded")}
    done = subprocess.run(
        [bash, "-c", script], env=os.environ | own, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("night\n", "")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_itself(program: Path, store: Path, tmp_path: Path) -> None:
    script = (
        'env _MMBU_COMPLETE=source_fish mmbu | source; complete -C "mmbu report ni"; complete -C "mmbu rej"'
    )
    own = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "MMBU_STORE": str(store),
        "LOADED": str(tmp_path / "loaded"),
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        ["fish", "-c", script], env=os.environ | own, capture_output=True, text=True, check=False
    )
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == ["night", "rejudge"]
