"""Runs at the edges: every form says what is true of them, with the right denominators and without a NaN."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mmbu_async.errors import ConfigError
from tests.edges import EDGES
from tests.edges import edge_run as make_edge_run
from tests.every_form import OTHER, PRINTED, WRITTEN, invoked, strict_json
from tests.stored_run import RunMaker

RUN = "test-run"
NO_FIGURE = re.compile(r"\b([nN]a[nN]|[iI]nf|[iI]nfinity|None)\b")
FIRST_LINE = re.compile(r"^(?:\*\*)?((?:EMPTY|COMPLETE|INCOMPLETE|UNGRADED).*)", re.MULTILINE)
"""Bold in Markdown, and below the title of a card."""

edges = pytest.mark.parametrize("name", EDGES)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """For each edge a store with the run twice."""
    folder = tmp_path_factory.mktemp("edges")
    with ExitStack() as stack:
        paths = {}
        for number, name in enumerate(EDGES):
            paths[name] = folder / f"{number}.sqlite"
            make_run = RunMaker(paths[name], stack)
            make_edge_run(make_run, name)
            make_edge_run(make_run, name, name=OTHER)
        yield paths


@edges
def test_every_command_says_how_complete_the_run_is_and_makes_no_figure_up(
    stores: dict[str, Path], name: str
) -> None:
    # Pages with figures have tests of their own at each edge.
    for form, printed in ((form, printed) for form, printed in PRINTED.items() if printed.kind != "html"):
        if form == "plan" and not EDGES[name].scored:
            with pytest.raises(ConfigError, match="has no row with a score, and so no accuracy"):
                printed.said(RUN, stores[name])
            continue
        text = printed.said(RUN, stores[name])
        assert text.strip(), form
        assert [line for line in text.splitlines() if NO_FIGURE.search(line)] == [], form
        if printed.kind == "json":
            strict_json(text)
        elif form.startswith("report"):
            said = FIRST_LINE.search(text)
            assert said, form
            assert said[1].startswith(EDGES[name].first_line), form


@edges
def test_the_figures_have_the_right_denominators(stores: dict[str, Path], name: str) -> None:
    edge = EDGES[name]
    report = strict_json(PRINTED["report, json"].said(RUN, stores[name]))
    rows, overall = report["rows"], report["overall"]
    assert (rows["selected"], rows["scored"], rows["right"]) == (edge.selected, edge.scored, edge.right)
    assert rows["failed"] + rows["unjudged"] + rows["pending"] == edge.open
    assert rows["ungraded"] == edge.ungraded
    assert overall["n"] == edge.selected - edge.ungraded
    assert (overall["score"] or {"accuracy": {"value": None}})["accuracy"]["value"] == edge.accuracy
    assert sum(group["n"] for group in report["families"]) == overall["n"]


@edges
def test_a_leaderboard_gets_the_ends_where_the_figure_is_not_known(
    stores: dict[str, Path], tmp_path: Path, name: str
) -> None:
    edge = EDGES[name]
    (row,) = WRITTEN["leaderboard"].rows(RUN, stores[name], tmp_path)
    graded = edge.selected - edge.ungraded
    assert row["complete"] == (edge.selected > 0 and not edge.open)
    assert row["accuracy"] == edge.accuracy
    assert row["coverage"] == (edge.scored / graded if graded else None)
    ends = (edge.right / graded, (edge.right + edge.open) / graded) if graded else (None, None)
    assert (row["accuracy_worst"], row["accuracy_best"]) == ends
    assert (row["accuracy_low"] is None) == (edge.accuracy is None)
    assert all(value is None or isinstance(value, bool | int | float | str) for value in row.values())


@edges
def test_exports_have_each_row_once(stores: dict[str, Path], tmp_path: Path, name: str) -> None:
    edge = EDGES[name]
    for form in ("jsonl", "csv", "parquet"):
        rows = WRITTEN[form].rows(RUN, stores[name], tmp_path)
        assert [row["row_id"] for row in rows] == [row["id"] for row in edge.rows][: edge.selected], form
        found = Counter(row["status"] for row in rows)
        assert (found["scored"], found["ungraded"]) == (edge.scored, edge.ungraded), form
        assert found["failed"] + found["unjudged"] + found["pending"] == edge.open, form
    for row in edge.rows[: edge.selected]:
        assert invoked(["show", RUN, str(row["id"])], stores[name]).strip()


@edges
def test_the_long_form_sums_up_to_the_report(stores: dict[str, Path], tmp_path: Path, name: str) -> None:
    edge = EDGES[name]
    rows = WRITTEN["long"].rows(RUN, stores[name], tmp_path)
    whole = [row for row in rows if row["attribute"] == "(all)"]
    assert len(whole) == edge.selected
    assert sum(row["correct"] or 0 for row in whole) == edge.right
    assert sum(row["correct"] is None for row in whole) == edge.open + edge.ungraded
    for attribute in {row["attribute"] for row in rows}:
        weights = [row["weight"] for row in rows if row["attribute"] == attribute]
        assert sum(weights) == pytest.approx(edge.selected)
