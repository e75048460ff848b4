"""Everything known of a row, streamed for reports and whole for `show`."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from mmbu_async.errors import DataError
from mmbu_async.model import (
    Answer,
    Completion,
    Failure,
    FailureKind,
    Score,
    Status,
    Usage,
    Verdict,
)
from mmbu_async.store import Writer
from mmbu_async.store.outcomes import Spent

if TYPE_CHECKING:
    from tests.conftest import StoreKit


async def test_a_row_sums_up_its_exchanges(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 3)
    usage = Usage(input_tokens=10, output_tokens=5, reasoning_tokens=1, cached_tokens=2, cache_write_tokens=3)

    async with Writer.open(kit.path) as writer:
        await writer.write(
            kit.failure(run, session, 1, FailureKind.SERVER_ERROR, status=500, final=False),
            kit.reply(
                run, session, 1, attempt=2, usage=usage, cost=0.25, image_scale=0.5, image_note="scaled"
            ),
            kit.reply(run, session, 1, "j", judge_id=1, prompt_sha=b"p" * 32, usage=usage, cost=0.5),
            kit.reply(run, session, 1, "j", judge_id=1, prompt_sha=b"p" * 32, usage=usage, cost=None),
            kit.verdict(run, 1, True, reply="[RESULT] 1"),
        )
    row = next(store.rows(run.id))
    assert row.image_note == "scaled"
    assert (row.attempts, row.judge_attempts, row.image_scale, row.status) == (2, 2, 0.5, Status.UNJUDGED)
    assert row.usage == usage
    assert row.judge_usage == Usage(
        input_tokens=20, output_tokens=10, reasoning_tokens=2, cached_tokens=4, cache_write_tokens=6
    )
    assert (row.cost_usd, row.cost_unknown) == (0.75, 1)
    assert row.completion is not None
    assert row.completion.request_id == "req-1"
    assert row.timing is not None
    assert (row.timing.total_s, row.timing.first_token_s) == (1.5, 0.1)
    assert row.failure is None
    assert row.verdicts == {
        "claude-sonnet-5": Verdict(correct=True, reply="[RESULT] 1", judge="claude-sonnet-5")
    }


async def test_a_row_without_a_reply_says_why(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 3)
    async with Writer.open(kit.path) as writer:
        await writer.write(
            kit.failure(run, session, 1, FailureKind.TIMEOUT, final=False),
            kit.failure(run, session, 1, FailureKind.BAD_REQUEST, attempt=2, status=400),
            kit.failure(run, session, 2, final=False),
        )
    given_up, under_way, untouched = store.rows(run.id)
    assert (given_up.status, given_up.attempts, given_up.completion) == (Status.FAILED, 2, None)
    assert given_up.failure == Failure(kind=FailureKind.BAD_REQUEST, message="it was bad_request", status=400)
    assert (given_up.cost_usd, given_up.cost_unknown, given_up.usage) == (0.0, 1, Usage())
    assert (under_way.status, under_way.attempts) == (Status.PENDING, 1)
    assert (untouched.status, untouched.attempts, untouched.failure) == (Status.PENDING, 0, None)


async def test_outcomes_say_what_rows_say(kit: StoreKit) -> None:
    """The quick way gives the figures of the thorough one."""
    store = kit.open()
    run, session = kit.begin(store, 8)
    async with Writer.open(kit.path) as writer:
        await writer.write(
            kit.reply(run, session, 1, image_scale=0.5),
            kit.verdict(run, 1, True),
            kit.reply(run, session, 2),
            kit.verdict(run, 2, None),
            kit.failure(run, session, 3, FailureKind.TIMEOUT, final=False),
            kit.failure(run, session, 3, FailureKind.BAD_REQUEST, attempt=2),
            kit.failure(run, session, 4, final=False),
            kit.failure(run, session, 5, judge_id=1),
            kit.reply(run, session, 6, usage=Usage(reported=False)),
        )
    scores = [
        (
            one,
            Answer(text=" " if one.key == 2 else "7", how="tag"),
            Score(status=Status.SCORED, correct=True, tp=1, detail={"iou": 1})
            if one.key == 1
            else Score(status=Status.UNJUDGED),
        )
        for one in store.score_inputs(run.id, 1)
        if one.key < 3
    ]
    store.replace_scores(run.id, 1, scores, package_version="1", now=5.0)
    rows, outcomes = list(store.rows(run.id)), list(store.outcomes(run.id))
    for row, outcome in zip(rows, outcomes, strict=True):
        assert (outcome.family, outcome.strata) == (row.family, row.sample.strata)
        assert (outcome.status, outcome.score) == (row.status, row.score)
        assert outcome.how == (row.answer.how if row.answer else None)
        assert outcome.finish == (row.completion.finish if row.completion else None)
        assert outcome.model == (row.completion.model if row.completion else "")
        if row.completion:
            assert outcome.image_scale == row.image_scale
        if row.status is Status.FAILED:
            assert row.failure is not None
            assert outcome.failure is row.failure.kind
    assert [outcome.answered for outcome in outcomes] == [True, False, *[True] * 6]
    assert [outcome.failure for outcome in outcomes] == [None, None, FailureKind.BAD_REQUEST, *[None] * 5]
    reported = Spent(total_s=1.5, first_token_s=0.1, input_tokens=1000, output_tokens=50, reasoning_tokens=20)
    unreported = reported._replace(input_tokens=None, output_tokens=None, reasoning_tokens=None)
    assert [outcome.spent for outcome in outcomes[:6]] == [reported, reported, None, None, None, unreported]


async def test_show_has_each_exchange_in_order(kit: StoreKit) -> None:
    store = kit.open()
    kit.begin(store, 7, name="another dataset")
    run, session = kit.begin(store, 9, limit=6)
    key = next(row.key for row in store.rows(run.id) if row.sample.id == "row-4")
    async with Writer.open(kit.path) as writer:
        await writer.write(kit.failure(run, session, key, final=False))
        await writer.write(kit.reply(run, session, key, attempt=2), kit.reply(run, session, key + 1, "next"))
        await writer.write(kit.reply(run, session, key, "judge's", judge_id=1, prompt_sha=b"p" * 32))
    detail = store.row(run.id, "row-4")
    assert detail in list(store.details(run.id))
    assert detail.record == next(row for row in store.rows(run.id) if row.key == key)
    assert [(call.judge, call.attempt.number, call.session_id) for call in detail.calls] == [
        (None, 1, session),
        (None, 2, session),
        ("claude-sonnet-5", 1, session),
    ]
    last = detail.calls[-1].attempt.outcome
    assert isinstance(last, Completion)
    assert last.text == "judge's"


@pytest.mark.parametrize("row_id", ["row-1", "row-8", "row-99", "\ud800"])
def test_a_row_that_the_run_has_not_is_said_so(kit: StoreKit, row_id: str) -> None:
    store = kit.open()
    run, _ = kit.begin(store, 9, limit=1)
    store.select(run.id, lambda sample: sample.position in (3, 6), None)
    with pytest.raises(DataError, match=r"store\.sqlite: the run has no row"):
        store.row(run.id, row_id)


async def test_rows_are_streamed(kit: StoreKit) -> None:
    """Memory holds a page, not the run."""
    store = kit.open()
    run, session = kit.begin(store, 6000)
    async with Writer.open(kit.path) as writer:
        for at in range(1, 6001, 1000):
            await writer.write(*(kit.reply(run, session, key, "x" * 4000) for key in range(at, at + 1000)))
    tracemalloc.start()
    try:
        assert sum(row.completion is not None for row in store.rows(run.id)) == 6000
        assert sum(1 for _ in store.score_inputs(run.id, 1)) == 6000
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 15e6, "the replies alone are 24 MB"
