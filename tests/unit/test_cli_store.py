"""Which store, run and benchmark a command means, and the commands it advises."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from mmbu_async.api import RunResult, rejudge_sync
from mmbu_async.cli import show
from mmbu_async.cli.main import app
from mmbu_async.config import JudgeConfig, RunConfig
from mmbu_async.errors import ConfigError, InterruptedRunError, MmbuError, RunNotFoundError
from mmbu_async.pipeline.changing import with_changes
from mmbu_async.store import RunCounts, Store

COUNTS = RunCounts(
    selected=3, completed=3, failed=0, pending=0, judged=2, unjudged=1, scored=2, by_verdict=2, to_judge=0
)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store that only the environment names."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "elsewhere.sqlite"
    with Store.open(path):
        pass
    monkeypatch.setenv("MMBU_STORE", str(path))
    return path


def test_the_environment_names_the_store_of_every_command(elsewhere: Path) -> None:
    listed = CliRunner().invoke(app, ["status"])
    assert listed.exit_code == 0
    assert "no runs yet" in listed.stdout
    for command in (["resume", "x"], ["rejudge", "x"], ["report", "x"], ["rescore", "x"], ["show", "x", "y"]):
        failed = CliRunner().invoke(app, command).exception
        assert isinstance(failed, RunNotFoundError)
        assert str(elsewhere) in str(failed)


def test_a_flag_wins_over_the_environment(elsewhere: Path, tmp_path: Path) -> None:
    for command in (["status"], ["resume", "x"]):
        failed = CliRunner().invoke(app, [*command, "--store", str(tmp_path / "other.sqlite")]).exception
        assert isinstance(failed, RunNotFoundError)
        assert "other.sqlite: there is no store here" in str(failed)


def test_the_file_names_the_benchmark_where_the_command_does_not(tmp_path: Path) -> None:
    file = tmp_path / "night.toml"
    file.write_text('model = "m"\nbenchmark = "no-such-benchmark"\n', encoding="utf-8")
    failed = CliRunner().invoke(app, ["run", "--config", str(file)]).exception
    assert isinstance(failed, ConfigError)
    assert "no-such-benchmark" in str(failed)


def advice(
    store: Path,
    *,
    stopped: MmbuError | None = None,
    rejudged: bool = False,
    tied: int = 0,
    counts: RunCounts = COUNTS,
) -> str:
    console = Console(file=io.StringIO(), width=80)
    result = RunResult(run="my run", store=store, counts=counts, stopped=stopped, tied=tied)
    show.how_to_go_on(result, console, rejudged=rejudged)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_an_advised_command_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "\n`mmbu rejudge 'my run'` asks" in advice(tmp_path / "mmbu.sqlite")
    # The default name in another folder is another store.
    away = tmp_path / "a b" / "mmbu.sqlite"
    assert f"\n`mmbu rejudge 'my run' --store '{away}'` asks" in advice(away)
    assert advice(away, stopped=InterruptedRunError("x")).startswith("`mmbu resume 'my run' --store")


def test_a_tie_is_not_mended_by_asking_again(tmp_path: Path) -> None:
    assert "tied" not in advice(tmp_path)
    all_tied = advice(tmp_path, tied=1)
    assert "asks the judge again" not in all_tied
    assert "The panel is tied on 1 of the 1 unjudged, and asking it again changes nothing" in all_tied
    assert "with one more judge in the file of --panel, or with --verdict NAME" in all_tied
    some = advice(tmp_path, tied=1, counts=replace(COUNTS, selected=4, completed=4, to_judge=1))
    assert "asks the judge again" in some
    assert "tied on 1 of the 2 unjudged," in some


def test_a_stopped_rejudge_is_not_gone_on_with_by_a_resume(tmp_path: Path) -> None:
    text = advice(tmp_path / "s.sqlite", stopped=InterruptedRunError("x"), rejudged=True)
    assert "rejudge" in text
    assert "resume" not in text


@pytest.mark.parametrize(
    ("wanted", "code", "words"),
    [
        (1.0, 3, "2 of the 3 rows that need one (66.66 %); --judge-coverage asks for 100 %: too few"),
        (0.6, 0, "asks for 60 %: enough, so that the unjudged rows alone are no failure; the report stays"),
    ],
)
def test_the_last_lines_say_whether_enough_rows_were_judged(
    tmp_path: Path, wanted: float, code: int, words: str
) -> None:
    result = RunResult(run="r", store=tmp_path, counts=COUNTS, stopped=None, judge_coverage=wanted)
    console = Console(file=io.StringIO(), width=80)
    show.how_to_go_on(result, console)
    assert isinstance(console.file, io.StringIO)
    assert words in console.file.getvalue()
    assert (result.exit_code, result.complete) == (code, False)
    failed = replace(result, counts=replace(COUNTS, selected=4, failed=1))
    assert failed.exit_code == 3, "a row without a reply is no matter of the judge"


BEFORE = RunConfig(
    model="m",
    judge=JudgeConfig(
        name="mine",
        model="a",
        base_url="https://gateway.example",
        api_key_env="GATEWAY_KEY",
        input_price=0.0,
        output_price=1.0,
        rpm=7.0,
    ),
)


def test_another_judge_takes_neither_price_nor_name_of_the_earlier() -> None:
    judge = with_changes(BEFORE, {"judge": {"model": "b"}}).judge
    assert (judge.name, judge.input_price, judge.output_price) == (None, None, None)
    assert (judge.base_url, judge.api_key_env, judge.rpm) == ("https://gateway.example", "GATEWAY_KEY", 7.0)


def test_another_wire_format_is_not_looked_for_at_the_earlier_address() -> None:
    judge = with_changes(BEFORE, {"judge": {"endpoint": "openai"}}).judge
    assert (judge.base_url, judge.api_key_env) == (None, None)
    assert (judge.name, judge.input_price, judge.output_price) == ("mine", 0.0, 1.0)


def test_the_same_judge_keeps_all_but_what_is_changed() -> None:
    changed = with_changes(BEFORE, {"judge": {"model": "a", "endpoint": "anthropic", "rpm": 9.0}}).judge
    assert changed == BEFORE.judge.model_copy(update={"rpm": 9.0})


def test_a_rejudge_takes_no_settings_that_are_not_the_judges() -> None:
    """They would be kept with the run, whose replies were made without them."""
    for flag in ("--model", "--data", "--limit", "--max-tokens"):
        refused = CliRunner().invoke(app, ["rejudge", "x", flag, "1"], standalone_mode=False).exception
        assert "No such option" in str(refused)
    with pytest.raises(ConfigError, match="data, limit would mean nothing"):
        rejudge_sync("x", changes={"limit": 1, "data": "y", "judge": {"model": "j"}, "max_cost": 1.0})
