"""Files that commands write, and flags that say one thing twice."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mmbu_async.cli.ends import complain
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


def test_the_words_of_others_in_an_error_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    complain("refused (\x1b[2J\x07\u202egnp)")
    assert capsys.readouterr().err == "error: refused (\\x1b[2J\\x07\\u202egnp)\n"


@pytest.fixture(autouse=True)
def _log_level() -> Iterator[None]:
    """A demo is quiet, in its process; this one goes on."""
    logger = logging.getLogger("mmbu_async")
    level = logger.level
    yield
    logger.setLevel(level)


def demo(folder: Path, *flags: str) -> BaseException | None:
    return CliRunner().invoke(app, ["demo", "--folder", str(folder), "--rows", "5", *flags]).exception


def test_a_demo_of_another_seed_wants_another_folder(tmp_path: Path) -> None:
    assert demo(tmp_path) is None
    assert demo(tmp_path) is None, "the same goes on"
    assert "name another folder with --folder" in str(demo(tmp_path, "--seed", "1"))


def test_a_demo_draws_over_no_other_data(tmp_path: Path) -> None:
    metadata = tmp_path / "data" / "metadata.jsonl"
    metadata.parent.mkdir()
    metadata.write_text('{"unique_id": "mine"}\n', encoding="utf-8")
    assert "no demo's" in str(demo(tmp_path))
    assert metadata.read_text(encoding="utf-8") == '{"unique_id": "mine"}\n'


def test_a_demo_that_cannot_be_drawn_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    failed = demo(tmp_path / "file")
    assert isinstance(failed, ConfigError)
    assert "cannot be written" in str(failed)


@pytest.mark.parametrize("code", [0, 3])
def test_a_reader_that_goes_away_changes_no_exit_code(code: int) -> None:
    program = f"""
import sys
from mmbu_async.cli.ends import screen
for _ in range(2):
    for number in range(20_000):
        screen().print(number)
sys.exit({code})
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == code
