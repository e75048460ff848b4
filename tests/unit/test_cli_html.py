"""Pages from the command line: by name of the file or of the format."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mmbu_async.cli.main import app
from mmbu_async.errors import ConfigError
from tests.compared import make_runs
from tests.pages import read_page
from tests.stored_run import CONFIG, MakeRun

CURRENT = [{"config": {**CONFIG, "benchmark": "mmbu-public"}}] * 2


@pytest.fixture
def store(make_run: MakeRun) -> Path:
    found, _ = make_runs(make_run, "++-", "+-+", options=CURRENT)
    return found.path


def ask(*words: str, store: Path) -> str:
    result = CliRunner().invoke(app, [*words, "--store", str(store)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("command", [("report", "a"), ("compare", "a", "b")])
def test_a_page_is_printed_or_written_whole(command: tuple[str, ...], store: Path, tmp_path: Path) -> None:
    printed = ask(*command, "--format", "html", store=store)
    read_page(printed)
    file = tmp_path / "page.html"
    said = CliRunner().invoke(app, [*command, "--out", str(file), "--store", str(store)])
    assert (said.stdout, said.stderr) == ("", f"wrote {file}\n")
    assert file.read_text("utf-8") == printed


def test_the_file_of_flips_is_told_of(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "flips.csv"
    said = CliRunner().invoke(app, ["compare", "a", "b", "--flips", str(file), "--store", str(store)])
    assert said.stderr == f"wrote {file}\n"
    assert "wrote" not in said.stdout


def test_win_rates_are_a_page_too(store: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("base,adapted,training_size\na,b,10\n", encoding="utf-8")
    page = read_page(ask("compare", "--pairs", str(pairs), "--format", "html", store=store))
    assert "1. b from a" in page.text


def test_a_place_that_cannot_be_written_is_a_sentence(store: Path, tmp_path: Path) -> None:
    place = tmp_path / "missing" / "page.html"
    failed = CliRunner().invoke(app, ["report", "a", "--store", str(store), "--out", str(place)]).exception
    assert isinstance(failed, ConfigError)
    assert f"{place}: cannot be written" in str(failed)


def test_no_other_form_waits_for_the_drawing_library(store: Path) -> None:
    program = (
        "import sys; from typer.testing import CliRunner; from mmbu_async.cli.main import app; "
        f"CliRunner().invoke(app, ['report', 'a', '--store', {str(store)!r}], catch_exceptions=False); "
        "assert 'mmbu_async.report.text' in sys.modules; assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
