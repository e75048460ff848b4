"""`mmbu limit`: what can be said, and what cannot. Nobody is at work here."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mmbu_async.cli.main import app
from mmbu_async.config import RunConfig
from mmbu_async.errors import ConfigError, MmbuError, RunNotFoundError
from mmbu_async.pipeline.opening import stored_config
from tests.conftest import StoreKit


@pytest.fixture
def store(kit: StoreKit) -> Path:
    opened = kit.open()
    run, _ = kit.begin(opened, 3)
    config = RunConfig.model_validate(
        {
            "model": "m",
            "name": "night",
            "rpm": 100,
            "judge": {"model": "claude-sonnet-5", "tpm": 5},
            "panel": [{"model": "b"}, {"model": "c", "name": "third"}],
            "verdict": "majority",
            "params": {"top_p": None},
        }
    )
    opened.settle_run_config(run.id, lambda _: stored_config(config))
    return kit.path


def invoke(store: Path, *arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "--store", str(store)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


def kept(store: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(store)) as connection:
        (config,) = connection.execute("SELECT config FROM run").fetchone()
    found = json.loads(config)
    assert isinstance(found, dict)
    return found


def test_without_flags_it_says_what_holds(store: Path) -> None:
    before = kept(store)
    assert invoke(store, "limit", "night").splitlines() == [
        "model: at most 64 calls at once, 100 requests a minute, any number of tokens",
        "judge claude-sonnet-5: at most 64 calls at once, any number of requests, 5 tokens a minute",
        "judge b: at most 64 calls at once, any number of requests, any number of tokens",
        "judge third: at most 64 calls at once, any number of requests, any number of tokens",
    ]
    assert kept(store) == before


def test_limits_are_kept_and_nothing_else_is_changed(store: Path) -> None:
    before = kept(store)
    said = invoke(store, "limit", "night", "--concurrency", "1", "--rpm", "none", "--judge-tpm", "30_000")
    assert "model: at most 1 call at once, any number of requests" in said
    assert said.splitlines()[-1].startswith("kept for the next `mmbu resume`: no process is at work")
    assert kept(store) == before | {
        "concurrency": 1,
        "rpm": None,
        "judge": before["judge"] | {"tpm": 30000.0},
    }


@pytest.mark.parametrize(("name", "place"), [("b", 0), ("third", 1)])
def test_a_judge_of_the_panel_goes_by_its_name(store: Path, name: str, place: int) -> None:
    before = kept(store)
    invoke(store, "limit", "night", "--of", name, "--rpm", "7.5")
    before["panel"][place]["rpm"] = 7.5
    assert kept(store) == before


def test_the_judge_may_be_called_by_its_name_too(store: Path) -> None:
    invoke(store, "limit", "night", "--of", "claude-sonnet-5", "--tpm", "none", "--judge-rpm", "8")
    judge = kept(store)["judge"]
    assert (judge["tpm"], judge["rpm"]) == (None, 8.0)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--concurrency", "0"], "setting 'concurrency' = 0: must be at least 1"),
        (["--rpm", "0"], "setting 'rpm' = 0.0"),
        (["--rpm", "nan"], "setting 'rpm'"),
        (["--judge-rpm", "-3"], "setting 'judge.rpm' = -3.0"),
        (["--tpm", "many"], "--tpm many: is neither a number nor `none`."),
        (["--judge-tpm", "x"], "--judge-tpm x: is neither a number nor `none`."),
        (["--of", "b"], "--of b: give what is to change, --concurrency, --rpm or --tpm."),
        (
            ["--of", "fourth", "--rpm", "1"],
            "run 'night' has no judge of this name; it has 'claude-sonnet-5', 'b', 'third'.",
        ),
    ],
)
def test_what_cannot_be_is_said_and_changes_nothing(store: Path, flags: list[str], words: str) -> None:
    before = kept(store)
    with pytest.raises(ConfigError) as caught:
        invoke(store, "limit", "night", *flags)
    assert words in str(caught.value)
    assert kept(store) == before


@pytest.mark.parametrize("command", ["limit", "pause", "continue"])
def test_a_run_that_is_none_is_named(store: Path, command: str) -> None:
    with pytest.raises(RunNotFoundError, match="there is no run 'nigth'; did you mean 'night'"):
        invoke(store, command, "nigth")


@pytest.mark.parametrize("command", ["pause", "continue"])
def test_nobody_at_work_hears_nothing(store: Path, command: str) -> None:
    with pytest.raises(
        MmbuError, match=r"no process is at work on run 'night'.*`mmbu resume night` continues"
    ):
        invoke(store, command, "night")
