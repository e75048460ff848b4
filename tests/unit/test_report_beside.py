"""Measures beside right and wrong: overlap of masks, shared words, a second reading."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from rich.console import Console

from mmbu_async.report import build_report, print_report, to_json, to_markdown
from mmbu_async.store import RunRecord, Store

MakeRun = Callable[..., tuple[Store, RunRecord]]
Row = Mapping[str, Any]


def row(**detail: Any) -> Row:
    return {"reply": "x", "correct": True, "detail": detail}


def test_means_are_over_the_rows_that_have_the_measure(make_run: MakeRun) -> None:
    rows = [
        row(iou=0.5, dice=0.75),
        row(iou=1.0, dice=1.0),
        row(iou=0.0, dice=0.0, reason="no mask"),
        row(token_f1=0.25, token_recall=1),
        row(second_right=True, second_answer="B"),
        row(second_right=False, second_answer=""),
        row(chance=0.25, max_iou=0.9),
        {"failures": ["timeout"]},
    ]
    report = build_report(*make_run(rows))
    found = {one.name: (one.rows, one.mean) for one in report.measures}
    assert found == {
        "IoU of masks": (3, 0.5),
        "Dice of masks": (3, pytest.approx(1.75 / 3)),
        "token recall, open questions": (1, 1.0),
        "token F1, open questions": (1, 0.25),
        "accuracy by the second reading": (2, 0.5),
    }
    intervals = {one.name: one.interval for one in report.measures}
    assert intervals["token F1, open questions"] is None
    assert intervals["IoU of masks"] is not None and intervals["IoU of masks"].low < 0.5
    written = io.StringIO()
    print_report(report, Console(file=written, width=80))
    assert max(map(len, written.getvalue().splitlines())) <= 80
    for text in (written.getvalue(), to_markdown(report)):
        assert "Beside right and wrong" in text and "Dice of masks" in text
    assert json.loads(to_json(report))["measures"][0]["mean"] == 0.5


def test_there_is_no_table_where_rows_are_right_or_wrong_and_no_more(make_run: MakeRun) -> None:
    report = build_report(*make_run([row(chance=0.25), row()]))
    assert report.measures == ()
    assert "Beside right and wrong" not in to_markdown(report)
