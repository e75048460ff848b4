"""What further benchmarks add to a report, over whole runs: MMBU open beside closed, figures, rotations."""

from __future__ import annotations

import csv
import io
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mmbu_async import api
from mmbu_async.config import JudgeConfig, RunConfig
from mmbu_async.errors import BudgetReachedError
from mmbu_async.model import Status
from mmbu_async.report import ReportData, print_report, to_json, to_markdown
from mmbu_async.simulator import Simulator, SimulatorConfig
from tests.integration.test_further_benchmarks import LAYOUTS

MINI = Path(__file__).parents[1] / "data" / "mini_mmbu"
ROWS, FIGURES = 12, 4


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")


def config(simulator: Simulator, folder: Path, benchmark: str, name: str, **changes: Any) -> RunConfig:
    base = f"{simulator.url}/v1"
    settings: dict[str, Any] = {
        "model": "m",
        "data": str(MINI),
        "store": folder / "s.sqlite",
        "judge": JudgeConfig(endpoint="openai", base_url=base),
    }
    return RunConfig(benchmark=benchmark, base_url=base, name=name, **settings | changes)


def pmc_vqa(folder: Path) -> Path:
    folder.mkdir()
    with (folder / "test_clean.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        letters = [f"Choice {letter}" for letter in "ABCD"]
        writer.writerow(["index", "Figure_path", "Question", *letters, "Answer_label"])
        for number in range(ROWS):
            choices = [f" {letter}:option {letter} " for letter in "ABCD"]
            figure = f"{number % FIGURES}.jpg"
            writer.writerow([number, figure, f"Which, number {number}?", *choices, "B"])
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        for number in range(FIGURES):
            archive.writestr(f"images/{number}.jpg", (MINI / "images" / "retina.jpg").read_bytes())
    return folder


def shown(report: ReportData) -> tuple[str, str, dict[str, Any]]:
    written = io.StringIO()
    print_report(report, Console(file=written, width=80))
    assert max(len(line) for line in written.getvalue().splitlines()) <= 80
    return written.getvalue(), to_markdown(report), json.loads(to_json(report))


async def test_closed_stands_beside_open_when_both_are_complete(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    async with Simulator(SimulatorConfig()) as simulator:
        opened = await api.evaluate(config(simulator, tmp_path, "mmbu-public", "open"))
        assert opened.complete
        assert api.report("open", store=store).contrast is None, "there is no other run yet"
        part = config(simulator, tmp_path, "mmbu-closed", "part", limit=5)
        await api.evaluate(part.model_copy(update={"name": "other-model", "model": "m2"}))
        assert api.report("open", store=store).contrast is None, "that is another model"
        await api.evaluate(config(simulator, tmp_path, "mmbu-closed", "closed", max_tokens=77))
    report = api.report("open", store=store)
    found = report.contrast
    assert found is not None
    assert (found.open_run, found.closed_run, found.differing) == ("open", "closed", ("max_tokens",))
    rows = {name: list(api.rows(name, store=store)) for name in ("open", "closed")}
    scored = {
        name: {row.sample.id: row for row in them if row.status is Status.SCORED}
        for name, them in rows.items()
    }
    both = scored["open"].keys() & scored["closed"].keys()
    assert found.overall.n == len(both) == sum(delta.n for delta in found.families) > 20

    def f1(name: str, family: str | None) -> float:
        kept = [scored[name][key] for key in both if family in (None, scored[name][key].family)]
        scores = [row.score for row in kept if row.score is not None]
        tp, wrong = sum(one.tp for one in scores), sum(one.fp + one.fn for one in scores)
        return 2 * tp / (2 * tp + wrong)

    for delta, family in ((found.overall, None), *((one, one.name) for one in found.families)):
        assert delta.open_f1 == pytest.approx(f1("open", family))
        assert delta.closed_f1 == pytest.approx(f1("closed", family))
        assert delta.difference.value == pytest.approx(f1("closed", family) - f1("open", family))
        assert delta.difference.low is not None
    assert api.report("closed", store=store).contrast == found
    terminal, markdown, data = shown(report)
    for text in (terminal, markdown):
        assert "Δ closed \u2212 open" in text
        assert "The runs also differ in max" in " ".join(text.split())
    assert data["contrast"]["overall"]["n"] == len(both)


async def test_rows_behind_one_whose_answer_is_no_option_are_compared_too(tmp_path: Path) -> None:
    """A closed run leaves such a row out, and all that follow stand one place earlier."""
    data = tmp_path / "data"
    shutil.copytree(MINI, data)
    rows = [json.loads(line) for line in (data / "metadata.jsonl").read_text().splitlines()]
    assert rows[0]["options"]
    rows[0]["answer"] = "none of these"
    (data / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    async with Simulator(SimulatorConfig()) as simulator:
        for benchmark, name in (("mmbu-public", "open"), ("mmbu-closed", "closed")):
            await api.evaluate(config(simulator, tmp_path, benchmark, name, data=str(data)))
    closed = [row.sample.id for row in api.rows("closed", store=tmp_path / "s.sqlite")]
    assert rows[0]["unique_id"] not in closed
    found = api.report("open", store=tmp_path / "s.sqlite").contrast
    assert found is not None
    assert found.overall.n == len(closed) > 20


async def test_an_incomplete_counterpart_is_not_compared(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    # So dear that the third row does not fit under the cap.
    priced = {"input_price": 0.0, "output_price": 1.0, "max_tokens": 1_000_000, "max_cost": 1.0}
    async with Simulator(SimulatorConfig()) as simulator:
        await api.evaluate(config(simulator, tmp_path, "mmbu-public", "open"))
        with pytest.raises(BudgetReachedError):
            await api.evaluate(config(simulator, tmp_path, "mmbu-closed", "closed", concurrency=1, **priced))
        assert [api.report(name, store=store).complete for name in ("open", "closed")] == [True, False]
        assert [api.report(name, store=store).contrast for name in ("open", "closed")] == [None, None]
        await api.resume("closed", store=store, changes={"max_cost": 1000.0})
    assert api.report("open", store=store).contrast is not None


async def test_figures_and_rotations_of_pmc_vqa(tmp_path: Path) -> None:
    data = str(pmc_vqa(tmp_path / "data"))
    async with Simulator(SimulatorConfig()) as simulator:
        plain = await api.evaluate(config(simulator, tmp_path, "pmc-vqa", "plain", data=data))
        circular = await api.evaluate(
            config(simulator, tmp_path, "pmc-vqa", "circular", data=data, circular=True)
        )
    report = plain.report()
    assert (report.overall.clusters, report.overall.chance) == (FIGURES, 0.25)
    assert report.circular is None
    assert all("intervals by figure: 4 clusters." in text for text in shown(report)[:2])
    report = circular.report()
    assert report.overall.clusters == FIGURES
    rows = list(circular)
    right = sum(
        all(row.score is not None and row.score.correct for row in rows if _asks(row.sample.id, number))
        for number in range(ROWS)
    )
    assert report.circular is not None
    assert (report.circular.rows, report.circular.right) == (ROWS, right)
    assert report.circular.rotations == report.rows.scored == 4 * ROWS
    assert report.circular.mean == report.overall.accuracy
    assert all("rows right in all rotations" in text for text in shown(report)[:2])


def _asks(row_id: str, number: int) -> bool:
    return row_id.partition("@")[0] == str(number)


async def test_a_second_reading_stands_beside_mmmus_official_score(tmp_path: Path) -> None:
    """The simulator answers in tags, which the official rules do not know and the second reading does."""
    (tmp_path / "data").mkdir()
    LAYOUTS["mmmu-val"](tmp_path / "data")
    async with Simulator(SimulatorConfig()) as simulator:
        settings = config(simulator, tmp_path, "mmmu-val", "r", data=str(tmp_path / "data"))
        result = await api.evaluate(settings)
    scores = [row.score for row in result if row.score is not None]
    assert {score.detail["second_answer"] for score in scores} != {""}
    (measure,) = result.report().measures
    assert (measure.name, measure.rows) == ("accuracy by the second reading", len(scores))
    assert measure.mean == sum(score.detail["second_right"] for score in scores) / len(scores)
