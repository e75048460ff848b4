"""When a call is tried again, on a clock that moves only while somebody sleeps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.endpoints.gate import Draining
from mmbu_async.endpoints.retries import SHORTEST_ASKED_S, RetryPolicy, decide, with_retries
from mmbu_async.model import TRANSIENT_KINDS, Completion, Failure, FailureKind, Finish, RetryDecision

REPLY = Completion(text="4", finish=Finish.STOP)
POLICY = RetryPolicy()


def failure(kind: FailureKind = FailureKind.SERVER_ERROR, asked: float | None = None) -> Failure:
    return Failure(kind=kind, message="no", retry_after_s=asked)


LIMITED = failure(FailureKind.RATE_LIMIT, 30.0)


# ---------------------------------------------------------------- one decision


@given(counted=st.integers(1, 500), seed=st.integers(0, 2**32))
def test_full_jitter_under_exponential_bounds(counted: int, seed: int) -> None:
    decision = decide(failure(), counted, POLICY, Random(seed))
    assert decision.again
    assert decision.counts
    assert not decision.rate_limited
    assert 0.0 <= decision.wait_s <= min(POLICY.longest_s, POLICY.base_s * 2.0 ** min(counted - 1, 30))


@pytest.mark.parametrize(("counted", "bound"), [(1, 1.0), (2, 2.0), (4, 8.0), (7, 60.0), (20, 60.0)])
def test_the_jitter_uses_its_whole_range(counted: int, bound: float) -> None:
    random = Random(1)
    waits = [decide(failure(), counted, POLICY, random).wait_s for _ in range(400)]
    assert min(waits) < 0.02 * bound
    assert max(waits) > 0.98 * bound
    assert sum(waits) / len(waits) == pytest.approx(bound / 2, rel=0.1)


@given(asked=st.floats(SHORTEST_ASKED_S, 4000), counted=st.integers(1, 9), seed=st.integers(0, 2**32))
def test_a_wait_that_was_asked_for_is_never_shortened(asked: float, counted: int, seed: int) -> None:
    for kind in (FailureKind.RATE_LIMIT, FailureKind.SERVER_ERROR):
        decision = decide(failure(kind, asked), counted, POLICY, Random(seed))
        assert asked <= decision.wait_s <= 1.1 * asked
        assert decision.rate_limited == (kind is FailureKind.RATE_LIMIT)
        # Only for a 429: a server that is broken and says when to come again is broken all the same.
        assert decision.counts == (kind is not FailureKind.RATE_LIMIT)


@pytest.mark.parametrize(("asked", "counts"), [(None, True), (0.0, True), (0.02, False)])
def test_a_wait_of_next_to_nothing_is_lengthened_at_random(asked: float | None, counts: bool) -> None:
    """All who are told to come again in 20 ms must not come again together; `0` says no more than nothing."""
    random = Random(1)
    waits = []
    for _ in range(50):
        decision = decide(failure(FailureKind.RATE_LIMIT, asked), 4, POLICY, random)
        assert decision.counts == counts
        assert decision.rate_limited
        assert decision.wait_s >= (asked or 0.0)
        waits.append(decision.wait_s)
    assert max(waits) > 6.0


@pytest.mark.parametrize("kind", FailureKind)
def test_only_transient_failures_are_tried_again(kind: FailureKind) -> None:
    assert decide(failure(kind), 1, POLICY, Random(1)).again == (kind in TRANSIENT_KINDS)
    assert decide(failure(kind, 3.0), 1, POLICY, Random(1)).again == (kind in TRANSIENT_KINDS)


def test_a_reply_stands() -> None:
    assert decide(REPLY, 1, POLICY, Random(1)) == RetryDecision(again=False)


# ---------------------------------------------------------------- the loop


@dataclass
class World:
    """A clock that moves by sleeps and by what calls take."""

    outcomes: Iterator[Completion | Failure]
    call_s: float = 0.0
    now: float = 1000.0
    slept: list[float] = field(default_factory=list)
    told: list[tuple[Failure, RetryDecision]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    async def operation(self, number: int) -> Completion | Failure:
        self.numbers.append(number)
        self.now += self.call_s
        return next(self.outcomes)

    async def sleep(self, seconds: float) -> None:
        assert len(self.told) == len(self.numbers), "a failed attempt must be told of before the wait"
        self.slept.append(seconds)
        self.now += seconds

    async def note(self, outcome: Failure, decision: RetryDecision) -> None:
        self.told.append((outcome, decision))

    async def run(self, policy: RetryPolicy = POLICY) -> Completion | Failure:
        return await with_retries(
            self.operation,
            policy,
            sleep=self.sleep,
            clock=lambda: self.now,
            random=Random(1),
            note=self.note,
        )


def world(outcomes: Sequence[Completion | Failure], call_s: float = 0.0) -> World:
    return World(outcomes=iter(outcomes), call_s=call_s)


async def test_success_after_trouble() -> None:
    w = world([failure(), failure(FailureKind.TIMEOUT), failure(FailureKind.MALFORMED), REPLY])
    assert await w.run() == REPLY
    assert w.numbers == [1, 2, 3, 4]
    assert len(w.slept) == 3
    assert [decision.again for _, decision in w.told] == [True, True, True]
    assert w.slept == [decision.wait_s for _, decision in w.told]


async def test_the_attempt_limit() -> None:
    w = World(outcomes=repeat(failure()))
    outcome = await w.run(RetryPolicy(max_attempts=4))
    assert outcome == failure()
    assert w.numbers == [1, 2, 3, 4]
    assert len(w.slept) == 3
    assert [decision.again for _, decision in w.told] == [True, True, True, False]


async def test_one_attempt_means_no_wait() -> None:
    w = World(outcomes=repeat(failure()))
    await w.run(RetryPolicy(max_attempts=1))
    assert (w.numbers, w.slept) == ([1], [])


async def test_waiting_for_retry_after_uses_up_no_attempt() -> None:
    w = world([*[LIMITED] * 20, failure(), failure(), REPLY])
    assert await w.run(RetryPolicy(max_attempts=3)) == REPLY
    assert len(w.numbers) == 23
    assert all(wait >= 30.0 for wait in w.slept[:20])
    # The backoff after them starts at its beginning.
    assert w.slept[20] <= 1.0


async def test_the_time_limit_ends_even_waits_that_use_up_no_attempt() -> None:
    w = World(outcomes=repeat(LIMITED))
    outcome = await w.run(RetryPolicy(max_time_s=300.0))
    assert outcome == LIMITED
    assert w.now - 1000.0 <= 300.0
    assert 9 <= len(w.numbers) <= 11
    assert not w.told[-1][1].again
    assert w.told[-1][1].rate_limited


async def test_no_wait_is_begun_that_ends_after_the_time_limit() -> None:
    w = world([failure(FailureKind.RATE_LIMIT, 3600.0)])
    await w.run(RetryPolicy(max_time_s=1800.0))
    assert (w.numbers, w.slept) == ([1], [])


async def test_the_time_limit_counts_what_calls_take() -> None:
    w = World(outcomes=repeat(failure(FailureKind.TIMEOUT)), call_s=600.0)
    await w.run(RetryPolicy(max_attempts=100, max_time_s=1800.0))
    assert 3 <= len(w.numbers) <= 4


async def test_retry_after_zero_does_not_hammer() -> None:
    w = World(outcomes=repeat(failure(FailureKind.RATE_LIMIT, 0.0)))
    await w.run()
    assert len(w.numbers) == POLICY.max_attempts


@pytest.mark.parametrize("kind", sorted(set(FailureKind) - TRANSIENT_KINDS))
async def test_no_second_attempt_where_it_cannot_help(kind: FailureKind) -> None:
    w = world([failure(kind, 5.0)])
    assert await w.run() == failure(kind, 5.0)
    assert w.slept == []
    assert [decision.again for _, decision in w.told] == [False]


async def test_draining_ends_the_wait_and_leaves_the_row_open() -> None:
    w = World(outcomes=repeat(failure()))

    async def drained(seconds: float) -> None:
        raise Draining

    w.sleep = drained  # type: ignore[method-assign]
    with pytest.raises(Draining):
        await w.run()
    assert w.numbers == [1]
    assert w.told[0][1].again


@pytest.mark.parametrize("error", [Draining(), RuntimeError("bug"), asyncio.CancelledError()])
async def test_what_the_operation_raises_comes_through_untouched(error: BaseException) -> None:
    w = world([])

    async def operation(number: int) -> Completion | Failure:
        raise error

    w.operation = operation  # type: ignore[method-assign]
    with pytest.raises(type(error)) as caught:
        await w.run()
    assert caught.value is error
    assert w.slept == []


async def test_a_note_that_fails_ends_the_row() -> None:
    w = World(outcomes=repeat(failure()))

    async def note(outcome: Failure, decision: RetryDecision) -> None:
        raise OSError("disk full")

    w.note = note  # type: ignore[method-assign]
    with pytest.raises(OSError, match="disk full"):
        await w.run()
    assert w.numbers == [1]


@given(
    kinds=st.lists(st.sampled_from(sorted(FailureKind)), max_size=12),
    asked=st.lists(st.none() | st.floats(0, 1000), min_size=12, max_size=12),
    attempts=st.integers(1, 6),
    call_s=st.floats(0, 100),
)
async def test_limits_hold_whatever_comes(
    kinds: list[FailureKind], asked: list[float | None], attempts: int, call_s: float
) -> None:
    outcomes = [failure(kind, wait) for kind, wait in zip(kinds, asked, strict=False)]
    w = world([*outcomes, REPLY], call_s)
    policy = RetryPolicy(max_attempts=attempts, max_time_s=1800.0)
    outcome = await w.run(policy)
    assert sum(decision.counts for _, decision in w.told) <= attempts
    assert w.now - 1000.0 <= policy.max_time_s + call_s
    assert len(w.slept) == len(w.numbers) - 1
    if isinstance(outcome, Failure):
        assert not w.told[-1][1].again


def test_patience_ends_without_the_waits_that_were_asked_for() -> None:
    """Three that ask for 30 s each, then trouble."""
    policy = RetryPolicy(max_unasked_s=120.0)
    world = World(iter([LIMITED, LIMITED, LIMITED, *repeat(failure(), 9)]), call_s=50.0)
    assert asyncio.run(world.run(policy)) == LIMITED
    assert len(world.numbers) == 3, "150 s, of which nobody asked for a second"
    world = World(iter([LIMITED, LIMITED, LIMITED, *repeat(failure(), 9)]), call_s=25.0)
    assert asyncio.run(world.run(policy)) == failure()
    assert len(world.numbers) == 5, "no attempt is started after 120 s, and the waits of 90 s do not count"
