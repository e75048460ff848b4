"""Δ closed - open on made-up runs: F1 can gain where no more rows are right, and accuracy shows it."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from mmbu_async.report import ReportData, build_report, print_report, to_json, to_markdown
from tests.compared import rows
from tests.stored_run import MakeRun, Row


def report(make_run: MakeRun, opened: str, closed: str, *, family: str = "classification") -> ReportData:
    def shape(number: int) -> Row:
        return {"family": family, "fields": {"unique_id": f"row-{number}"}}

    make_run(rows(opened, shape), name="open")
    shown = [{**row, "fields": {**row["fields"], "shown_order": "AB"}} for row in rows(closed, shape)]
    return build_report(*make_run(shown, name="closed", benchmark="mmbu-closed"))


def test_closed_answers_that_are_no_option_raise_f1_alone(make_run: MakeRun) -> None:
    """The model is right on the same fifth of the rows in both formats."""
    found = report(make_run, "++--------" * 5, "++00000000" * 5).contrast
    assert found is not None
    assert (found.overall.open_accuracy, found.overall.closed_accuracy) == (0.2, 0.2)
    assert found.overall.accuracy_difference.value == 0
    assert found.overall.open_f1 == 4 / (4 + 8 + 8)
    assert found.overall.closed_f1 == 4 / (4 + 0 + 8)
    assert found.overall.difference.value == pytest.approx(1 / 3 - 1 / 5)
    assert found.overall.difference.low is not None and found.overall.difference.low > 0
    assert (found.overall.accuracy_difference.low, found.overall.accuracy_difference.high) == (0, 0)


def test_both_figures_stand_side_by_side_in_every_form(make_run: MakeRun) -> None:
    found = report(make_run, "++--------", "++00000000", family="classification (from segmentation)")
    written = io.StringIO()
    print_report(found, Console(file=written, width=80))
    assert max(map(len, written.getvalue().splitlines())) <= 80
    for text in (" ".join(written.getvalue().split()), to_markdown(found).replace("| ", "")):
        assert "10 F1 0.333 0.200 +0.133" in text
        assert "10 acc 0.200 0.200 +0.000 +0.000 to +0.000" in text
        assert "F1 can gain where no more rows are right" in text
    data: dict[str, Any] = json.loads(to_json(found))["contrast"]["overall"]
    assert data["accuracy_difference"] == {"value": 0.0, "low": 0.0, "high": 0.0}


def test_rows_are_matched_by_content_and_by_no_other(make_run: MakeRun) -> None:
    """The closed run lacks the first row, and asks one of other content."""
    opened = [{**row, "fields": {"n": number}} for number, row in enumerate(rows("-++"))]
    closed = [{**opened[1], "id": "row-1"}, {**opened[2], "id": "row-2", "fields": {"n": "other"}}]
    make_run([{**row, "id": f"row-{number}"} for number, row in enumerate(opened)], name="open")
    found = build_report(*make_run(closed, name="closed", benchmark="mmbu-closed")).contrast
    assert found is not None
    assert (found.overall.n, found.overall.open_accuracy) == (1, 1.0)
