"""What every form of the report has in common, whatever the run looks like."""

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from rich.console import Console

from mmbu_async.model import Usage
from mmbu_async.report import ReportData, build_report, print_report, to_json, to_markdown
from mmbu_async.store import RunRecord, Store

MakeRun = Callable[..., tuple[Store, RunRecord]]
Row = Mapping[str, Any]

RIGHT: Row = {"reply": "<answer>nucleus</answer>", "judged": True}
WRONG: Row = {"reply": "<answer>other</answer>", "judged": False}
STRATA: Row = {"strata": {"task": ("nuclei",), "metadata_modality": ("CT",)}}
BOX: Row = {
    "reply": "[1, 2, 3, 4]",
    "correct": True,
    "detail": {"max_iou": 0.7, "offered": 1, "box_tp": 1, "box_fp": 0, "box_fn": 0},
}
HOSTILE = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>|[bold red]x[/]\u202egnp\x00\n| a | b |"

RUNS: dict[str, tuple[Sequence[Row], dict[str, Any]]] = {
    "empty": ([RIGHT], {"limit": 0}),
    "one row": ([RIGHT], {}),
    "all right": ([{**RIGHT, **STRATA}] * 40, {}),
    "all wrong": ([{**WRONG, **STRATA}] * 40, {}),
    "no judge": ([{**RIGHT, "judged": None}, BOX], {"judge": None}),
    "missing metadata": ([{**RIGHT, **STRATA}, WRONG, {**RIGHT, "strata": {"metadata_stain": ("H&E",)}}], {}),
    "nothing asked yet": ([{}, {}], {}),
    "all failed": ([{"failures": ["quota"]}] * 3, {}),
    "boxes only": ([BOX] * 3, {}),
    "unknown price": ([{**RIGHT, "cost": None}] * 2, {}),
    "hostile": (
        [
            {
                **RIGHT,
                "family": HOSTILE,
                "strata": {HOSTILE: (HOSTILE, "x")},
                "model": HOSTILE,
                "id": HOSTILE,
            },
            WRONG,
        ],
        {"name": HOSTILE},
    ),
}


def report_of(name: str, make_run: MakeRun) -> ReportData:
    rows, settings = RUNS[name]
    return build_report(*make_run(rows, **settings))


def on_terminal(report: ReportData, width: int = 80, **settings: Any) -> str:
    written = io.StringIO()
    print_report(report, Console(file=written, width=width, **settings))
    return written.getvalue()


@pytest.fixture(params=RUNS)
def report(request: pytest.FixtureRequest, make_run: MakeRun) -> ReportData:
    return report_of(request.param, make_run)


def test_the_first_line_says_whether_the_run_is_complete(report: ReportData) -> None:
    for text in (on_terminal(report, width=200), to_markdown(report).replace("**", "")):
        assert text.splitlines()[0].rstrip() == report.first_line
    assert json.loads(to_json(report))["first_line"] == report.first_line


def test_no_figure_is_nan_or_a_python_none(report: ReportData) -> None:
    for text in (on_terminal(report), to_markdown(report), to_json(report)):
        assert not re.search(r"\b(nan|NaN|inf|Infinity|None)\b", text)


def test_a_terminal_of_80_columns_is_wide_enough(report: ReportData) -> None:
    text = on_terminal(report)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" not in text


def test_colour_is_no_part_of_what_is_said(report: ReportData) -> None:
    coloured = on_terminal(report, force_terminal=True, color_system="truecolor")
    console = Console(file=io.StringIO(), width=80)
    assert "\x1b[" in coloured
    plain = "".join(segment.text for segment in console.render(_decoded(coloured)))
    assert plain.rstrip() == on_terminal(report).rstrip()


def _decoded(ansi: str) -> Any:
    from rich.text import Text

    return Text.from_ansi(ansi)


def test_json_has_every_number_of_the_report(report: ReportData) -> None:
    found = json.loads(to_json(report))
    assert found["rows"]["selected"] == report.rows.selected
    assert found["overall"]["n"] == report.overall.n
    assert found["overall"]["worst"]["accuracy"]["value"] == report.overall.worst.accuracy.value
    assert len(found["attributes"]) == len(report.attributes)
    assert found["convention"] == report.convention
    assert found["ran"]["fingerprint"] == report.ran.fingerprint


def test_markdown_tables_have_as_many_cells_in_each_row(report: ReportData) -> None:
    cells = None
    for text in to_markdown(report).splitlines():
        found = len(text.replace(r"\|", "").split("|")) if text.startswith("|") else None
        assert found is None or cells is None or found == cells
        cells = found


def test_hostile_text_is_shown_and_does_nothing(make_run: MakeRun) -> None:
    report = report_of("hostile", make_run)
    terminal, markdown = on_terminal(report, width=300), to_markdown(report)
    for text in (terminal, markdown):
        assert not any(letter in text for letter in "\x1b\x07\x00\u202e")
        assert "alert(1)" in text
    shown = r"\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>|[bold red]x[/]\u202egnp\x00\n| a | b |"
    assert "".join(shown.split()) in "".join(terminal.split())  # lines wrap where there is room
    assert "<script>" not in markdown
    assert "\n| a |" not in markdown
    assert json.loads(to_json(report))["attributes"][0]["name"] == HOSTILE


def test_an_incomplete_run_shows_bounds_and_no_score(make_run: MakeRun) -> None:
    rows = [RIGHT] * 5 + [WRONG] * 4 + [{"failures": ["timeout"]}]
    text = on_terminal(build_report(*make_run(rows)))
    assert "Accuracy  0.500–0.600" in text
    assert "Failed rows   1 timeout" in text
    assert "Wilson 0" not in text


@pytest.mark.parametrize("kind", ["nothing asked yet", "all failed"])
def test_tables_that_could_only_say_0_to_1_are_left_out(kind: str, make_run: MakeRun) -> None:
    text = on_terminal(report_of(kind, make_run))
    assert "Accuracy  0.000–1.000" in text
    assert "By task" not in text
    assert "unknown" not in text.split("Time ")[1].splitlines()[0]


def test_what_is_unknown_of_the_money_is_said(make_run: MakeRun) -> None:
    text = on_terminal(report_of("unknown price", make_run))
    assert "unknown" in text
    assert "What 2 of 2 model calls cost is not known" in text
    markdown = to_markdown(build_report(*make_run([{**RIGHT, "cost": None}, RIGHT], name="half")))
    assert "over $0.0100" in markdown


def test_the_largest_values_of_an_attribute_are_shown_and_the_rest_announced(make_run: MakeRun) -> None:
    rows = [{**RIGHT, "strata": {"metadata_modality": (f"modality {n:02}",)}} for n in range(12)]
    report = build_report(*make_run(rows))

    def shown(most: int | None) -> tuple[int, bool]:
        written = io.StringIO()
        print_report(report, Console(file=written, width=80), most=most)
        return written.getvalue().count("modality 0") + written.getvalue().count("modality 1"), (
            "more; --all shows" in written.getvalue()
        )

    assert shown(5) == (5, True)
    assert shown(11) == (12, False)  # a single one left is shown instead of announced
    assert shown(None) == (12, False)


def test_small_groups_are_marked(make_run: MakeRun) -> None:
    rows = [{**RIGHT, "family": "counting"}] * 29 + [{**RIGHT, "family": "classification"}] * 30
    text = on_terminal(build_report(*make_run(rows)))
    assert "29*" in text
    assert "30*" not in text
    assert "* fewer than 30 rows" in text


def test_attributes_that_say_nothing_new_are_named_only(make_run: MakeRun) -> None:
    def row(value: str) -> Row:
        return {**RIGHT, "strata": {"task": (value,), "metadata_topic": (value,), "VQA_type": ("open",)}}

    report = build_report(*make_run([row("nuclei"), row("smear")]))
    text = on_terminal(report)
    assert "The same in all rows: VQA_type open." in text
    assert "Not shown twice: metadata_topic has the groups of task topic." in text
    assert text.count("smear") == 1
    assert to_markdown(report).count("| smear |") == 2


def test_the_last_line_has_the_outcome_for_who_does_not_scroll(make_run: MakeRun) -> None:
    lines = on_terminal(build_report(*make_run([RIGHT, WRONG]))).rstrip().splitlines()
    assert lines[-2:] == [lines[0], "Accuracy 0.500, micro-F1 0.500"]


def test_images_and_missing_token_counts_are_mentioned_where_there_are_any(make_run: MakeRun) -> None:
    rows = [{**RIGHT, "image_scale": 0.5, "usage": Usage(reported=False)}, {**RIGHT, "shared": True}]
    text = on_terminal(build_report(*make_run(rows)))
    assert "1 row with an image scaled down" in text
    assert "1 model reply came without token counts" in text
    saved = "1 verdict of claude-sonnet-5, $0.0010 saved"
    assert f"Taken from identical judge prompts: {saved}." in text


def test_a_judge_is_shown_under_the_name_of_its_verdicts(make_run: MakeRun) -> None:
    judge = {"model": "claude-sonnet-5", "endpoint": "anthropic", "max_tokens": 64}
    make_run([RIGHT])
    report = build_report(*make_run([RIGHT, WRONG], name="second", judge=judge))
    assert "verdicts kept as claude-sonnet-5-2" in " ".join(on_terminal(report).split())
    assert "- Judge, name in the store: claude-sonnet-5-2" in to_markdown(report)
