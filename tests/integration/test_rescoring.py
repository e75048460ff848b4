"""Another parser, another rule: a finished run is scored anew without a call, and says which rows changed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mmbu_async import api
from mmbu_async.config import RunConfig
from mmbu_async.errors import RunChangedError
from mmbu_async.model import Answer, Completion, Sample
from mmbu_async.report import ReportData, print_report, to_json, to_markdown
from mmbu_async.simulator import Simulator
from mmbu_async.tasks.mmbu_closed import MmbuClosed
from tests.whole_run import MINI, calls, config, simulated

COUNTS = """\
name = "counts"
[source]
tables = ["rows.csv"]
image_columns = ["image"]
[columns]
id = "uid"
question = "question"
answer = "count"
[prompt]
template = "{question} Give the number inside <answer> tags."
[scorer]
kind = "number"
tolerance = 0
"""
ROWS = 12


@pytest.fixture(autouse=True)
def _keys(keys: None) -> None:
    """Any key will do."""


def forms(report: ReportData) -> tuple[str, str, dict[str, Any]]:
    written = io.StringIO()
    print_report(report, Console(file=written, width=80))
    return written.getvalue(), to_markdown(report), json.loads(to_json(report))


def a_count(folder: Path, simulator: Simulator, store: Path) -> tuple[RunConfig, Path]:
    """Rows that ask for a number which is far off, all but two of them."""
    data = folder / "data"
    data.mkdir()
    (data / "ct.png").write_bytes((MINI / "images" / "CT_small.png").read_bytes())
    with (data / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["uid", "image", "question", "count"])
        for number in range(ROWS):
            truth = 500 if number < 2 else 5000
            writer.writerow([f"cell {number}", "ct.png", f"How many cells, picture {number}?", truth])
    described = folder / "counts.toml"
    described.write_text(COUNTS)
    return config(simulator, store, data, benchmark=str(described)), described


async def test_a_benchmark_of_ones_own_that_was_edited(tmp_path: Path, store: Path) -> None:
    async with simulated() as simulator:
        settings, described = a_count(tmp_path, simulator, store)
        result = await api.evaluate(settings)
        bought = len(await calls(simulator))
        assert (result.report().rows.right, result.report().rescoring) == (0, None)

        described.write_text(COUNTS.replace("tolerance = 0", "tolerance = 500"))
        done = api.rescore("r", store=store)
        assert (done.rows, done.changed) == (ROWS, ("cell 0", "cell 1"))
        assert (done.right_to_wrong, done.wrong_to_right) == (0, 2)
        assert len(await calls(simulator)) == bought == ROWS

        report = api.report("r", store=store)
        assert report.rows.right == 2
        terminal, markdown, data = forms(report)
        for text in (terminal, markdown):
            assert "Changed by re-scoring" in text and "changed: cell 0, cell 1." in " ".join(text.split())
        (cause,) = data["rescoring"]["causes"]
        assert (cause["cause"], cause["rows"], cause["wrong_to_right"]) == ("reading", 2, 2)

        # Once more changes nothing, and the report still tells of the re-score that did.
        assert api.rescore("r", store=store).changed == ()
        assert api.report("r", store=store).rescoring == report.rescoring
        with pytest.raises(RunChangedError, match="description"):
            await api.resume("r", store=store)


async def test_another_reader_of_a_benchmark_of_ours(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with simulated() as simulator:
        result = await api.evaluate(config(simulator, store, MINI, benchmark="mmbu-closed"))
        bought = len(await calls(simulator))
        before = {row.sample.id: row for row in result}
        plain = MmbuClosed.read
        right = [key for key, row in before.items() if row.score and row.score.correct]
        picked = {*right[:1], *(key for key in before if key not in right)}

        def reading(self: MmbuClosed, sample: Sample, completion: Completion) -> Answer:
            if sample.id not in picked:
                return plain(self, sample, completion)
            return Answer(text="" if sample.id in right else sample.answer, how="new rung")

        monkeypatch.setattr(MmbuClosed, "read", reading)
        done = api.rescore("r", store=store)
        assert len(await calls(simulator)) == bought
    assert set(done.changed) == picked
    assert (done.right_to_wrong, done.wrong_to_right) == (1, len(picked) - 1)
    report = api.report("r", store=store)
    assert report.rescoring is not None
    assert report.rescoring.rows == len(picked)
    assert set(report.rescoring.row_ids) <= picked
    assert report.rows.right == len(before) - 1
