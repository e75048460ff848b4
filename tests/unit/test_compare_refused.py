"""Runs that cannot be compared are refused in one sentence that says what differs and what to do."""

from __future__ import annotations

import pytest

from mmbu_async.errors import ConfigError, DataError, MmbuError
from mmbu_async.report.comparable import SHOWN_ROWS
from mmbu_async.report.compare import build_comparison
from mmbu_async.store import RunRecord, Store
from tests.compared import make_runs, rows
from tests.stored_run import MakeRun


def refused(store: Store, *runs: RunRecord, kind: type[MmbuError] = DataError) -> str:
    with pytest.raises(MmbuError) as caught:
        build_comparison(store, runs)
    assert type(caught.value) is kind
    assert caught.value.exit_code == 2
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_fewer_than_two_runs(make_run: MakeRun) -> None:
    store, (run,) = make_runs(make_run, "+")
    for given in ((), (run,)):
        assert "needs two runs or more" in refused(store, *given, kind=ConfigError)


def test_the_same_run_twice(make_run: MakeRun) -> None:
    store, (a, b) = make_runs(make_run, "+", "-")
    assert "run 'b' is named twice" in refused(store, a, b, b, kind=ConfigError)


def test_another_benchmark(make_run: MakeRun) -> None:
    store, (a, b) = make_runs(make_run, "+", "+", options=[{}, {"benchmark": "pmc-vqa"}])
    text = refused(store, a, b)
    assert "run 'a' is of mmbu-public and run 'b' of pmc-vqa" in text


@pytest.mark.parametrize("order", [1, -1])
def test_the_two_formats_of_mmbu_have_a_page_of_their_own(order: int, make_run: MakeRun) -> None:
    store, runs = make_runs(make_run, "+", "+", options=[{}, {"benchmark": "mmbu-closed"}])
    text = refused(store, *runs[::order])
    assert "'Δ closed \u2212 open' of `mmbu report`" in text


def test_other_content_names_the_rows(make_run: MakeRun) -> None:
    store, first = make_run(rows("+++"), name="a")
    other = [dict(row) for row in rows("+++")]
    other[1]["answer"] = "ribosome"
    _, second = make_run(other, name="b")
    text = refused(store, first, second)
    assert "over different content of mmbu-public" in text
    assert f"{first.dataset.fingerprint[:12]} and {second.dataset.fingerprint[:12]}" in text
    assert "1 row differs (row-1)" in text
    assert "run both over one copy of the data" in text


def test_of_many_rows_the_first_are_named(make_run: MakeRun) -> None:
    store, (first,) = make_runs(make_run, "+" * (SHOWN_ROWS + 3))
    _, second = make_run(rows("+"), name="b")
    assert f"{SHOWN_ROWS + 2} rows differ (row-1, row-2," in refused(store, first, second)
    assert "row-10 and 2 more)" in refused(store, first, second)


def test_ids_that_are_long_or_mean_harm_are_cut_and_shown_as_text(make_run: MakeRun) -> None:
    store, (first,) = make_runs(make_run, "+")
    _, second = make_run([{**rows("+")[0], "id": "\x1b[2J" + "x" * 100_000}], name="b")
    text = refused(store, first, second)
    assert "\\x1b[2Jxxx" in text
    assert len(text) < 400


def test_the_same_rows_in_another_order(make_run: MakeRun) -> None:
    store, (first,) = make_runs(make_run, "++")
    turned = [{**row, "id": f"row-{1 - number}"} for number, row in enumerate(rows("++"))]
    _, second = make_run(turned, name="b")
    assert first.dataset.id != second.dataset.id
    assert "the rows stand in another order" in refused(store, first, second)
