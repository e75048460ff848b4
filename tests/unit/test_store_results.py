"""Scores under the key of their row, and the rows on which two runs part."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from mmbu_async.model import Status
from mmbu_async.report.joint import abreast
from mmbu_async.store import FlipRecord, JointCounts, Result, results
from tests.compared import make_runs, rows
from tests.stored_run import MakeRun


def test_every_selected_row_with_its_score_or_without(make_run: MakeRun) -> None:
    shape: dict[str, Any] = {"strata": {"task": ("nuclei",)}, "fields": {"task": "counting | nuclei"}}
    store, (run,) = make_runs(make_run, "+-0?ug", shape=lambda number: shape, options=[{"limit": 6}])
    found = list(store.results(run.id))
    assert [one.row_id for one in found] == [f"row-{number}" for number in range(6)]
    assert [one.key for one in found] == sorted({one.key for one in found})
    assert [one.status for one in found] == [
        *[Status.SCORED] * 3,
        None,
        Status.UNJUDGED,
        Status.UNGRADED,
    ]
    assert [(one.correct, one.tp, one.fp, one.fn) for one in found[:4]] == [
        (True, 1, 0, 0),
        (False, 0, 1, 1),
        (False, 0, 0, 1),
        (False, 0, 0, 0),
    ]
    assert found[0].strata == {"task": ("nuclei",)} and found[0].fields is None
    assert next(store.results(run.id, columns=True)).fields == {"task": "counting | nuclei"}


def test_a_row_has_one_key_in_all_runs(make_run: MakeRun) -> None:
    store, (a, b) = make_runs(make_run, "+++", "---", options=[{}, {"limit": 2}])
    first, second = ([(one.key, one.row_id) for one in store.results(run.id)] for run in (a, b))
    assert second == first[:2]


def test_flips_are_streamed_a_page_at_a_time(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FLIPS_A_PAGE", 2)
    monkeypatch.setattr(results, "ROWS_A_PAGE", 2)
    store, (a, b) = make_runs(make_run, "+-+-+-?u", "-+-++0++")
    assert list(store.flips(a.id, b.id)) == [
        FlipRecord("row-0", "classification", "nucleus", True, "nucleus", "nucleolus"),
        FlipRecord("row-1", "classification", "nucleus", False, "nucleolus", "nucleus"),
        FlipRecord("row-2", "classification", "nucleus", True, "nucleus", "nucleolus"),
        FlipRecord("row-3", "classification", "nucleus", False, "nucleolus", "nucleus"),
    ]
    assert len(list(store.results(a.id))) == 8


def test_only_flips_with_a_score_in_the_other_runs_too(make_run: MakeRun) -> None:
    store, (a, b, c) = make_runs(make_run, "+++", "---", "+?u")
    assert len(list(store.flips(a.id, b.id))) == 3
    assert [one.row_id for one in store.flips(a.id, b.id, among=[a.id, b.id, c.id])] == ["row-0"]


def test_joint_counts(make_run: MakeRun) -> None:
    store, (a, b) = make_runs(make_run, "+++--?-+", "++-+---u", options=[{}, {"limit": 8}])
    found = store.joint_counts(a.id, b.id)
    assert found == JointCounts(right=2, wrong=2, first_only=1, second_only=1, first_rows=8, second_rows=8)
    assert found.n == 6


def test_long_answers_do_not_gather(make_run: MakeRun) -> None:
    """A megabyte of answers passes through; a page of them, and no more, is held."""
    long = "x" * 50_000
    first = [{**row, "committed": long} for row in rows("+" * 40)]
    second = [{**row, "committed": long} for row in rows("-" * 40)]
    store, a = make_run(first, name="a")
    _, b = make_run(second, name="b")
    tracemalloc.start()
    list(store.results(a.id))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert sum(len(one.first_answer) for one in store.flips(a.id, b.id)) == 40 * 50_000


def a_result(key: int) -> Result:
    return Result(key, f"row-{key}", "counting", {}, Status.SCORED, True, 1, 0, 0, {}, None)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([[], []], []),
        ([[1, 2], []], ["1-", "2-"]),
        ([[1, 3, 4], [2, 3, 5]], ["1-", "-2", "33", "4-", "-5"]),
        ([[1], [1], [1, 2]], ["111", "--2"]),
    ],
)
def test_streams_are_walked_abreast(keys: list[list[int]], expected: list[str]) -> None:
    walked = abreast([iter(map(a_result, stream)) for stream in keys])
    assert ["".join("-" if one is None else str(one.key) for one in row) for row in walked] == expected
