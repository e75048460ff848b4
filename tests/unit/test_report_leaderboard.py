"""A leaderboard's row: flat, complete, and null where nothing is known. docs/exports.md tells its keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.model import Usage
from mmbu_async.report import build_report, longform
from mmbu_async.report.leaderboard import leaderboard_row
from mmbu_async.report.parquet import TYPES
from tests.every_form import invoked, read_object, strict_json
from tests.stored_run import CONFIG, IDENTITY, MakeRun

RUN = "test-run"
RIGHT = {"reply": "<answer>a</answer>", "committed": "a", "judged": True}
ROWS: Sequence[Mapping[str, Any]] = [
    {**RIGHT, "family": "counting"},
    {**RIGHT, "family": "counting", "judged": False},
    {**RIGHT, "family": "classification"},
    {"family": "classification", "failures": ["timeout"]},
]
DOCS = Path(__file__).parents[2] / "docs" / "exports.md"


def row_of(make_run: MakeRun, rows: Sequence[Mapping[str, Any]], **options: Any) -> dict[str, Any]:
    return leaderboard_row(build_report(*make_run(rows, **options)))


def test_a_complete_run_has_figures_with_intervals(make_run: MakeRun) -> None:
    store, run = make_run(ROWS[:3])
    report = build_report(store, run)
    row = leaderboard_row(report)
    assert (row["model"], row["benchmark"], row["judge"]) == ("test-vlm-1", "mmbu-public", "claude-sonnet-5")
    assert (row["complete"], row["coverage"], row["rows"], row["scored"]) == (True, 1.0, 3, 3)
    accuracy, f1 = report.overall.accuracy, report.overall.f1
    assert (row["accuracy"], row["accuracy_low"], row["accuracy_high"]) == (
        accuracy.value,
        accuracy.low,
        accuracy.high,
    )
    assert (row["f1"], row["f1_low"], row["f1_high"]) == (f1.value, f1.low, f1.high)
    assert row["accuracy_worst"] == row["accuracy"] == row["accuracy_best"]
    assert (row["family.counting.accuracy"], row["family.classification.accuracy"]) == (0.5, 1.0)
    assert row["dataset_fingerprint"] == run.dataset.fingerprint
    assert row["date"] == "2027-01-15T08:00:00Z"
    assert row["package_version"] == "0.1.0"
    assert row["cost_usd"] == row["known_cost_usd"] == pytest.approx(0.033)
    assert (row["official"], row["unofficial_because"]) == (True, None)


def test_an_incomplete_run_has_ends_in_place_of_figures(make_run: MakeRun) -> None:
    row = row_of(make_run, ROWS)
    assert (row["complete"], row["failed"], row["coverage"]) == (False, 1, 0.75)
    assert (row["accuracy"], row["accuracy_low"], row["f1"]) == (None, None, None)
    assert (row["accuracy_worst"], row["accuracy_best"]) == (0.5, 0.75)
    assert (row["family.counting.accuracy"], row["family.classification.accuracy"]) == (0.5, None)
    assert (row["family.classification.accuracy_worst"], row["family.classification.open"]) == (0.5, 1)


def test_what_is_not_known_is_null_and_not_nought(make_run: MakeRun) -> None:
    row = row_of(make_run, [{**RIGHT, "cost": None, "usage": Usage(reported=False)}])
    assert (row["cost_usd"], row["model_input_tokens"]) == (None, None)
    assert row["known_cost_usd"] == pytest.approx(0.001)
    assert row["judge_input_tokens"] == 200


def test_settings_are_flat(make_run: MakeRun) -> None:
    identity = IDENTITY | {"params": {"reasoning": {"effort": "low"}, "stop": ["a", "b"]}}
    row = row_of(make_run, ROWS, identity=identity, config={**CONFIG, "task": ["counting"]}, limit=3)
    assert row["model_settings.params.reasoning.effort"] == "low"
    assert row["model_settings.params.stop"] == '["a","b"]'
    assert row["selection.task"] == '["counting"]'
    assert row["model_prompt_sha256.system"] == "5" * 64
    assert row["official"] is False
    assert row["unofficial_because"] == "only 3 of 4 rows were selected"


def test_a_run_without_a_judge_names_none(make_run: MakeRun) -> None:
    row = row_of(make_run, [{"reply": "A", "correct": True}], judge=None)
    assert row["judge"] is None
    assert not [key for key in row if key.startswith("judge_settings") or key == "judge_host"]


@pytest.mark.parametrize("command", [("export",), ("report",), ("report", "--format", "leaderboard")])
def test_the_name_of_the_file_asks_for_it(make_run: MakeRun, tmp_path: Path, command: Sequence[str]) -> None:
    store, run = make_run(ROWS)
    path = tmp_path / "mine.leaderboard.json"
    name, *flags = command
    invoked([name, RUN, "--out", str(path), *flags], store.path)
    (row,) = read_object(path)
    assert row == leaderboard_row(build_report(store, run))


def test_it_is_printed(make_run: MakeRun) -> None:
    store, _ = make_run(ROWS)
    printed = invoked(["report", RUN, "--format", "leaderboard"], store.path)
    assert strict_json(printed) == leaderboard_row(api.report(RUN, store=store.path))


def test_the_page_on_exports_tells_every_key_and_column(make_run: MakeRun) -> None:
    docs = DOCS.read_text(encoding="utf-8")
    for key in row_of(make_run, ROWS):
        start = key.partition(".")[0]
        assert f"`{key if '.' not in key else f'{start}.'}" in docs, key
    for name, (_, meaning) in longform.COLUMNS.items():
        assert f"| `{name}` | {meaning} |" in docs
    for name in TYPES:
        assert f"`{name}`" in docs, name
