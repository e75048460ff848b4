"""Circular evaluation and MMMU's own table, from the rows to every form of the report."""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from rich.console import Console

from mmbu_async.report import ReportData, build_report, print_report, to_json, to_markdown
from mmbu_async.stats import wilson
from mmbu_async.store import RunRecord, Store
from mmbu_async.tasks.mmmu import DISCIPLINES

MakeRun = Callable[..., tuple[Store, RunRecord]]
Row = Mapping[str, Any]
OPEN: Row = {"failures": ["timeout"]}


def rotated(row: str, outcomes: str, *, options: int | None = None, **detail: Any) -> list[Row]:
    """One row's rotations: `+` right, `-` wrong, `?` without a reply."""
    shared = {"chance": 1 / (options or len(outcomes)), "circular_row": row, **detail}
    return [
        OPEN if outcome == "?" else {"reply": "A", "correct": outcome == "+", "detail": shared}
        for outcome in outcomes
    ]


def on_terminal(report: ReportData) -> str:
    written = io.StringIO()
    print_report(report, Console(file=written, width=80))
    return written.getvalue()


def test_a_row_is_right_when_all_its_rotations_are(make_run: MakeRun) -> None:
    rows = [*rotated("a", "++++"), *rotated("b", "+++-"), *rotated("c", "--"), *rotated("d", "++")]
    report = build_report(*make_run(rows))
    found = report.circular
    assert found is not None
    assert (found.rows, found.right, found.partial) == (4, 2, 0)
    assert found.accuracy.value == 0.5
    assert found.wilson == wilson(2, 4)
    assert (found.rotations, found.rotations_right, found.mean.value) == (12, 9, 0.75)
    for text in (on_terminal(report), to_markdown(report)):
        said = {line.replace("|", "").strip().rpartition("rotations")[0]: line for line in text.splitlines()}
        assert "0.500" in said["rows right in all "]
        assert "their rotations, plain mean" in text
    assert json.loads(to_json(report))["circular"]["right"] == 2


def test_intervals_take_the_rotations_of_a_row_together(make_run: MakeRun) -> None:
    rows = [each for number in range(60) for each in rotated(f"r{number}", "++++" if number % 2 else "----")]
    found = build_report(*make_run(rows)).circular
    assert found is not None and found.mean.low is not None and found.accuracy.low is not None
    # Every row's rotations agree: the mean is no better known than the rows.
    assert found.mean.low == pytest.approx(found.accuracy.low, abs=0.02)
    figures = [
        each
        for number in range(60)
        for each in rotated(f"r{number}", "++++" if number // 10 % 2 else "----", cluster=f"f{number // 10}")
    ]
    by_figure = build_report(*make_run(figures, name="figures")).circular
    assert by_figure is not None and by_figure.accuracy.low is not None
    assert by_figure.wilson is None
    assert by_figure.accuracy.low < found.accuracy.low - 0.1


def test_rows_that_lack_a_rotation_are_left_out_and_said(make_run: MakeRun) -> None:
    report = build_report(*make_run([*rotated("a", "++++"), *rotated("b", "++", options=4)]))
    assert report.circular is not None
    assert (report.circular.rows, report.circular.partial, report.circular.accuracy.value) == (1, 1, 1.0)
    assert "1 row without all rotations scored left out" in on_terminal(report)


def test_while_rotations_are_open_there_is_no_circular_accuracy(make_run: MakeRun) -> None:
    report = build_report(*make_run([*rotated("a", "++++"), *rotated("b", "+?++")]))
    assert report.circular is not None
    assert report.circular.accuracy.value is None and report.circular.mean.value is None
    assert "known when no row is open" in on_terminal(report)


def test_without_rotations_there_is_no_section(make_run: MakeRun) -> None:
    report = build_report(*make_run([{"reply": "A", "correct": True, "detail": {"chance": 0.25}}]))
    assert report.circular is None
    assert report.official == ()
    assert "Circular" not in on_terminal(report) + to_markdown(report)


def subject(name: str, discipline: str, correct: bool | None = True) -> Row:
    strata = {"subject": (name,), "discipline": (discipline,)}
    return {**(OPEN if correct is None else {"reply": "A", "correct": correct}), "strata": strata}


def test_the_official_table_has_the_official_order(make_run: MakeRun) -> None:
    every = [subject(name, discipline) for discipline, names in DISCIPLINES.items() for name in names]
    report = build_report(*make_run(every[::-1]))
    expected = [
        line for discipline, names in DISCIPLINES.items() for line in (f"Overall-{discipline}", *names)
    ]
    assert [line.name for line in report.official] == [*expected, "Overall"]
    assert [line.n for line in report.official if line.level == 2] == [1] * 30


def test_the_official_table_counts_rows_not_subjects(make_run: MakeRun) -> None:
    rows = [
        *[subject("Math", "Science")] * 3,
        subject("Physics", "Science", correct=False),
        subject("Music", "Art and Design", correct=False),
        {"reply": "A", "correct": True, "strata": {"subject": ("Math",)}},
    ]
    report = build_report(*make_run(rows))
    assert [(line.name, line.n, line.accuracy) for line in report.official] == [
        ("Overall-Art and Design", 1, 0.0),
        ("Music", 1, 0.0),
        ("Overall-Science", 4, 0.75),
        ("Math", 3, 1.0),
        ("Physics", 1, 0.0),
        ("Overall", 5, 0.6),
    ]
    terminal, markdown = on_terminal(report), to_markdown(report)
    assert any(line.split() == ["Overall-Science", "4", "0.750"] for line in terminal.splitlines())
    assert "\n  Math  " in terminal
    assert "| Overall-Science | 4 | 0.750 |" in markdown
    assert json.loads(to_json(report))["official"][2]["accuracy"] == 0.75


def test_a_line_with_open_rows_has_no_accuracy(make_run: MakeRun) -> None:
    rows = [subject("Math", "Science", None), subject("Math", "Science"), subject("Music", "Art and Design")]
    report = build_report(*make_run(rows))
    found = {line.name: line.accuracy for line in report.official}
    assert found == {
        "Overall-Art and Design": 1.0,
        "Music": 1.0,
        "Overall-Science": None,
        "Math": None,
        "Overall": None,
    }
    assert "Lines with open rows have no accuracy" in on_terminal(report)
