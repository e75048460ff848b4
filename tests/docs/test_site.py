"""The page of commands is made from the program, and the site's map has every page."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType
from typing import Any

import pytest
import typer
import typer.main

from mmbu_async.cli.main import app
from tests.docs_pages import ROOT


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs" / "_site" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_and_flag_is_on_the_page(hooks: ModuleType) -> None:
    parts = hooks.commands().split("\n## ")[1:]
    pages = {part.partition("\n")[0]: part for part in parts}
    command: Any = typer.main.get_command(app)
    for name, one in command.commands.items():
        page = pages[f"mmbu {name}"]
        for parameter in () if name == "simulate" else one.params:
            for flag in getattr(parameter, "opts", ()):
                assert not flag.startswith("--") or flag in page
    assert "--max-cost" in pages["mmbu run"]
    assert "US dollars" in pages["mmbu run"]
    assert "--fault" in pages["mmbu simulate"]
    assert "mmbu store merge" in pages


def test_every_page_is_on_the_map(hooks: ModuleType) -> None:
    listed = re.findall(r"- ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(there | {hooks.COMMANDS, *hooks.BORROWED})
