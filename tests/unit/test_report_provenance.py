"""What a report says of its judges: whose word counts, whether that is official, and what to be wary of."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from mmbu_async.report import build_report, print_report, to_json, to_markdown
from mmbu_async.report.html import to_html
from mmbu_async.report.leaderboard import to_leaderboard
from tests.stored_run import CONFIG, OFFICIAL_JUDGE, MakeRun

ROWS = [{"reply": "x", "judged": True}, {"reply": "y", "judged": False}]
OTHER = {"model": "gpt-4o", "endpoint": "openai", "max_tokens": 512, "prompt": OFFICIAL_JUDGE["prompt"]}
PANEL = {"panel": [OFFICIAL_JUDGE, OTHER], "by": "majority"}
ASKED = {"panel": [{"model": "gpt-4o", "name": "strict", "endpoint": "openai", "base_url": None, "seed": 7}]}


def on_terminal(report: Any) -> str:
    console = Console(file=io.StringIO(), width=100)
    print_report(report, console)
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


def majority(make_run: MakeRun) -> Any:
    """Scored by a majority, whose verdicts need not be there for what is said about it."""
    config: Mapping[str, Any] = {**CONFIG, **ASKED, "verdict": "majority"}
    return build_report(*make_run(ROWS, judge=PANEL | {"model": "majority"}, config=config))


def test_a_majority_is_unofficial_in_every_form(make_run: MakeRun) -> None:
    report = majority(make_run)
    assert not report.ran.official
    words = "the verdict is the majority of claude-sonnet-5, gpt-4o, not that of claude-sonnet-5 alone"
    assert report.ran.unofficial == (words,)
    forms = (
        on_terminal(report),
        to_markdown(report),
        to_json(report),
        to_html(report),
        to_leaderboard(report),
    )
    for form in forms:
        assert words in form
        assert "unofficial" in form.lower()


def test_further_judges_that_do_not_decide_leave_a_score_official(make_run: MakeRun) -> None:
    report = build_report(*make_run(ROWS, config={**CONFIG, **ASKED}))
    assert report.ran.official
    for form in (on_terminal(report), to_markdown(report), to_html(report)):
        assert "official settings" in form.lower()
    assert json.loads(to_json(report))["ran"]["official"] is True


def test_each_judge_that_is_asked_is_told_with_its_settings(make_run: MakeRun) -> None:
    report = majority(make_run)
    assert [(party.name, party.model, party.host) for party in report.ran.panel] == [
        ("claude-sonnet-5", "claude-sonnet-5", "api.anthropic.com"),
        ("strict", "gpt-4o", "api.openai.com"),
    ]
    assert report.ran.panel[1].settings == {"seed": 7}
    assert report.ran.judge.prompts == {"judge": OFFICIAL_JUDGE["prompt"]}
    assert "Asked strict: gpt-4o at api.openai.com (openai), seed 7" in on_terminal(report)
    markdown = to_markdown(report)
    assert "- Asked judge: gpt-4o at api.openai.com (openai)" in markdown
    assert "- Asked judge, name in the store: strict" in markdown
    assert build_report(*make_run(ROWS, name="alone")).ran.panel == ()


def test_a_judge_of_the_models_own_maker_is_told_in_every_form(make_run: MakeRun) -> None:
    store, run = make_run(ROWS, judge=OFFICIAL_JUDGE | {"model": "test-vlm-1"})
    assert build_report(store, run).ran.warnings == (), "a name that nobody knows says nothing"
    store._connection.execute("UPDATE run SET model = 'anthropic/claude-opus-5'")
    store._connection.execute(
        "UPDATE judge SET identity = replace(identity, 'test-vlm-1', 'claude-sonnet-5')"
    )
    report = build_report(store, store.run("test-run"))
    words = (
        "the judge claude-sonnet-5 and the model under test, anthropic/claude-opus-5, are both by Anthropic"
    )
    assert len(report.ran.warnings) == 1 and report.ran.warnings[0].startswith(words)
    for form in (on_terminal(report), to_markdown(report), to_json(report), to_html(report)):
        assert words in form


def test_one_of_a_panel_is_enough(make_run: MakeRun) -> None:
    store, _ = make_run(ROWS, config={**CONFIG, **ASKED})
    store._connection.execute("UPDATE run SET model = 'gpt-4.1'")
    warnings = build_report(store, store.run("test-run")).ran.warnings
    assert [warning.split(" and ")[0] for warning in warnings] == ["the judge gpt-4o"]


def test_where_no_row_needs_a_judge_nobody_is_warned_of_one(make_run: MakeRun) -> None:
    store, _ = make_run([{"reply": "x", "correct": True}])
    store._connection.execute("UPDATE run SET model = 'claude-opus-5'")
    assert build_report(store, store.run("test-run")).ran.warnings == ()
