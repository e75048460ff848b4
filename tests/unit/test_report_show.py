import io
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from rich.console import Console

from mmbu_async.report import build_report, print_report, print_row, print_runs, print_status, to_markdown
from mmbu_async.store import RunRecord, Store

MakeRun = Callable[..., tuple[Store, RunRecord]]

HOSTILE = "\x1b[2J\x1b]0;owned\x07 [bold red]x[/] \u202egnp"
PROMPTS = {"system": "You are careful.", "user": "What is shown?\n\nAnswer briefly.", "judge": "Judge this."}


def on_terminal(show: Callable[[Console], None], width: int = 80) -> str:
    written = io.StringIO()
    show(Console(file=written, width=width))
    return written.getvalue()


def shown(make_run: MakeRun, row: Mapping[str, Any], width: int = 80) -> str:
    store, run = make_run([{"id": "this", **row}])
    return on_terminal(lambda console: print_row(store.row(run.id, "this"), PROMPTS, console), width)


def test_a_row_is_shown_with_everything_known_of_it(make_run: MakeRun) -> None:
    text = shown(
        make_run,
        {
            "reply": "A cell.\n<answer>nucleus</answer>",
            "committed": "nucleus",
            "reasoning": "Let me think.",
            "judged": False,
            "failures": ["rate_limit"],
            "images": ("images/cell.tif",),
            "image_scale": 0.5,
            "image_note": "tiff",
            "finish": "length",
            "fields": {"metadata_stain": "H&E", "empty": None},
        },
        width=120,
    )
    for expected in (
        "Row this · classification · number 1",
        "WRONG",
        "images/cell.tif   [converted: tiff; sent at 0.5 of its size]",
        "nucleus   [found by: tag]",
        "wrong, says claude-sonnet-5",
        "TP 0, FP 1, FN 1",
        "You are careful.",
        "What is shown?\n\nAnswer briefly.",
        "Let me think.",
        "Reply, raw (length)\nA cell.\n<answer>nucleus</answer>",
        "Judge this.",
        "Rationale: as listed. [RESULT] 0",
        "rate_limit 429: it was rate_limit",
        "reply, length [req-1]",
        "$0.0110",
        "metadata_stain  H&E",
    ):
        assert expected in text
    assert "empty" not in text


def test_score_detail_is_shown(make_run: MakeRun) -> None:
    text = shown(
        make_run, {"reply": "x", "correct": True, "detail": {"max_iou": 0.123456789, "truth": [[1, 2]]}}
    )
    assert "RIGHT" in text
    assert "max_iou  0.123457" in text
    assert "truth    [[1,2]]" in text


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({}, "PENDING: not asked yet."),
        ({"failures": ["timeout"]}, "FAILED: no attempt gave a reply"),
        ({"reply": "x", "judged": None}, "UNJUDGED: there is no usable verdict"),
        ({"reply": "", "committed": "", "correct": False}, "(empty)   [found by: tag]"),
        ({"reply": "", "committed": "", "correct": False}, "Reply, raw (stop)\n(nothing)"),
        ({"reply": "x", "correct": True, "cost": None}, "at an unknown price"),
        ({"reply": "x", "judged": True, "cost": None}, "over $0.0010"),
        ({"question": "", "images": ()}, "(blank)"),
    ],
)
def test_rows_of_every_kind(make_run: MakeRun, row: Mapping[str, Any], expected: str) -> None:
    assert expected in shown(make_run, row, width=120)


def test_replies_cannot_steer_the_terminal(make_run: MakeRun) -> None:
    text = shown(
        make_run,
        {
            "reply": HOSTILE,
            "reasoning": HOSTILE,
            "judged": False,
            "judge_reply": HOSTILE,
            "question": HOSTILE,
            "options": (HOSTILE,),
            "fields": {HOSTILE: HOSTILE},
            "images": (HOSTILE,),
        },
        width=300,
    )
    assert not any(letter in text for letter in "\x1b\x07\u202e")
    assert text.count(r"\x1b[2J\x1b]0;owned\x07 [bold red]x[/] \u202egnp") >= 8


def test_a_long_reply_is_shown_whole(make_run: MakeRun) -> None:
    assert "y" * 100_000 in shown(make_run, {"reply": "y" * 100_000, "judged": True})


def test_runs_are_listed_with_where_they_stand(make_run: MakeRun) -> None:
    rows: list[Mapping[str, Any]] = [
        {"reply": "x", "judged": True},
        {"reply": "x", "judged": None},
        {"failures": ["timeout"]},
        {},
    ]
    store, run = make_run(rows, name=f"a run {HOSTILE}")
    listed = on_terminal(lambda console: print_runs([(run, store.counts(run.id))], console), width=200)
    assert "\x1b" not in listed
    head, line = listed.splitlines()
    assert head.split() == ["run", "model", "rows", "scored", "failed", "unjudged", "pending", "started"]
    assert line.split()[-6:] == ["4", "1", "1", "1", "1", "2027-01-15"]


def test_the_name_of_a_run_stays_on_one_line(make_run: MakeRun) -> None:
    store, run = make_run([{"reply": "x", "judged": True}], name="mmbu-public-gpt-4o-mini")
    listed = on_terminal(lambda console: print_runs([(run, store.counts(run.id))], console), width=80)
    assert "\nmmbu-public-gpt-4o-mini " in listed


@pytest.mark.parametrize("length", [23, 28, 60])
@pytest.mark.parametrize("busy", [False, True])
def test_no_figure_is_cut_for_a_long_name(make_run: MakeRun, length: int, busy: bool) -> None:
    store, run = make_run([{"reply": "x", "judged": True}], name="n" * length)
    working = {run.id: "at work"} if busy else {}
    listed = on_terminal(
        lambda console: print_runs([(run, store.counts(run.id))], console, working=working), width=80
    )
    assert "2027-01-15" in listed
    assert "…" not in listed
    assert ("at work" in listed) is busy
    assert all(head in listed.splitlines()[0] for head in ("run", "model", "unjudged", "pending", "started"))
    assert listed.count("n") - listed.splitlines()[0].count("n") >= length


def test_the_next_command_can_be_copied_whole(make_run: MakeRun) -> None:
    store, run = make_run([{}], name="a run")
    flags = " --store /a/long/way/to/where/all/the/evaluations/of/this/winter/lie/runs.sqlite"
    counts, totals = store.counts(run.id), store.totals(run.id)
    text = on_terminal(lambda console: print_status(run, counts, totals, console, flags=flags))
    assert f"mmbu resume 'a run'{flags}\n" in text


def test_a_store_without_runs_says_so() -> None:
    assert "no runs yet" in on_terminal(lambda console: print_runs([], console))


@pytest.mark.parametrize(
    ("rows", "following"),
    [
        ([{"reply": "x", "judged": True}, {}], "mmbu resume test-run"),
        ([{"reply": "x", "judged": True}, {"failures": ["timeout"]}], "mmbu resume test-run"),
        ([{"reply": "x", "judged": None}], "mmbu rejudge test-run"),
        ([{"reply": "x", "judged": True}], None),
    ],
)
def test_one_run_is_shown_with_what_comes_next(
    make_run: MakeRun, rows: list[Mapping[str, Any]], following: str | None
) -> None:
    store, run = make_run(rows)
    counts, totals = store.counts(run.id), store.totals(run.id)
    text = on_terminal(lambda console: print_status(run, counts, totals, console))
    assert "test-run: test-vlm-1 on mmbu-public, judge claude-sonnet-5" in text
    assert "1 min 40 s, done" in text
    assert ("Next" in text) is (following is not None)
    assert following is None or following in text


def test_a_tied_panel_needs_one_more_judge(make_run: MakeRun) -> None:
    store, run = make_run([{"reply": "x", "judged": None}])
    counts, totals = store.counts(run.id), store.totals(run.id)
    text = on_terminal(lambda console: print_status(run, counts, totals, console, tied=1))
    assert "mmbu rejudge test-run --panel WITH_ONE_MORE_JUDGE.toml\n" in text


def test_a_run_that_asked_nothing_yet(make_run: MakeRun) -> None:
    store, run = make_run([{}], judge=None)
    counts, totals = store.counts(run.id), store.totals(run.id)
    text = on_terminal(lambda console: print_status(run, counts, totals, console))
    assert "test-run: test-vlm-1 on mmbu-public\n" in text
    assert "no calls" in text


def test_rows_that_no_judge_scores_name_none(make_run: MakeRun) -> None:
    """The run is set up with a judge, which nobody asks; one row has no public answer."""
    rows = [{"reply": "x", "correct": True}, {"reply": "y", "ungraded": True}]
    store, run = make_run(rows)
    assert run.judge is not None
    counts, totals = store.counts(run.id), store.totals(run.id)
    text = on_terminal(lambda console: print_status(run, counts, totals, console))
    assert "judge" not in text.lower().replace("unjudged", "")
    assert "Scored   1, 1 without a public answer, 0 unjudged" in text
    assert "Next" not in text
    table = on_terminal(lambda console: print_runs([(run, counts)], console), width=200)
    assert table.splitlines()[1].split()[2:5] == ["2", "1", "0"], "rows, scored, failed"
    report = build_report(store, run)
    assert report.ran.judge is None
    for said in (on_terminal(lambda console: print_report(report, console), width=100), to_markdown(report)):
        assert "claude-sonnet-5" not in said
        assert "Judge" not in said


def test_a_row_that_needs_no_judge_has_no_judge_prompt(make_run: MakeRun) -> None:
    store, run = make_run([{"id": "this", "reply": "x", "correct": True}])
    detail = store.row(run.id, "this")
    text = on_terminal(lambda console: print_row(detail, {"user": "Where?"}, console))
    assert "Where?" in text
    assert "Judge prompt" not in text
