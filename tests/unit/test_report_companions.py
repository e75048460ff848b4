"""Clusters and random baselines, from the details of scores to every form of the report."""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from rich.console import Console

from mmbu_async.report import ReportData, build_report, print_report, to_json, to_markdown
from mmbu_async.store import RunRecord, Store

MakeRun = Callable[..., tuple[Store, RunRecord]]
Row = Mapping[str, Any]


def row(correct: bool | None, family: str = "f", strata: Any = None, **detail: Any) -> Row:
    if correct is None:
        return {"failures": ["timeout"], "family": family, "strata": strata or {}}
    return {
        "reply": "A",
        "correct": correct,
        "family": family,
        "strata": strata or {},
        "detail": detail,
    }


def on_terminal(report: ReportData) -> str:
    written = io.StringIO()
    print_report(report, Console(file=written, width=80))
    return written.getvalue()


def width(report: ReportData) -> float:
    accuracy = report.overall.accuracy
    assert accuracy.low is not None and accuracy.high is not None
    return accuracy.high - accuracy.low


def test_questions_on_one_figure_widen_the_interval(make_run: MakeRun) -> None:
    rows = [row(number % 8 < 4, cluster=f"figure {number // 4}") for number in range(160)]
    report = build_report(*make_run(rows))
    plain = build_report(*make_run([row(number % 8 < 4) for number in range(160)], name="plain"))
    assert report.overall.accuracy.value == plain.overall.accuracy.value == 0.5
    assert width(report) / width(plain) == pytest.approx(2, rel=0.2)
    assert (report.overall.clusters, report.families[0].clusters) == (40, 40)
    assert report.families[0].score == report.overall.score
    assert report.overall.wilson is None and plain.overall.wilson is not None
    assert "intervals by figure: 40 clusters." in report.notes
    for text in (on_terminal(report), to_markdown(report)):
        assert "intervals by figure: 40 clusters" in text
        assert "row bootstrap" not in text
    assert json.loads(to_json(report))["overall"]["clusters"] == 40


def test_a_figure_of_two_families_counts_once_overall(make_run: MakeRun) -> None:
    rows = [row(True, "one", cluster="a"), row(False, "two", cluster="a"), row(True, "two"), row(True, "two")]
    report = build_report(*make_run(rows))
    assert report.overall.clusters == 3  # the figure, and two rows that have none
    assert {group.name: group.clusters for group in report.families} == {"one": 1, "two": 3}


def test_while_rows_are_open_the_bounds_are_by_row(make_run: MakeRun) -> None:
    report = build_report(*make_run([row(True, cluster="a"), row(None)]))
    assert report.overall.clusters is None
    assert not any("intervals" in note for note in report.notes)


def test_rotations_of_a_row_are_one_unit(make_run: MakeRun) -> None:
    rows = [row(True, chance=0.5, circular_row=f"r{number // 2}") for number in range(8)]
    report = build_report(*make_run(rows))
    assert report.overall.clusters == 4
    assert "intervals by row, its rotations together: 4 clusters." in report.notes


def test_the_random_baseline_stands_beside_accuracy(make_run: MakeRun) -> None:
    rows = [row(True, "one", chance=0.5), row(False, "one", chance=0.25), row(False, "two", chance=0.25)]
    report = build_report(*make_run(rows))
    assert report.overall.chance == pytest.approx(1 / 3)
    assert {group.name: group.chance for group in report.families} == {"one": 0.375, "two": 0.25}
    terminal, markdown = on_terminal(report), to_markdown(report)
    assert "Random    0.333   picking options at random\n" in terminal
    assert "Random: 0.333, picking options at random.\n" in markdown
    assert any("one" in line and line.rstrip().endswith("0.375") for line in terminal.splitlines())
    assert any(line.startswith("| one |") and line.endswith("| 0.375 |") for line in markdown.splitlines())
    assert max(len(line) for line in terminal.splitlines()) <= 80
    assert json.loads(to_json(report))["families"][0]["chance"] == 0.375


def test_rows_without_options_are_not_in_the_baseline(make_run: MakeRun) -> None:
    report = build_report(*make_run([row(True, chance=0.25), row(False)]))
    assert (report.overall.chance, report.overall.chance_rows) == (0.25, 1)
    assert "over 1 row with options" in on_terminal(report)
    without = build_report(*make_run([row(True)], name="none"))
    assert without.overall.chance is None
    assert "andom" not in on_terminal(without) + to_markdown(without)
