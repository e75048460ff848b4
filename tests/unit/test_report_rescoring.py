"""Which rows a re-score changed, in every form of the report."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich.console import Console

from mmbu_async.model import Answer, Score, Status
from mmbu_async.report import ReportData, build_report, print_report, to_json, to_markdown
from mmbu_async.store import RunRecord, ScoreInput, Store

MakeRun = Callable[..., tuple[Store, RunRecord]]
Row = Mapping[str, Any]
RIGHT: Row = {"reply": "nucleus", "judged": True}
WRONG: Row = {"reply": "nucleus", "judged": False}


def scored_anew(store: Store, run: RunRecord, correct: Callable[[ScoreInput], bool | None]) -> None:
    def stream() -> Iterator[tuple[ScoreInput, Answer, Score]]:
        for one in store.score_inputs(run.id, run.judge.id if run.judge else None):
            right = correct(one)
            score = Score(status=Status.UNJUDGED)
            if right is not None:
                score = Score(status=Status.SCORED, correct=right, tp=right, fp=not right, fn=not right)
            yield one, Answer(text="nucleus", how="list"), score

    store.replace_scores(
        run.id, run.judge.id if run.judge else None, stream(), package_version="0.2.0", now=1_800_000_600.0
    )


def forms(report: ReportData) -> tuple[str, str, dict[str, Any]]:
    written = io.StringIO()
    print_report(report, Console(file=written, width=80))
    assert max(map(len, written.getvalue().splitlines())) <= 80
    return written.getvalue(), to_markdown(report), json.loads(to_json(report))


def test_a_report_names_the_rows_that_a_rescore_changed(make_run: MakeRun) -> None:
    store, run = make_run([*(RIGHT for _ in range(7)), *(WRONG for _ in range(8)), {"failures": ["image"]}])
    report = build_report(store, run)
    assert report.rescoring is None
    assert not any("re-scor" in str(form).lower() for form in forms(report))

    # 2 right rows become wrong, 3 lose their score, 8 wrong ones become right; 2 only move by a rung.
    outcomes = [False, False, None, None, None, True, True, *(True for _ in range(8))]
    scored_anew(store, run, lambda one: outcomes[one.sample.position])
    report = build_report(store, run)
    assert report.rescoring is not None
    (cause,) = report.rescoring.causes
    assert (cause.cause, cause.rows) == ("reading", 15)
    assert (cause.right_to_wrong, cause.wrong_to_right, cause.now_open) == (2, 8, 3)
    terminal, markdown, data = forms(report)
    named = ", ".join(f"row-{n}" for n in range(10)) + " and 5 more"
    for text in (terminal, markdown):
        assert "by another reading" in text
        assert "mmbu-async 0.2.0" in text
        assert named in " ".join(text.split())
    assert data["rescoring"]["row_ids"] == [f"row-{n}" for n in range(10)]
    assert (data["rescoring"]["rows"], data["rescoring"]["at"]) == (15, 1_800_000_600.0)


def test_it_is_said_also_where_no_score_is_left(make_run: MakeRun) -> None:
    store, run = make_run([RIGHT, WRONG])
    scored_anew(store, run, lambda one: None)
    terminal, markdown, _ = forms(build_report(store, run))
    for text in (terminal, markdown):
        assert "changed: row-0, row-1." in text


def test_ids_from_a_dataset_steer_nothing(make_run: MakeRun) -> None:
    store, run = make_run([{**RIGHT, "id": "a\x1b[2J|<b>"}])
    scored_anew(store, run, lambda one: False)
    terminal, markdown, _ = forms(build_report(store, run))
    assert "\x1b" not in terminal
    assert r"a\\x1b\[2J\|&lt;b&gt;" in markdown
