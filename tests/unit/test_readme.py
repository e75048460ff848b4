"""What the README shows can be typed: flags exist, settings are valid, the Python examples mean real data."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from mmbu_async import RunConfig
from mmbu_async.cli.main import app
from mmbu_async.config import build_config
from mmbu_async.simulator.command import main as simulate
from mmbu_async.sources import open_data
from mmbu_async.tasks import load
from mmbu_async.tasks.custom import from_toml

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


class AskedHubError(Exception):
    """The data were looked for where they are: on the hub."""


def ask_hub(*names: str) -> Any:
    raise AskedHubError


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands() -> list[tuple[str, set[str]]]:
    """Each `mmbu` command line of the README, and the flags on it."""
    lines = [line for block in blocks("bash") for line in block.replace("\\\n", " ").splitlines()]
    found = [re.match(r"(?:.*/)?mmbu (\w+)([^#]*)", line.strip()) for line in lines]
    return [(match[1], set(re.findall(r"--[\w-]+", match[2]))) for match in found if match]


def test_every_command_and_flag_exists(capsys: pytest.CaptureFixture[str]) -> None:
    known: Any = get_command(app)
    shown = commands()
    assert {name for name, _ in shown} > {"run", "resume", "simulate", "rejudge", "show", "export"}
    with pytest.raises(SystemExit):
        simulate(["--help"])
    of_simulate = set(re.findall(r"--[\w-]+", capsys.readouterr().out))
    for name, flags in shown:
        command = known.commands[name]
        leaves = getattr(command, "commands", {}).values() or [command]
        options = {option for leaf in leaves for parameter in leaf.params for option in parameter.opts}
        assert flags <= (of_simulate if name == "simulate" else options), name


def test_flags_in_the_text_exist() -> None:
    known: Any = get_command(app)
    options = {
        option
        for command in known.commands.values()
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    assert set(re.findall(r"`(--[\w-]+)", README)) <= options


def test_the_settings_file_is_valid() -> None:
    text, _ = blocks("toml")
    assert build_config(tomllib.loads(text)).judge.rpm == 1000.0


def test_the_benchmark_of_ones_own_is_valid() -> None:
    _, text = blocks("toml")
    assert from_toml(text, "README.md").name == "cells"


def test_the_python_examples_mean_data_that_can_be_opened() -> None:
    calls = [
        node
        for text in blocks("python")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "RunConfig"
    ]
    assert calls
    for call in calls:
        config = RunConfig(**{word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg})
        spec = load(config.benchmark).data
        with pytest.raises(AskedHubError):
            open_data(config.data, spec, load=ask_hub)
