"""Scores come from stored facts, know what they were made from, and replace each other whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from mmbu_async.model import Answer, Score, Status
from mmbu_async.store import Cause, RunRecord, ScoreChange, ScoreInput, Store, Writer

if TYPE_CHECKING:
    from tests.conftest import StoreKit

Scored = tuple[ScoreInput, Answer, Score]


def scored(inputs: Iterable[ScoreInput], text: str = "7") -> Iterator[Scored]:
    for one in inputs:
        usable = one.verdict is not None and one.verdict.correct is not None
        score = (
            Score(
                status=Status.SCORED,
                correct=one.verdict.correct,
                tp=1,
                fp=2,
                fn=3,
                detail={"iou": 0.5, "labels": ["a"]},
            )
            if usable and one.verdict
            else Score(status=Status.UNJUDGED)
        )
        yield one, Answer(text=text, how="tag"), score


def rescore(store: Store, run: RunRecord, judge: int, *, only_stale: bool, text: str = "7") -> list[int]:
    """Keys of the rows that were scored."""
    seen: list[int] = []

    def noted() -> Iterator[Scored]:
        for one in scored(store.score_inputs(run.id, judge, only_stale=only_stale), text):
            seen.append(one[0].key)
            yield one

    done = store.replace_scores(run.id, judge, noted(), package_version="1.2", now=7.0)
    assert done.rows == len(seen)
    return seen


async def test_inputs_are_what_was_stored(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 5)
    async with Writer.open(kit.path) as writer:
        await writer.write(kit.reply(run, session, 2, "two", image_scale=1 / 3))
        await writer.write(kit.reply(run, session, 1, "one"), kit.failure(run, session, 3))
        await writer.write(kit.verdict(run, 2, True, sha=b"x" * 32), kit.verdict(run, 1, None))
    one, two = store.score_inputs(run.id, 1)
    assert (one.key, one.completion.text, one.image_scale, one.prompt_sha) == (1, "one", 1.0, b"p" * 32)
    assert one.verdict is not None
    assert one.verdict.correct is None
    assert (two.key, two.image_scale, two.prompt_sha, two.family) == (2, 1 / 3, b"x" * 32, "counting")
    assert two.verdict is not None
    assert (two.verdict.correct, two.verdict.judge) == (True, "claude-sonnet-5")
    assert two.sample == next(row.sample for row in store.rows(run.id) if row.key == 2)
    assert [found.verdict for found in store.score_inputs(run.id, None)] == [None, None]


async def test_only_what_changed_is_stale(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 10)
    local = store.judge("local", {"model": "local"}, now=1.0).id
    assert not store.scores_stale(run.id, 1)
    async with Writer.open(kit.path) as writer:
        await writer.write(*(kit.reply(run, session, key) for key in (1, 2, 3)))
        await writer.write(kit.verdict(run, 1, True))
        assert store.scores_stale(run.id, 1)
        assert rescore(store, run, 1, only_stale=True) == [1, 2, 3]
        assert not store.scores_stale(run.id, 1)
        assert rescore(store, run, 1, only_stale=True) == []

        await writer.write(kit.reply(run, session, 5), kit.verdict(run, 2, False))
        assert rescore(store, run, 1, only_stale=True) == [2, 5]

        # Another verdict, and the same verdict on another prompt.
        await writer.write(kit.verdict(run, 2, True), kit.verdict(run, 1, True, sha=b"q" * 32))
        assert rescore(store, run, 1, only_stale=True) == [1, 2]

        # Another judge's verdicts change nothing under this one, and everything under that one.
        await writer.write(kit.verdict(run, 3, True, judge_id=local))
        assert not store.scores_stale(run.id, 1)
        assert store.scores_stale(run.id, local)
        assert rescore(store, run, local, only_stale=True) == [1, 2, 3, 5]
        assert store.scores_stale(run.id, 1)
        assert rescore(store, run, 1, only_stale=False) == [1, 2, 3, 5]


async def test_scores_are_replaced_and_come_back_whole(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 4)
    async with Writer.open(kit.path) as writer:
        await writer.write(*(kit.reply(run, session, key) for key in (1, 2)))
        await writer.write(kit.verdict(run, 1, False))
    assert store.run("night").scored_at is None
    rescore(store, run, 1, only_stale=False, text="first")
    rescore(store, run, 1, only_stale=False, text="second \ud800")
    found = store.run("night")
    assert (found.scored_at, found.scored_version) == (7.0, "1.2")
    one, two, *rest = store.rows(run.id)
    assert one.answer == Answer(text="second \ufffd", how="tag")
    assert one.score == Score(
        status=Status.SCORED, correct=False, tp=1, fp=2, fn=3, detail={"iou": 0.5, "labels": ["a"]}
    )
    assert (two.status, two.score) == (Status.UNJUDGED, Score(status=Status.UNJUDGED))
    assert [row.score for row in rest] == [None, None]


async def test_a_scoring_that_breaks_off_changes_nothing(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 3000)
    async with Writer.open(kit.path) as writer:
        await writer.write(*(kit.reply(run, session, key) for key in range(1, 3001)))
    rescore(store, run, 1, only_stale=False, text="whole")

    def broken() -> Iterator[Scored]:
        for number, one in enumerate(scored(store.score_inputs(run.id, 1), "half")):
            if number == 2500:
                raise ZeroDivisionError
            yield one

    with pytest.raises(ZeroDivisionError):
        store.replace_scores(run.id, 1, broken(), package_version="2", now=8.0)
    assert {row.answer.text for row in store.rows(run.id) if row.answer} == {"whole"}
    assert store.run("night").scored_version == "1.2"
    assert len(rescore(store, run, 1, only_stale=False, text="again")) == 3000
    assert [row.row_id for row in changed(store, run)] == [f"row-{position}" for position in range(3000)]


async def test_a_run_that_is_writing_does_not_wait_for_a_scoring(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 2000)
    async with Writer.open(kit.path, busy_timeout_s=0.0) as writer:
        await writer.write(*(kit.reply(run, session, key) for key in range(1, 1501)))
        stream = scored(store.score_inputs(run.id, 1))
        posted = []

        def meanwhile() -> Iterator[Scored]:
            for number, one in enumerate(stream):
                if number == 1200:
                    with Store.open(kit.path, busy_timeout_s=0.0) as other:
                        kit.session(other, run, now=50.0)
                    posted.append(number)
                yield one

        done = store.replace_scores(run.id, 1, meanwhile(), package_version="1", now=7.0)
        assert done.rows == 1500
        assert posted == [1200]
        assert await writer.write(kit.reply(run, session, 1600))


async def test_what_a_score_was_is_kept_when_the_reading_changes(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 6)
    async with Writer.open(kit.path) as writer:
        await writer.write(*(kit.reply(run, session, key) for key in (1, 2, 3, 4)))
        await writer.write(*(kit.verdict(run, key, key == 1) for key in (1, 2, 3)))
    assert replaced(store, run) is None, "a first score is no change"
    assert store.last_rescore(run.id) is None
    assert replaced(store, run) is None, "the same scores once more"

    rescore_id = replaced(store, run, {1: ("8", "tag", None), 3: ("7", "untagged", True)}, now=9.0)
    found = store.last_rescore(run.id)
    assert found is not None
    assert (found.id, found.at, found.package_version) == (rescore_id, 9.0, "2")
    one, three = store.score_changes(found.id)
    assert (one.row_id, one.cause, one.answer) == ("row-0", Cause.READING, Answer(text="7", how="tag"))
    assert one.score == Score(status=Status.SCORED, correct=True, tp=1)
    assert (one.status_now, one.correct_now) == (Status.UNJUDGED, None)
    assert (three.row_id, three.cause, three.correct_now) == ("row-2", Cause.READING, True)
    assert (three.score.correct, three.score.fp, three.score.fn) == (False, 1, 1)

    # The same answer by the same rung, and the verdict as it was: then the rules of scoring are others.
    replaced(store, run, {1: ("8", "tag", None), 2: ("7", "tag", True), 3: ("7", "untagged", True)})
    assert [(row.row_id, row.cause) for row in changed(store, run)] == [("row-1", Cause.READING)]


async def test_another_verdict_is_told_from_another_reading(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 6)
    local = store.judge("local", {"model": "local"}, now=1.0).id
    async with Writer.open(kit.path) as writer:
        await writer.write(*(kit.reply(run, session, key) for key in (1, 2, 3, 4)))
        await writer.write(kit.verdict(run, 1, True), kit.verdict(run, 2, True), kit.verdict(run, 3, None))
        replaced(store, run)
        # Rows 3 and 4 had no verdict, hence no score: their first one is no change.
        await writer.write(kit.verdict(run, 2, False), *(kit.verdict(run, key, True) for key in (3, 4)))
        replaced(store, run)
        assert [
            (row.row_id, row.cause, row.score.correct, row.correct_now) for row in changed(store, run)
        ] == [("row-1", Cause.VERDICT, True, False)]
        # Another judge: only rows on which the two differ; row 4 it has not judged.
        given = ((1, True), (2, True), (3, False))
        await writer.write(*(kit.verdict(run, key, word, judge_id=local) for key, word in given))
        replaced(store, run, judge=local)
        assert [(row.row_id, row.cause, row.status_now) for row in changed(store, run)] == [
            ("row-1", Cause.VERDICT, Status.SCORED),
            ("row-2", Cause.VERDICT, Status.SCORED),
            ("row-3", Cause.VERDICT, Status.UNJUDGED),
        ]
        # A new verdict together with a new reading is a change of reading.
        await writer.write(kit.verdict(run, 1, False, judge_id=local, sha=b"q" * 32))
        replaced(store, run, {1: ("9", "tag", False)}, judge=local)
        assert [(row.row_id, row.cause) for row in changed(store, run)] == [("row-0", Cause.READING)]


async def test_a_scoring_that_breaks_off_keeps_no_change(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 600)
    async with Writer.open(kit.path) as writer:
        await writer.write(*(kit.reply(run, session, key) for key in range(1, 601)))
    replaced(store, run)

    def broken() -> Iterator[Scored]:
        for number, one in enumerate(scored(store.score_inputs(run.id, 1), "half")):
            if number == 400:
                raise ZeroDivisionError
            yield one

    with pytest.raises(ZeroDivisionError):
        store.replace_scores(run.id, 1, broken(), package_version="2", now=8.0)
    assert store.last_rescore(run.id) is None
    rescore(store, run, 1, only_stale=False, text="other")
    assert len(changed(store, run)) == 600


def replaced(
    store: Store,
    run: RunRecord,
    readings: Mapping[int, tuple[str, str, bool | None]] | None = None,
    *,
    judge: int = 1,
    now: float = 8.0,
) -> int | None:
    """Score all rows by their verdict, but those of `readings` (key -> answer, how, correct) as given there;
    returns the id under which former scores are kept."""

    def stream() -> Iterator[Scored]:
        for one in store.score_inputs(run.id, judge):
            word = one.verdict.correct if one.verdict else None
            text, how, correct = (readings or {}).get(one.key, ("7", "tag", word))
            score = Score(status=Status.UNJUDGED)
            if correct is not None:
                score = Score(
                    status=Status.SCORED, correct=correct, tp=correct, fp=not correct, fn=not correct
                )
            yield one, Answer(text=text, how=how), score

    return store.replace_scores(run.id, judge, stream(), package_version="2", now=now).rescore


def changed(store: Store, run: RunRecord) -> list[ScoreChange]:
    found = store.last_rescore(run.id)
    assert found is not None
    return list(store.score_changes(found.id))
