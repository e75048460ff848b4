"""Pages made when the site is built, so that they cannot drift: the commands, and files of other folders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
BORROWED = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "docker.md": "docker/README.md",
}
"""Pages of the site that are files of the repository outside of docs/."""
COMMANDS = "reference/cli.md"


def on_files(files: Any, config: Any) -> Any:
    """Called by MkDocs when it has listed its files."""
    from mkdocs.structure.files import File

    made = {name: (ROOT / path).read_text("utf-8") for name, path in BORROWED.items()} | {
        COMMANDS: commands()
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def commands() -> str:
    """Every command with its arguments and flags, as the program itself has them."""
    import typer.main

    from mmbu_async.cli.main import app
    from mmbu_async.simulator.command import parser

    intro = (
        "# Commands\n\nEvery flag of `run` is also a key of a settings file and an environment variable: "
        "`--max-cost`, `max_cost = 25`, `MMBU_MAX_COST=25`. `mmbu --install-completion` teaches your shell "
        "the names of commands, flags, runs and benchmarks.\n"
    )
    parts = [intro]
    for path, command in _walk("mmbu", typer.main.get_command(app)):
        if path == "mmbu simulate":
            body = f"{_prose(command.help)}\n\n```text\n{parser().format_help()}```\n"
        else:
            body = _described(path, command)
        parts.append(f"## {path}\n\n{body}")
    return "\n".join(parts)


def _walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if getattr(command, "hidden", False):
        return
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _walk(f"{path} {name}", child)


def _described(path: str, command: Any) -> str:
    import typer

    context = typer.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = [_prose(command.help), "", "```text", usage, "```", ""]
    panels: dict[str, list[str]] = {}
    for parameter in command.get_params(context):
        if getattr(parameter, "hidden", False):
            continue
        record = parameter.get_help_record(context)
        argument = parameter.param_type_name == "argument"
        names, text = record or (parameter.make_metavar(context), "")
        panel = getattr(parameter, "rich_help_panel", None) or ("Arguments" if argument else "Options")
        shown = _cell(getattr(parameter, "help", "") or text)
        panels.setdefault(panel, []).append(f"| `{_code(names)}` | {shown} |")
    for panel, rows in panels.items():
        lines += [f"| {panel} | |", "| --- | --- |", *rows, ""]
    if epilog := getattr(command, "epilog", None):
        lines += [_prose(epilog), ""]
    return "\n".join(lines)


def _prose(text: str | None) -> str:
    return re.sub(r"[ \t]*\n[ \t]*", "\n", (text or "").strip())


def _code(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _cell(text: str) -> str:
    return _code(text).replace("<", "&lt;").replace("[default:", "\\[default:")
