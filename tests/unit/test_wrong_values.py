"""Values that cannot be are told of in our own words, wherever they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmbu_async.cli.main import main
from mmbu_async.config import RunConfig, load_config
from mmbu_async.errors import ConfigError

FOREIGN = (
    "input should",
    "input is",
    "dictionary",
    "instance",
    "tuple",
    "boolean",
    "string",
    "parse",
    "<class",
)
"""Words of a library that reads the settings, not of anybody who writes them."""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('rpm = "fast"', "setting 'rpm' = 'fast': must be a number."),
        ("limit = 0", "setting 'limit' = 0: must be at least 1."),
        ("concurrency = 1.5", "setting 'concurrency' = 1.5: must be a whole number."),
        ("concurrency = 99999", "setting 'concurrency' = 99999: must be at most 10,000."),
        ("timeout = 0", "setting 'timeout' = 0: must be more than 0."),
        ("max_cost = inf", "setting 'max_cost' = inf: must be a finite number."),
        ("seed = 1e30", "setting 'seed' = 1e+30: must be a whole number of at most 64 bits."),
        ('stream = "maybe"', "setting 'stream' = 'maybe': must be true or false."),
        ('synchronous = "slow"', "setting 'synchronous' = 'slow': must be 'full' or 'normal'."),
        ("store = 5", "setting 'store' = 5: must be the name of a file."),
        ("model = 3", "setting 'model' = 3: must be a text (in quotes, where it stands in a file)."),
        ('model = ""', "setting 'model' = '': must not be empty."),
        ("task = 5", "setting 'task' = 5: must be a list."),
        ("where = 3", "setting 'where' = 3: must be a table of names and values."),
        ("params = 5", "setting 'params': must be a table of names and values."),
        ("judge = 5", "setting 'judge' = 5: must be a table of settings."),
        ("panel = [5]", "setting 'panel.1' = 5: must be a table of settings."),
    ],
)
def test_a_settings_file(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "night.toml"
    file.write_text(line if line.startswith("model") else f'model = "m"\n{line}')
    with pytest.raises(ConfigError) as caught:
        load_config({}, file=file, environment={})
    assert str(caught.value) == f"{file}: {said}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["view", "r", "--port", "99999"], "Invalid value for '--port': must be at most 65,535;"),
        (["demo", "--rows", "few"], "Invalid value for '--rows': must be a whole number;"),
        (["demo", "--rows", "2"], "Invalid value for '--rows': must be at least 5;"),
        (["run", "--model", "m", "--rpm", "fast"], "Invalid value for '--rpm': must be a number;"),
    ],
)
def test_a_command_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["mmbu", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", sorted(set(RunConfig.model_fields)))
def test_no_setting_is_told_of_in_foreign_words(name: str) -> None:
    values: tuple[object, ...] = (5, -1, "no such", 1e30, None, [], [[]], {"a": 1}, float("nan"), "")
    for value in values:
        try:
            load_config({"model": "m", name: value}, environment={})
        except ConfigError as error:
            said = str(error).partition(": ")[2].replace(repr(value), "")
            assert not any(word in said.lower() for word in FOREIGN), said
