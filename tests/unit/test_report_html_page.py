"""The page of a run: what it says, whatever the run looks like, and that it is a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from mmbu_async.model import Usage
from mmbu_async.report import ReportData, build_report
from mmbu_async.report.html import markup, to_html, workings
from mmbu_async.report.sections import Section
from tests.edges import EDGES, edge_run
from tests.hostile import LONG_WORD, MARK, hostile_run
from tests.pages import Page, read_page
from tests.stored_run import MakeRun, Row

RIGHT: Row = {"reply": "x", "judged": True}
WRONG: Row = {"reply": "x", "judged": False}
BOX: Row = {
    "reply": "[1, 2, 3, 4]",
    "correct": True,
    "family": "object detection",
    "detail": {"max_iou": 0.7, "offered": 1, "box_tp": 1, "box_fp": 0, "box_fn": 0},
}


def of(rows: Sequence[Row], make_run: MakeRun, **settings: Any) -> Page:
    return read_page(to_html(build_report(*make_run(rows, **settings))))


def test_only_cells_with_longer_than_words_break_inside_of_them() -> None:
    long = "sha256-0123456789abcdef"
    made = markup.table(
        "what", ("", "direction"), [("gained", "server_error"), (long, f"x {long}")], numbers=False
    )
    assert '<th scope="row">gained</th><td>server_error</td>' in made
    assert f'<th scope="row" class="long">{long}</th><td class="long">x {long}</td>' in made
    assert 'class="n">server_error</td>' in markup.table("what", ("", "n"), [("a", "server_error")])


@pytest.fixture(params=EDGES)
def edge(request: pytest.FixtureRequest, make_run: MakeRun) -> tuple[ReportData, Page]:
    report = build_report(*edge_run(make_run, request.param))
    return report, read_page(to_html(report))


def test_every_run_has_a_sensible_page(edge: tuple[ReportData, Page]) -> None:
    report, page = edge
    assert report.first_line in page.text
    assert report.run in page.text
    assert report.convention in page.text or not report.overall.n
    assert not re.search(r"\b(nan|NaN|inf|None|True|False)\b", page.text)
    assert ("Unofficial: " in page.text) is not report.ran.official


def test_the_first_thing_said_is_whether_the_run_is_complete(edge: tuple[ReportData, Page]) -> None:
    report, page = edge
    body = page.html.partition("<body>")[2]
    assert report.first_line in body.partition("<h1>")[0]


def test_figures_and_their_data_are_those_of_the_report(make_run: MakeRun) -> None:
    rows = [
        *[{**RIGHT, "family": "counting", "strata": {"task": ("nuclei",), "metadata_stain": ("H&E",)}}] * 31,
        *[{**WRONG, "family": "counting", "strata": {"task": ("nuclei",), "metadata_stain": ("DAPI",)}}] * 9,
        *[{**RIGHT, "family": "classification"}] * 5,
    ]
    report = build_report(*make_run(rows))
    page = read_page(to_html(report))
    header, counting, classification = page.csv("families-accuracy")
    assert header[:5] == ["task_family", "rows", "right", "open", "accuracy"]
    assert counting[:5] == ["counting", "40", "31", "0", "0.775"]
    assert float(counting[5]) == report.families[0].accuracy.low
    assert classification[:5] == ["classification", "5", "5", "0", "1.0"]
    assert [row[0] for row in page.csv("by-metadata-stain")] == ["metadata_stain", "H&E", "DAPI", ""]
    assert "0.800" in page.text  # 36 / 45
    assert "9*" in page.text
    assert "Hollow and *: fewer than 30 rows" in page.text


def test_open_rows_give_ends_in_place_of_a_score(make_run: MakeRun) -> None:
    page = of([RIGHT] * 5 + [WRONG] * 4 + [{"failures": ["timeout"]}], make_run)
    assert "INCOMPLETE: 1 of 10 rows" in page.text
    assert "Accuracy 0.500–0.600" in page.text
    assert "Dashed" not in page.text
    assert "Hatched: from all open rows wrong to all of them right" in page.text
    (_, _, row) = page.csv("accuracy-within")
    assert row[:3] == ["failed: no reply", "1", ""]


def test_a_run_without_any_score_shows_no_groups(make_run: MakeRun) -> None:
    page = of([{}, {"failures": ["quota"]}], make_run)
    assert "By task family" not in page.text
    assert "Where answers were lost" in page.text


def test_large_attributes_are_cut_in_the_figure_and_whole_below_it(make_run: MakeRun) -> None:
    rows = [{**RIGHT, "strata": {"specimen": (f"value {number:02}",)}} for number in range(40)]
    page = of(rows, make_run)
    assert "The 12 largest of 40 groups." in page.text
    assert "Table of 40 groups" in page.text
    assert len(page.csv("by-specimen")) == 41
    drawing = next(one for one in page.svgs if "value 00" in "".join(one.itertext()))
    assert "value 11" in "".join(drawing.itertext())
    assert "value 12" not in "".join(drawing.itertext())


def test_attributes_that_say_nothing_new_are_named(make_run: MakeRun) -> None:
    strata = [{"stain": (one,), "colour": (one,), "form": ("open",)} for one in ("H&E", "DAPI")]
    page = of([{**RIGHT, "strata": one} for one in strata], make_run)
    assert "The same in all rows: form open." in page.text
    assert "Not shown twice: stain has the groups of colour." in page.text


def test_object_detection_has_its_histogram(make_run: MakeRun) -> None:
    low = {**BOX, "correct": False, "detail": {**BOX["detail"], "max_iou": 0.3}}
    page = of([BOX, BOX, low], make_run)
    assert "right from IoU 0.5 on" in page.text
    assert page.csv("max-iou")[1:] == [["0.3", "0.35", "1"], ["0.7", "0.75", "2"]]
    assert "Mean max-IoU" in page.text


def test_where_answers_were_lost_adds_up(make_run: MakeRun) -> None:
    rows = [RIGHT] * 6 + [WRONG] * 2 + [{**WRONG, "how": "untagged"}, {**WRONG, "finish": "length"}]
    found = of(rows, make_run).csv("points-lost")
    assert found[1:] == [
        ["answer tag", "8", "0.2", "0.0"],
        ["untagged: whole reply taken", "1", "0.1", "0.0"],
        ["truncated by the token limit", "1", "0.1", "0.0"],
    ]


def test_what_was_not_streamed_or_not_counted_is_said(make_run: MakeRun) -> None:
    page = of([{**RIGHT, "usage": Usage(reported=False)}] * 2, make_run)
    assert "Not known: input tokens, output tokens, reasoning tokens." in page.text


def test_money_is_unknown_where_it_is_and_never_nothing(make_run: MakeRun) -> None:
    page = of([{**RIGHT, "cost": None}] * 2, make_run)
    assert "Model unknown" in page.text
    assert "In all over $0.0020" in page.text
    assert "A scored row over $0.0010" in page.text
    assert "Model unknown" not in of([RIGHT], make_run, name="priced").text


def test_clusters_are_named_where_intervals_are_by_them(make_run: MakeRun) -> None:
    rows = [{**RIGHT, "detail": {"cluster": f"figure {number // 2}"}} for number in range(8)]
    page = of(rows, make_run)
    assert "as many clusters of rows as there are" in page.text
    assert "cluster bootstrap" in page.text


def test_what_shown_options_gain_is_drawn(make_run: MakeRun) -> None:
    make_run([WRONG, RIGHT, WRONG, WRONG], name="open")
    store, run = make_run([RIGHT, RIGHT, WRONG, WRONG], name="closed", benchmark="mmbu-closed")
    page = read_page(to_html(build_report(store, run)))
    assert page.csv("delta-accuracy")[1][:3] == ["all rows in both", "4", "0.25"]
    assert page.csv("delta-f1")[1][:3] == ["all rows in both", "4", "0.25"]
    assert "Run closed (closed) minus run open (open)" in page.text


def test_tables_that_others_add_are_shown_even_under_one_title(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = Section(title="Run", columns=("rows",), rows=(("<b>bold</b>", "7"),), note="As counted.")
    monkeypatch.setattr(workings, "sections", lambda report: iter([added, added]))
    page = of([RIGHT], make_run)
    assert page.text.count("<b>bold</b> 7 As counted.") == 2
    assert [one["id"] for one in page.all("section")][1:3] == ["further-1", "further-2"]


def test_hostile_text_is_shown_as_text(make_run: MakeRun) -> None:
    page = read_page(to_html(build_report(*hostile_run(make_run))))
    assert MARK in page.text
    assert f"<script>window.{MARK}=1</script>" in page.text
    assert "${marked}" in page.text  # neither mathtext nor a template
    assert r"\x00" in page.text
    assert r"\u202e" in page.text
    assert len(page.html) < 3_000_000


def test_a_long_text_is_cut_and_its_length_said(make_run: MakeRun) -> None:
    page = of(
        [{**RIGHT, "model": LONG_WORD, "strata": {"note": (LONG_WORD,), "side": ("x",)}}, RIGHT], make_run
    )
    assert "(100,006 characters)" in page.text
    assert max(map(len, page.text.split())) < 1_000
    assert all(len(cell) < 32_000 for row in page.csv("by-note") for cell in row)


def test_no_cell_of_the_data_is_a_formula(make_run: MakeRun) -> None:
    rows = [{**RIGHT, "strata": {"=1+1": ("=cmd()",)}}, {**WRONG, "strata": {"=1+1": ("-2",)}}]
    found = of(rows, make_run).csv("by-1-1")
    assert found[0][0] == "'=1+1"
    assert {row[0] for row in found[1:]} == {"'=cmd()", "-2"}


def test_the_same_report_gives_the_same_page(make_run: MakeRun) -> None:
    report = build_report(*make_run([RIGHT, WRONG, BOX]))
    assert to_html(report) == to_html(report)


def test_what_matplotlib_is_set_to_neither_shows_nor_changes(make_run: MakeRun) -> None:
    import matplotlib

    report = build_report(*make_run([RIGHT, WRONG, BOX]))
    before = to_html(report)
    ours: Any = {"text.usetex": True, "svg.fonttype": "path", "axes.facecolor": "red", "font.size": 40.0}
    with matplotlib.rc_context(ours):
        assert to_html(report) == before
        assert matplotlib.rcParams["font.size"] == 40.0
