"""Every command in README.md and docs/ does what it says: it is parsed by the real program, and run."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main

from mmbu_async.cli.main import app
from mmbu_async.simulator.command import parser as simulator_flags
from mmbu_async.simulator.demo import draw_split
from tests.docs_pages import AT_LENGTH, GIVEN, REASONS, Page, commands, pages, read, staged
from tests.docs_stage import Stage, simulated

PAGES = pages()
_each = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
_LONGEST_S = 3600.0 if os.environ.get(AT_LENGTH) else 570.0


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("stage")
    draw_split(folder / "data", rows=24, seed=0)
    simulator, url = simulated(folder)
    stage = Stage(folder / "s", url, folder / "data")
    try:
        yield stage
    finally:
        stage.close()
        simulator.terminate()
        simulator.communicate()


@_each
def test_commands_run(page: Page, stage: Stage, tmp_path: Path) -> None:
    if not any(block.runs for block in page.blocks):
        pytest.skip("; ".join(dict.fromkeys(block.reason for block in page.blocks)))
    script, files = staged(page, stage.simulator)
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    played = stage.play(script, tmp_path, timeout_s=_LONGEST_S)
    assert played.returncode == 0, f"{page.name} ended with {played.returncode}:\n{played.stdout[-6000:]}"


@_each
def test_commands_parse(page: Page) -> None:
    """Also those that are not run: a flag that was renamed is found here."""
    for line, text in commands(page.blocks):
        for arguments in _calls_of_mmbu(text):
            try:
                _parse(arguments)
            except Exception as error:
                raise AssertionError(
                    f"{page.name}:{line}: {shlex.join(['mmbu', *arguments])}: {error}"
                ) from error


@_each
def test_marks(page: Page) -> None:
    """A block is left out for a reason that is known, and no block of commands hides under another name."""
    assert not page.odd, "write commands as ```bash"
    for block in page.blocks:
        assert block.how == "run" or block.reason.startswith(REASONS), (
            f"{page.name}:{block.line}: {block.reason}"
        )


def test_what_is_given_belongs_to_a_page() -> None:
    names = {page.name.removesuffix(".md").replace("/", ".") for page in PAGES}
    assert {file.stem for file in GIVEN.glob("*.sh")} <= names


def test_a_page_that_is_wrong_is_found(stage: Stage, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```bash\nmmbu status --sotre x\n```\n\n<!-- not run: needs Docker -->\n```bash\nfalse\n```\n"
    )
    blocks = read(page).blocks
    assert [(block.line, block.how, block.reason) for block in blocks] == [
        (1, "run", ""),
        (6, "not run", "needs Docker"),
    ]
    [(line, text)] = commands(blocks[:1])
    assert line == 2
    [arguments] = _calls_of_mmbu(text)
    with pytest.raises(Exception, match="--sotre"):
        _parse(arguments)
    played = stage.play("set -e\n" + blocks[0].text, tmp_path, timeout_s=60)
    assert played.returncode == 2
    assert "--sotre" in played.stdout


_BEFORE = ("time", "exec", "env", "do", "then", "else", "!", "{", "systemd-inhibit", "nohup")
"""Words after which a command begins."""


def _calls_of_mmbu(text: str) -> list[list[str]]:
    """Arguments of each call of the program in a line of bash."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split = True
    calls: list[list[str]] = []
    current: list[str] | None = None
    skip, beginning = False, True
    for token in lexer:
        if skip or (token[0] in "<>" and not token.strip("<>&")):
            # A redirection and its file are the shell's.
            skip = not skip
        elif not token.strip("|&;()"):
            current, beginning = None, True
        elif current is not None:
            current.append(token)
        elif beginning and (token == "mmbu" or token.endswith("/mmbu")):
            calls.append(current := [])
        else:
            beginning = beginning and (token in _BEFORE or "=" in token or token.startswith("-"))
    return calls


def _parse(arguments: list[str]) -> None:
    """As far as the command itself, which is not called."""
    if arguments[:1] == ["simulate"]:
        try:
            simulator_flags().parse_args([re.sub("…", "1", argument) for argument in arguments[1:]])
        except SystemExit as ended:
            raise ValueError("the simulator has no such flags") from ended
        return
    command = typer.main.get_command(app)
    context = None
    while True:
        try:
            context = command.make_context(command.name or "mmbu", list(arguments), parent=context)
        except typer.Exit:
            return
        resolve = getattr(command, "resolve_command", None)
        arguments = [*getattr(context, "_protected_args", ()), *context.args]
        if resolve is None:
            return
        _, command, arguments = resolve(context, arguments)
