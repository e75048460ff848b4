"""Which gap so many rows can show, and how many rows a wanted one needs."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from mmbu_async import api
from mmbu_async.errors import ConfigError
from mmbu_async.report import build_report, print_report, to_json, to_markdown
from mmbu_async.report.plan import GIVEN, HALF, INDEPENDENT, Plan, make_plan, resolution, smallest_gap
from mmbu_async.report.plan_text import print_plan
from mmbu_async.stats import detectable_difference, rows_needed
from tests.compared import make_runs
from tests.hostile import steering
from tests.stored_run import CONFIG, MakeRun


def printed(plan: Plan) -> str:
    written = io.StringIO()
    print_plan(plan, Console(file=written, width=80))
    assert max(map(len, written.getvalue().splitlines())) <= 80
    return " ".join(written.getvalue().split())


def test_rows_for_a_difference_by_connors_formula() -> None:
    cautious, hopeful = make_plan(difference=0.02, accuracy=0.5).assumptions
    assert (cautious.name, hopeful.name) == (INDEPENDENT, HALF)
    # Half of the rows: (1.95996 * 0.70711 + 0.84162 * 0.70682)² / 0.0004 = 9,808.5; a quarter: 4,903.6.
    assert (cautious.disagreement, cautious.rows) == (0.5, 9_809)
    assert (hopeful.disagreement, hopeful.rows) == (0.25, 4_904)


def test_a_known_disagreement_takes_the_place_of_both() -> None:
    (given,) = make_plan(difference=0.02, disagreement=0.1).assumptions
    assert (given.name, given.disagreement, given.rows) == (GIVEN, 0.1, rows_needed(0.02, disagreement=0.1))


def test_runs_that_differ_disagree_at_least_by_as_much() -> None:
    cautious, hopeful = make_plan(difference=0.1, accuracy=1.0).assumptions
    assert cautious.disagreement == pytest.approx(0.1)
    assert hopeful.disagreement == 0.1


def test_difference_that_rows_show_and_back() -> None:
    found = make_plan(rows=3_147, accuracy=0.3)
    for one in found.assumptions:
        assert one.difference is not None
        assert rows_needed(one.difference, disagreement=one.disagreement) <= 3_147
        assert rows_needed(one.difference * 0.999, disagreement=one.disagreement) >= 3_147
    assert found.assumptions[0].disagreement == pytest.approx(2 * 0.3 * 0.7)


def test_more_power_needs_more_rows() -> None:
    least, most = (make_plan(difference=0.05, power=power).assumptions[0].rows for power in (0.8, 0.95))
    assert most > least
    assert make_plan(difference=0.05, alpha=0.01).assumptions[0].rows > least


def test_where_runs_hardly_disagree_the_gap_is_that_of_one_that_is_never_worse() -> None:
    assert detectable_difference(3_000, disagreement=0.0) is None
    gap = smallest_gap(3_000, 0.0)
    assert gap is not None
    assert rows_needed(gap, disagreement=gap) <= 3_000 < rows_needed(gap * 0.999, disagreement=gap * 0.999)


def test_few_rows_show_nothing() -> None:
    assert smallest_gap(3, 0.5) is None
    assert smallest_gap(4, 0.5) is not None


def test_the_resolution_of_a_run() -> None:
    found = resolution(3_147, 1_900)
    assert found is not None
    assert (found.rows, found.accuracy) == (3_147, 1_900 / 3_147)
    cautious, hopeful = (one.difference for one in found.assumptions)
    assert cautious is not None and hopeful is not None
    assert cautious > hopeful > cautious / 2
    assert resolution(0, 0) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "either --difference"),
        ({"difference": 0.1, "rows": 5}, "either --difference"),
        ({"rows": 0}, "--rows 0: must be 1 or more"),
        ({"difference": 0.0}, "--difference 0: is a difference of accuracies"),
        ({"difference": 2.0}, "--difference 2: is a difference"),
        ({"difference": -0.1}, "--difference -0.1"),
        ({"difference": 0.2, "disagreement": 0.1}, "--disagreement"),
        ({"difference": 0.6, "accuracy": 0.5}, "no accuracy lies so far from 0.5"),
        ({"rows": 5, "accuracy": 1.5}, "--accuracy 1.5: is a share"),
        ({"rows": 5, "disagreement": -1.0}, "--disagreement -1: is a share"),
        ({"rows": 5, "power": 1.0}, "--power 1: must be between 0 and 1"),
        ({"rows": 5, "alpha": 0.0}, "--alpha 0: must be between 0 and 1"),
        ({"rows": 5, "alpha": float("nan")}, "--alpha nan"),
        ({"difference": float("nan")}, "--difference nan"),
    ],
)
def test_what_cannot_be_is_refused_by_its_flag(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_plan(**given)
    assert said in str(caught.value)


def test_what_is_printed() -> None:
    text = printed(make_plan(difference=0.02))
    assert "Rows that show a difference of accuracy of 0.02" in text
    assert "independently 50.0 % 9,809" in text
    assert "for accuracy 0.500, at which independent runs disagree most" in text
    assert "show (McNemar's test, 90 % power, alpha 0.01)" in printed(
        make_plan(rows=50, power=0.9, alpha=0.01)
    )
    assert "as given 10.0 % none" in printed(make_plan(rows=2, disagreement=0.1))
    hostile = make_plan(rows=50, accuracy=0.4, run="\x1b[2J\u202e[bold]x[/]")
    assert "that of run \\x1b[2J\\u202e[bold]x[/]" in printed(hostile)
    assert not steering(printed(hostile))


@pytest.mark.parametrize("form", [to_markdown, to_json, None])
def test_a_report_says_what_its_rows_can_show(form: Callable[[Any], str] | None, make_run: MakeRun) -> None:
    store, (run,) = make_runs(make_run, "+-" * 50 + "?")
    report = build_report(store, run)
    assert report.resolution == resolution(100, 50)
    if form is to_json:
        assert json.loads(to_json(report))["resolution"]["assumptions"][0]["disagreement"] == 0.5
        return
    written = io.StringIO()
    print_report(report, Console(file=written, width=80))
    text = form(report) if form else " ".join(written.getvalue().split())
    assert (
        "Another run on these 100 rows is told from this one (80 % power, alpha 0.05) by a difference of "
        "accuracy of 0.196 if the two err independently, 0.138 if they disagree half as often."
    ) in text


def test_a_report_of_few_rows_or_of_clusters(make_run: MakeRun) -> None:
    store, (run,) = make_runs(make_run, "+-")
    assert "2 rows are too few to tell another run from this one" in to_markdown(build_report(store, run))
    one = to_markdown(build_report(*make_run([{"reply": "x", "correct": True}], name="one")))
    assert "1 row is too few to tell another run from this one" in one
    rows = [{"reply": "x", "correct": n % 2 == 0, "detail": {"cluster": f"{n // 2}"}} for n in range(40)]
    text = to_markdown(build_report(*make_run(rows, name="clustered")))
    assert "Rows that share a figure count for less." in text
    store, (run,) = make_runs(make_run, "?", options=[{"name": "open"}])
    assert "Another run" not in to_markdown(build_report(store, run))


def test_a_plan_takes_accuracy_and_rows_from_a_run(make_run: MakeRun) -> None:
    current = {"config": {**CONFIG, "benchmark": "mmbu-public"}}
    store, _ = make_runs(make_run, "+---" * 5 + "?", "?", options=[current, current])
    found = api.plan("a", store=store.path)
    assert (found.run, found.accuracy, found.rows) == ("a", 0.25, 20)
    assert api.plan("a", store=store.path, difference=0.1).rows is None
    assert api.plan("a", store=store.path, rows=7).rows == 7
    with pytest.raises(ConfigError, match="has its own"):
        api.plan("a", store=store.path, accuracy=0.5)
    with pytest.raises(ConfigError, match="has no row with a score"):
        api.plan("b", store=store.path)
