"""`mmbu compare` and `mmbu plan` on runs that the program itself made, beside the simulator."""

from __future__ import annotations

import asyncio
import csv
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mmbu_async import api
from mmbu_async.cli.main import app
from mmbu_async.errors import ConfigError, DataError
from mmbu_async.report.comparison import Comparison
from mmbu_async.simulator import Simulator, SimulatorConfig
from tests.whole_run import MINI, config

pytestmark = pytest.mark.usefixtures("keys")
ROWS, FEWER = 33, 25


@pytest.fixture
def two_runs(store: Path) -> Path:
    """`seeing` over all rows, `blind` over the first of them by a model that does not look at images."""

    async def work() -> None:
        async with Simulator(SimulatorConfig()) as seeing, Simulator(SimulatorConfig(vision=False)) as blind:
            await api.evaluate(config(seeing, store, MINI, name="seeing"))
            await api.evaluate(config(blind, store, MINI, name="blind", model="blind-vlm", limit=FEWER))

    asyncio.run(work())
    return store


def mmbu(*words: str, store: Path | None = None) -> str:
    flags = ["--store", str(store)] if store else []
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*words, *flags])
    if done.exception is not None:
        raise done.exception
    assert max(map(len, done.stdout.splitlines()), default=0) <= 80 or "--format" in words
    return done.stdout


def test_two_runs_row_by_row(two_runs: Path, tmp_path: Path) -> None:
    text = mmbu("compare", "seeing", "blind", store=two_runs)
    assert text.startswith(f"COMPARED: 2 runs of mmbu-public over the {FEWER} rows")
    assert f"LEFT OUT: {ROWS - FEWER} rows of seeing that the other has not selected." in text

    scored = {
        name: {row.sample.id: bool(row.score and row.score.correct) for row in api.rows(name, store=two_runs)}
        for name in ("seeing", "blind")
    }
    both = [(scored["seeing"][row], right) for row, right in scored["blind"].items()]
    flips = tmp_path / "flips.csv"
    data = json.loads(
        mmbu("compare", "seeing", "blind", "--format", "json", "--flips", str(flips), store=two_runs)
    )
    (pair,) = data["pairs"]
    assert pair["n"] == FEWER == len(both)
    assert (pair["wins"], pair["losses"]) == (both.count((False, True)), both.count((True, False)))
    assert pair["losses"] > 5, "who does not look knows less"
    assert pair["accuracy"]["difference"]["value"] == pytest.approx(
        sum(right for _, right in both) / FEWER - sum(right for right, _ in both) / FEWER
    )
    with flips.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == pair["wins"] + pair["losses"]
    turned = {row for row, right in scored["blind"].items() if right != scored["seeing"][row]}
    assert {line["row_id"] for line in lines} == turned

    out = tmp_path / "page.md"
    assert mmbu("compare", "seeing", "blind", "--out", str(out), store=two_runs) == ""
    assert "# blind against seeing" in out.read_text(encoding="utf-8")
    out = tmp_path / "page.txt"
    mmbu("compare", "seeing", "blind", "--all", "--out", str(out), store=two_runs)
    assert max(map(len, out.read_text(encoding="utf-8").splitlines())) <= 80


def test_scores_are_brought_up_to_date_first(two_runs: Path) -> None:
    before = api.compare(["seeing", "blind"], store=two_runs)
    with sqlite3.connect(two_runs) as connection:
        connection.execute("DELETE FROM score")
    assert _figures(api.compare(["seeing", "blind"], store=two_runs)) == _figures(before)


def _figures(found: Comparison) -> Any:
    return (found.common_rows, [run.overall for run in found.runs], [pair.accuracy for pair in found.pairs])


def test_runs_that_cannot_be_compared(two_runs: Path, tmp_path: Path) -> None:
    async def closed() -> None:
        async with Simulator(SimulatorConfig()) as simulator:
            await api.evaluate(config(simulator, two_runs, MINI, name="closed", benchmark="mmbu-closed"))

    asyncio.run(closed())
    with pytest.raises(DataError, match="of mmbu-public and run 'closed' of mmbu-closed, which ask the same"):
        mmbu("compare", "seeing", "closed", store=two_runs)
    with pytest.raises(ConfigError, match="two runs or more"):
        mmbu("compare", "seeing", store=two_runs)
    with pytest.raises(ConfigError, match="named twice"):
        mmbu("compare", "seeing", "seeing", store=two_runs)
    pairs = tmp_path / "pairs.csv"
    for flags, what in (
        (["seeing"], "leave out runs"),
        (["--flips", "x.csv"], "leave out --flips"),
        (["--all"], "leave out --all"),
    ):
        with pytest.raises(ConfigError, match=what):
            mmbu("compare", "--pairs", str(pairs), *flags, store=two_runs)
    with pytest.raises(ConfigError, match="--format pdf: is none of text, html, markdown, json"):
        mmbu("compare", "seeing", "blind", "--format", "pdf", store=two_runs)
    with pytest.raises(ConfigError, match=r"--out .*page\.pdf: its ending names no form; choose one of \.md"):
        mmbu("compare", "seeing", "blind", "--out", str(tmp_path / "page.pdf"), store=two_runs)


def test_pairs_of_base_and_adapted_models(two_runs: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("base,adapted,training_size\nblind,seeing,1500000\nseeing,blind,500000\n")
    text = mmbu("compare", "--pairs", str(pairs), store=two_runs)
    assert "seeing from blind" in text
    assert 0 < text.find("Fit: win rate = ") < text.find("How it is counted")
    data = json.loads(mmbu("compare", "--pairs", str(pairs), "--format", "json", store=two_runs))
    one, other = data["pairs"]
    assert (one["n"], one["wins"], one["losses"]) == (FEWER, other["losses"], other["wins"])
    rates = [one["win_rate"], other["win_rate"]]
    assert data["fit"]["slope"] == pytest.approx(rates[0] - rates[1])
    assert mmbu("compare", "--pairs", str(pairs), "--format", "markdown", store=two_runs).startswith(
        "# mmbu-public"
    )


def test_plans(two_runs: Path) -> None:
    assert "9,809" in mmbu("plan", "--difference", "0.02")
    assert "Difference of accuracy that 5,000 rows show" in mmbu(
        "plan", "--rows", "5000", "--accuracy", "0.6"
    )
    right = sum(bool(row.score and row.score.correct) for row in api.rows("seeing", store=two_runs))
    text = " ".join(mmbu("plan", "seeing", "--difference", "0.05", store=two_runs).split())
    assert f"accuracy {right / ROWS:.3f}, that of run seeing" in text
    with pytest.raises(ConfigError, match="either --difference"):
        mmbu("plan")
