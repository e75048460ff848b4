"""Files that commands write, and flags that say one thing twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mmbu_async.cli.main import app
from mmbu_async.errors import ConfigError


def test_settings_that_cannot_be_written_are_a_sentence(tmp_path: Path) -> None:
    for place in (tmp_path / "missing" / "night.toml", tmp_path):
        failed = CliRunner().invoke(app, ["run", "--model", "m", "--write-config", str(place)]).exception
        assert isinstance(failed, ConfigError)
        assert f"{place}: cannot be written" in str(failed)


@pytest.mark.parametrize(
    "flags", [["--where", "stain=DAPI", "--where", " stain =H&E"], ["--param", "a=1", "--param", "a=1"]]
)
def test_one_name_has_one_value(flags: list[str]) -> None:
    failed = CliRunner().invoke(app, ["run", "--model", "m", "--dry-run", *flags]).exception
    assert isinstance(failed, ConfigError)
    assert "given twice" in str(failed)
