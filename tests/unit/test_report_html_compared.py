"""The page of a comparison: what it says, and that it is a page."""

from __future__ import annotations

import pytest

from mmbu_async.report.compare import build_comparison
from mmbu_async.report.html import comparison_to_html
from tests.compared import Shape, make_runs
from tests.edges import EDGES, edge_run
from tests.hostile import MARK, hostile_run
from tests.pages import Page, read_page
from tests.stored_run import MakeRun, Row


def shape(number: int) -> Row:
    """Two families, and a stain that halves each."""
    return {
        "id": f"row {number}",
        "family": "counting" if number % 4 else "object detection",
        "strata": {"stain": ("H&E" if number % 2 else "DAPI",), "form": ("open",)},
    }


def compared(make_run: MakeRun, *outcomes: str, shape: Shape | None = shape) -> Page:
    store, runs = make_runs(make_run, *outcomes, shape=shape)
    return read_page(comparison_to_html(build_comparison(store, runs)))


def test_figures_and_their_data_are_those_of_the_comparison(make_run: MakeRun) -> None:
    page = compared(make_run, "++++--------++++", "++--++++----++++")
    assert "Δ accuracy +0.125" in page.text
    assert "Wins 4 right in b alone" in page.text
    assert "Losses 2 right in a alone" in page.text
    outcomes = {row[0]: row[1:] for row in page.csv("pair-1-outcomes")}
    assert outcomes["all rows"] == ["16", "4", "6", "4", "2"]
    assert outcomes["counting"] == ["12", "3", "4", "3", "2"]
    header, *stains = page.csv("pair-1-1")
    assert header[:6] == ["stain", "rows", "wins", "losses", "right_in_both", "wrong_in_both"]
    assert {row[0]: row[1:6] for row in stains} == {
        "DAPI": ["8", "2", "1", "3", "2"],
        "H&E": ["8", "2", "1", "3", "2"],
    }
    assert "The same in all rows: form open." in page.text


def test_an_attribute_with_the_groups_of_another_is_named_only(make_run: MakeRun) -> None:
    def twice(number: int) -> Row:
        value = f"topic {number % 3}"
        return {"strata": {"task": (value,), "metadata_topic": (value,)}}

    page = compared(make_run, "+-+-+-", "++++--", shape=twice)
    assert "Not shown twice: metadata_topic has the groups of task topic." in page.text
    assert page.text.count("Δ accuracy by task topic") > page.text.count("Δ accuracy by metadata_topic") == 0


def test_flipped_rows_are_listed_with_both_answers(make_run: MakeRun) -> None:
    page = compared(make_run, "+-", "-+")
    assert "Rows that flipped, 2 of 2" in page.text
    assert page.csv("pair-1-flips")[1:] == [
        ["row 0", "object detection", "lost", "nucleus", "nucleolus", "nucleus"],
        ["row 1", "counting", "gained", "nucleolus", "nucleus", "nucleus"],
    ]
    assert "--flips" not in page.text


def test_more_flips_than_shown_are_counted(make_run: MakeRun) -> None:
    page = compared(make_run, "+" * 40, "-" * 40)
    assert " of 40, in dataset order" in page.text
    assert "--flips FILE.csv writes every one" in page.text
    assert "told from chance at 0.05." in page.text
    assert "\u2020" in "".join(page.svgs[2].itertext())


def test_every_later_run_has_a_part_of_its_own(make_run: MakeRun) -> None:
    page = compared(make_run, "++--", "+++-", "+---")
    assert [one["id"] for one in page.all("section")] == ["runs", "pair-1", "pair-2", "compared"]
    assert "McNemar's exact test, by Holm" in page.text
    assert "c against a" in page.text


def test_rows_that_are_left_out_are_said_before_the_numbers(make_run: MakeRun) -> None:
    page = compared(make_run, "++-?", "+-+-")
    assert "Left out: " in page.html.partition("<main>")[0]
    assert page.csv("runs")[1][2] == "3"


def test_without_common_rows_there_is_nothing_to_draw(make_run: MakeRun) -> None:
    page = compared(make_run, "??", "++")
    assert page.all("figure") == []
    assert "state incomplete" in page.html


@pytest.mark.parametrize("name", ["one row, right", "all right", "all wrong", "some of each", "no judge"])
def test_runs_at_the_edges_have_sensible_pages(name: str, make_run: MakeRun) -> None:
    store, one = edge_run(make_run, name, name="one")
    _, other = edge_run(make_run, name, name="other")
    page = read_page(comparison_to_html(build_comparison(store, [one, other])))
    assert "No row flipped." in page.text
    assert (f"{EDGES[name].scored} row") in page.text


def test_hostile_text_is_shown_as_text(make_run: MakeRun) -> None:
    store, one = hostile_run(make_run)
    _, other = hostile_run(make_run, name=f"second {MARK} <b>")
    page = read_page(comparison_to_html(build_comparison(store, [one, other])))
    assert f"<script>window.{MARK}=1</script>" in page.text
    assert f"second {MARK} <b>" in page.text
