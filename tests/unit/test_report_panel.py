"""Judges beside each other: whose vote counts, the run under each, agreement, and the rows they differ on."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mmbu_async.model import Answer, Score, Status, Verdict
from mmbu_async.report import build_report, to_json, to_markdown
from mmbu_async.report.panel import Panel, tied
from mmbu_async.report.sections import kappa_cells
from mmbu_async.stats import Kappa, cohen_kappa, fleiss_kappa, krippendorff_alpha
from mmbu_async.store import RunRecord, Standing, Store, VerdictRecord, Writer
from tests.stored_run import MakeRun

SECOND = {"model": "second", "endpoint": "openai", "max_tokens": 512, "prompt": "p" * 64}
THIRD = {"model": "third", "endpoint": "openai", "max_tokens": 512, "prompt": "p" * 64}
FIRST = [True, True, True, False, False, True, None, True]
"""What the run's own judge says of rows 0 to 7. Row 8 is scored by rule, row 9 has no reply."""


def rows(said: Sequence[bool | None] = FIRST) -> list[dict[str, Any]]:
    judged = [{"reply": "<answer>x</answer>", "judged": verdict} for verdict in said]
    return [*judged, {"reply": "<answer>[1, 2]</answer>", "correct": True}, {"failures": ["timeout"]}]


def vote(
    store: Store, run: RunRecord, judge: Mapping[str, Any], said: Sequence[bool | None], **changes: Any
) -> None:
    """Another judge's verdicts on the same prompts, row by row; '' leaves a row out."""
    judge_id = store.judge(str(judge["model"]), judge, now=1.0).id

    async def write() -> None:
        async with Writer.open(store.path, synchronous="normal") as writer:
            for position, correct in enumerate(said):
                sha = hashlib.sha256(f"row-{position}".encode()).digest()
                await writer.write(
                    VerdictRecord(
                        run_id=run.id,
                        sample_key=position + 1,
                        judge_id=judge_id,
                        verdict=Verdict(correct=correct, reply="…"),
                        **{"prompt_sha": sha} | changes,
                    )
                )

    asyncio.run(write())


def panel_of(store: Store, run: RunRecord) -> Panel:
    found = build_report(store, store.run(run.name)).panel
    assert found is not None
    return found


def figures(found: Kappa | None) -> tuple[Any, ...]:
    assert found is not None
    return (found.n, found.percent, found.kappa, found.low, found.high)


@pytest.fixture
def keyed() -> list[dict[str, Any]]:
    """Rows whose ids make the prompts that `vote` answers."""
    return [row | {"id": f"row-{number}"} for number, row in enumerate(rows())]


def test_one_judge_is_no_panel(make_run: MakeRun, keyed: list[dict[str, Any]]) -> None:
    store, run = make_run(keyed)
    report = build_report(store, run)
    assert report.panel is None
    assert "Judges" not in to_markdown(report)


def test_the_run_under_each_judge(make_run: MakeRun, keyed: list[dict[str, Any]]) -> None:
    store, run = make_run(keyed)
    vote(store, run, SECOND, [True, True, False, False, False, False, True, True])
    own, second = panel_of(store, run).judges
    assert (own.name, own.decides, own.judged, own.missing, own.right) == ("claude-sonnet-5", True, 7, 1, 5)
    assert (own.accuracy, own.worst, own.best) == (None, 0.6, 0.8), (
        "row 8 is right by rule, rows 6 and 9 open"
    )
    assert (second.decides, second.judged, second.missing, second.right) == (False, 8, 0, 4)
    assert (second.worst, second.best) == (0.5, 0.6)
    assert (own.spend.calls if own.spend else 0, second.spend.calls if second.spend else 9) == (8, 0)
    # The run's own figures are those of its own judge.
    overall = build_report(store, run).overall
    assert (overall.worst.accuracy.value, overall.best.accuracy.value) == (own.worst, own.best)


def test_agreement_is_that_of_the_statistics(make_run: MakeRun, keyed: list[dict[str, Any]]) -> None:
    store, run = make_run(keyed)
    second: list[bool | None] = [True, True, False, False, False, False, True, None]
    third: list[bool | None] = [True, False, False, False, True, False, True, True]
    vote(store, run, SECOND, second)
    vote(store, run, THIRD, third)
    found = panel_of(store, run)
    both = [(one, two) for one, two in zip(FIRST, second, strict=True) if one is not None and two is not None]
    assert [(pair.first, pair.second, pair.agreement.n) for pair in found.pairs] == [
        ("claude-sonnet-5", "second", 6),
        ("claude-sonnet-5", "third", 7),
        ("second", "third", 7),
    ]
    expected = cohen_kappa({pair: both.count(pair) for pair in both})
    assert figures(found.pairs[0].agreement) == pytest.approx(figures(expected))
    triples = list(zip(FIRST, second, third, strict=True))
    alone = [triple for triple in triples if None not in triple]
    expected = fleiss_kappa({triple: alone.count(triple) for triple in alone})
    assert figures(found.fleiss) == pytest.approx(figures(expected))
    alpha = krippendorff_alpha({triple: triples.count(triple) for triple in triples})
    assert found.alpha == pytest.approx(alpha)
    differ = [f"row-{n}" for n, triple in enumerate(triples) if {True, False} <= set(triple)]
    assert (found.disagreeing, found.disagreeing_rows, found.compared) == (4, tuple(differ), 8)
    for text in (to_markdown(build_report(store, run)), to_json(build_report(store, run))):
        assert "second" in text and "row-1" in text
    markdown = to_markdown(build_report(store, run))
    assert "| claude-sonnet-5 / second | 6 | 66.7 % |" in markdown
    assert "They disagree on 4 rows: row-1, row-2" in markdown
    assert "all of them (Fleiss)" in markdown


def test_a_verdict_on_another_reading_is_no_vote(make_run: MakeRun, keyed: list[dict[str, Any]]) -> None:
    store, run = make_run(keyed)
    vote(store, run, SECOND, [True] * 8, prompt_sha=b"other")
    second = panel_of(store, run).judges[1]
    # Row 6, of which its own judge said nothing, has a prompt all the same.
    assert (second.judged, second.missing) == (0, 8)
    patterns = store.vote_patterns(run.id)
    assert sum(patterns.values()) == 10
    assert {pattern.standing for pattern in patterns} == {Standing.JUDGED, Standing.RIGHT, Standing.OPEN}
    listed = list(store.voted_rows(run.id))
    assert [row.row_id for row in listed] == [f"row-{n}" for n in range(10)]
    assert (listed[0].votes, listed[6].votes, listed[8].votes) == ({1: True}, {}, {})
    assert (listed[8].standing, listed[9].standing) == (Standing.RIGHT, Standing.OPEN)


def test_a_majority_is_shown_and_not_compared(make_run: MakeRun, keyed: list[dict[str, Any]]) -> None:
    store, run = make_run(keyed)
    vote(store, run, SECOND, [True, True, False, False, False, False, True, True])
    vote(store, run, THIRD, [True, False, False, False, True, False, True, None])
    assert run.judge is not None
    identity = {"panel": [run.judge.identity, SECOND, THIRD], "by": "majority"}
    majority = store.judge("majority", identity, now=1.0).id
    assert store.derive_verdicts(run.id, majority) == 8
    assert store.derive_verdicts(run.id, majority) == 0
    assert store.derive_verdicts(run.id, run.judge.id) == 0, "of a judge that is asked nothing is derived"
    said = [row.votes.get(majority) for row in store.voted_rows(run.id)][:8]
    assert said == [True, True, False, False, False, False, True, True]
    found = panel_of(store, run)
    assert [judge.name for judge in found.judges] == ["claude-sonnet-5", "second", "third", "majority"]
    assert (found.judges[3].derived, found.judges[3].spend) == (True, None)
    assert len(found.pairs) == 3
    verdict = next(store.rows(run.id)).verdicts["majority"]
    assert verdict.reply == "claude-sonnet-5: 1; second: 1; third: 1"
    # Half of the votes is no majority, nor is half of a panel in which one says nothing.
    two = store.judge("majority", {"panel": [run.judge.identity, SECOND], "by": "majority"}, now=1.0).id
    store.derive_verdicts(run.id, two)
    said = [row.votes.get(two) for row in store.voted_rows(run.id)][:8]
    assert said == [True, True, None, False, False, None, None, True]
    assert tied(store, run) == 0, "no majority decides"
    store.set_run_judge(run.id, majority)
    assert tied(store, store.run(run.name)) == 0, "a vote that is missing is no tie"
    store.set_run_judge(run.id, two)
    assert tied(store, store.run(run.name)) == 2


def test_judges_that_always_agree(make_run: MakeRun, keyed: list[dict[str, Any]]) -> None:
    always = [row | ({"judged": True} if "judged" in row else {}) for row in keyed]
    store, run = make_run(always)
    vote(store, run, SECOND, [True] * 8)
    found = panel_of(store, run)
    assert (found.alpha, found.pairs[0].agreement.kappa, found.pairs[0].agreement.percent) == (
        None,
        None,
        100,
    )
    markdown = to_markdown(build_report(store, run))
    assert "alpha does not exist, since all verdicts are alike" in markdown
    assert "They disagree on none." in markdown


def test_a_judge_that_never_answered_is_compared_with_none(
    make_run: MakeRun, keyed: list[dict[str, Any]]
) -> None:
    store, run = make_run(keyed)
    vote(store, run, SECOND, [None] * 8)
    markdown = to_markdown(build_report(store, run))
    assert "No row has verdicts of two judges." in markdown
    assert "verdicts are alike" not in markdown


def test_agreement_below_chance_has_the_minus_of_other_figures() -> None:
    below = cohen_kappa({(True, False): 3, (False, True): 3})
    assert kappa_cells("a / b", below)[3] == "−1.000"


def test_a_report_is_of_one_moment(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another judge's verdicts become the run's while the report is being made."""
    store, run = make_run([{"id": f"row-{n}", "reply": "x", "judged": True} for n in range(4)])
    vote(store, run, SECOND, [False] * 4)
    second = store.judge("second", SECOND, now=1.0).id
    outcomes = Store.outcomes

    def scored(other: Store) -> Any:
        for one in other.score_inputs(run.id, second):
            yield one, Answer(text="x", how="tag"), Score(status=Status.SCORED, correct=False, fp=1, fn=1)

    def interrupted(self: Store, run_id: int) -> Any:
        for number, row in enumerate(outcomes(self, run_id)):
            if number == 0:
                with Store.open(store.path) as other:
                    other.replace_scores(
                        run.id, second, scored(other), package_version="2", now=9.0, publish={"model": "m"}
                    )
            yield row

    monkeypatch.setattr(Store, "outcomes", interrupted)
    during = build_report(store, run)
    monkeypatch.undo()
    after = build_report(store, run)
    assert (during.rows.right, during.ran.judge.name if during.ran.judge else "") == (4, "claude-sonnet-5")
    assert during.panel is not None and during.panel.judges[0].decides
    assert during.notes == (), "nor does it take the scores for those of another judge"
    assert (after.rows.right, after.ran.judge.name if after.ran.judge else "") == (0, "second")
