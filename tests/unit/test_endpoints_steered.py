"""Limits that change under way, and a gate that is held: at once, for who waits too, and nothing is lost."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.endpoints.concurrency import AdaptiveConcurrency, Cap, Outcome
from mmbu_async.endpoints.gate import Draining, Gate, Pass
from mmbu_async.endpoints.limits import RequestRate, TokenBudget
from mmbu_async.model import Completion
from tests.fake_endpoint import FakePurse, FakeTransport, error, reply, rig, scripted, settle_tasks


@dataclass
class Clock:
    """Moves by the sleeps of who waits for it, and by hand."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


@dataclass
class Line:
    gate: Gate
    clock: Clock
    passes: list[Pass] = field(default_factory=list)
    order: list[int] = field(default_factory=list)

    async def come(self, number: int, tokens: float = 10.0) -> None:
        self.passes.append(await self.gate.enter(tokens))
        self.order.append(number)


@asynccontextmanager
async def line(cap: int = 4, rpm: float | None = None, tpm: float | None = None) -> AsyncIterator[Line]:
    clock = Clock()
    gate = Gate(
        AdaptiveConcurrency(cap, cap, clock=clock, sleep=clock.sleep),
        RequestRate(rpm),
        TokenBudget(tpm, clock=clock, sleep=clock.sleep),
        clock=clock,
    )
    dispatcher = asyncio.create_task(gate.dispatch())
    try:
        yield Line(gate=gate, clock=clock)
    finally:
        dispatcher.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dispatcher


# ---------------------------------------------------------------- a held gate


async def test_a_held_gate_starts_nothing_and_goes_on_in_the_same_order() -> None:
    async with line(cap=2) as it, asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(it.come(number))
        await settle_tasks()
        it.gate.hold()
        for number in (3, 4):
            group.create_task(it.come(number))
        for granted in it.passes:
            granted.leave(Outcome.SUCCESS, 10)
        await settle_tasks()
        assert it.order == [0, 1], "what was under way ended, and nothing began"
        assert it.gate.concurrency.state.in_flight == 0
        it.gate.hold()
        it.gate.go_on()
        await settle_tasks()
        assert it.order == [0, 1, 2, 3]
        for granted in it.passes[2:]:
            granted.leave(Outcome.SUCCESS, 10)
        await settle_tasks()
        assert it.order == [0, 1, 2, 3, 4]


async def test_a_hold_reaches_who_waits_for_a_limit() -> None:
    """The dispatcher stands in the middle of its work: the call must not slip through, nor lose its place."""
    async with line(cap=2, rpm=60.0) as it, asyncio.TaskGroup() as group:
        group.create_task(it.come(0))
        await settle_tasks()
        for number in (1, 2):
            group.create_task(it.come(number))
        await settle_tasks()
        assert it.gate.concurrency.state.in_flight == 2, "the second has its slot and waits for the rate"
        it.gate.hold()
        it.gate.limit(concurrency=2, rpm=None, tpm=None)
        async with asyncio.timeout(10):
            while it.gate.concurrency.state.in_flight > 1:  # noqa: ASYNC110 - the throttle polls
                await asyncio.sleep(0.001)
        assert it.order == [0]
        it.gate.go_on()
        await settle_tasks()
        assert it.order == [0, 1]
        it.passes[0].leave(Outcome.SUCCESS, 10)
        await settle_tasks()
        assert it.order == [0, 1, 2]


@pytest.mark.parametrize("in_line", [1, 3])
async def test_a_held_gate_can_be_closed(in_line: int) -> None:
    async with line(cap=1) as it:
        it.gate.hold()
        waiting = [asyncio.create_task(it.come(number)) for number in range(in_line)]
        await settle_tasks()
        it.gate.close()
        for task in waiting:
            with pytest.raises(Draining):
                await task
        with pytest.raises(Draining):
            await it.gate.unheld()
        it.gate.hold()
        with pytest.raises(Draining):
            await it.gate.enter(1)


async def test_a_call_that_waits_for_money_is_held_too() -> None:
    purse = FakePurse()
    transport = FakeTransport(lambda number: reply())
    async with rig(transport, purse=purse) as it:
        hold = purse.hold

        async def late(usd: float | None) -> None:
            await hold(usd)
            it.client.gate.hold()

        purse.hold = late  # type: ignore[method-assign]
        call = asyncio.create_task(it.call())
        await settle_tasks()
        assert transport.sent == []
        purse.hold = hold  # type: ignore[method-assign]
        it.client.gate.go_on()
        assert isinstance(await call, Completion)
        assert purse.balanced
        it.client.gate.hold()
        call = asyncio.create_task(it.call())
        await settle_tasks()
        it.client.gate.close()
        with pytest.raises(Draining):
            await call
        assert purse.balanced


async def test_time_in_a_hold_is_none_in_which_a_row_could_be_tried() -> None:
    """A row waits for its second attempt while the run is paused for a night: it still has all its time."""
    transport = FakeTransport(scripted(error(500), error(500), reply()))
    async with rig(transport, max_retry_time=1800.0) as it:
        gate = it.client.gate
        clock = Clock()
        gate._clock = clock

        async def sleep(seconds: float) -> None:
            gate.hold()
            clock.now += 30_000.0
            gate.go_on()

        gate.sleep = sleep  # type: ignore[method-assign]
        assert isinstance(await it.call(), Completion)
        assert gate.time_for_calls() == pytest.approx(100.0)
        gate.hold()
        clock.now += 7.0
        assert gate.time_for_calls() == pytest.approx(100.0)


# ---------------------------------------------------------------- requests a minute


async def test_a_higher_rate_reaches_who_waits_for_the_lower_one() -> None:
    rate = RequestRate(1.0)
    await rate.acquire()
    waiting = asyncio.create_task(rate.acquire())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    began = time.monotonic()
    rate.change(60_000.0)
    await asyncio.wait_for(waiting, 10)
    assert time.monotonic() - began < 5, "a minute is what the old rate asked for"
    rate.change(1.0)
    waiting = asyncio.create_task(rate.acquire())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    rate.change(None)
    await asyncio.wait_for(waiting, 10)
    await asyncio.wait_for(asyncio.gather(*(rate.acquire() for _ in range(100))), 1)


async def test_a_lower_rate_counts_what_went_before() -> None:
    rate = RequestRate(60_000.0)
    for _ in range(5):
        await rate.acquire()
    rate.change(60.0)
    waiting = asyncio.create_task(rate.acquire())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    waiting.cancel()


# ---------------------------------------------------------------- tokens a minute


async def test_tokens_follow_the_new_limit() -> None:
    clock = Clock()
    budget = TokenBudget(6000, clock=clock, sleep=clock.sleep)
    debt = await budget.reserve(1000)
    assert budget.level == pytest.approx(-700)
    budget.change(60_000)
    assert budget.level == pytest.approx(-700), "a debt stays"
    clock.now += 1
    assert budget.level == pytest.approx(300)
    clock.now += 100
    assert budget.level == budget.capacity == pytest.approx(3000)
    budget.change(600)
    assert budget.level == budget.capacity == pytest.approx(30), "of a smaller bucket no more than it holds"
    budget.change(None)
    assert budget.level == math.inf
    await budget.reserve(1e9)
    budget.change(600)
    assert budget.level == pytest.approx(30)
    debt.settle(0)
    assert budget.level > 30


async def test_a_higher_limit_of_tokens_reaches_who_waits() -> None:
    clock = Clock()
    budget = TokenBudget(60, clock=clock, sleep=clock.sleep)
    await budget.reserve(1000)

    async def more() -> None:
        budget.change(600_000)

    before = clock.now
    await asyncio.gather(budget.reserve(3), more())
    assert clock.now - before < 1, "a quarter of an hour is what the old limit asked for"


# ---------------------------------------------------------------- calls at once


def test_a_smaller_maximum_holds_at_once_and_a_larger_one_is_grown_into() -> None:
    cap = Cap(64, start=64)
    cap._start = 16
    stamps = [cap.begin() for _ in range(64)]
    cap.change(8)
    assert (cap.cap, cap.has_room) == (8, False)
    for stamp in stamps[:57]:
        cap.end(stamp, Outcome.SUCCESS)
    assert (cap.in_flight, cap.has_room) == (7, True)
    for stamp in stamps[57:]:
        cap.end(stamp, Outcome.SUCCESS)
    assert cap.cap == 8
    cap.change(64)
    assert cap.cap == 16, "as at the start of a run"
    rounds = 0
    while cap.cap < 64:
        for stamp in [cap.begin() for _ in range(cap.cap)]:
            cap.end(stamp, Outcome.SUCCESS)
        rounds += 1
    assert rounds == 2, "doubling in a round"


def test_after_429s_a_larger_maximum_is_a_word_to_try_again() -> None:
    cap = Cap(16, start=16)
    for _ in range(4):
        stamps = [cap.begin() for _ in range(cap.cap)]
        cap.end(stamps[0], Outcome.RATE_LIMITED)
        for stamp in stamps[1:]:
            cap.end(stamp, Outcome.SUCCESS)
    assert not cap.slow_start
    cap.change(cap.maximum)
    assert not cap.slow_start, "the same maximum says nothing new"
    cap.change(64)
    assert cap.slow_start
    stamps = [cap.begin() for _ in range(cap.cap)]
    cap.end(stamps[0], Outcome.RATE_LIMITED)
    assert not cap.slow_start


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("begin"), st.just(0)),
            st.tuples(st.sampled_from(["good", "limited", "trouble"]), st.integers(0, 50)),
            st.tuples(st.just("change"), st.integers(1, 40)),
        ),
        max_size=200,
    )
)
def test_whatever_changes_the_cap_stays_within_its_maximum(steps: list[tuple[str, int]]) -> None:
    outcomes = {"good": Outcome.SUCCESS, "limited": Outcome.RATE_LIMITED, "trouble": Outcome.TROUBLE}
    cap = Cap(20)
    under_way: list[int] = []
    for step, number in steps:
        if step == "begin":
            if cap.has_room:
                under_way.append(cap.begin())
        elif step == "change":
            cap.change(number)
        elif under_way:
            cap.end(under_way.pop(number % len(under_way)), outcomes[step])
        assert 1 <= cap.cap <= cap.maximum
        assert cap.in_flight == len(under_way)
    for stamp in under_way:
        cap.end(stamp, Outcome.SUCCESS)
    # However it got here, it is not stuck.
    for _ in range(14 * cap.maximum + 10):
        stamps = [cap.begin() for _ in range(cap.cap)]
        for stamp in stamps:
            cap.end(stamp, Outcome.SUCCESS)
    assert cap.cap >= 0.9 * cap.maximum or cap.maximum == 1


async def test_a_larger_maximum_wakes_who_waits_for_room() -> None:
    concurrency = AdaptiveConcurrency(1)
    await concurrency.acquire()
    waiting = asyncio.create_task(concurrency.acquire())
    await settle_tasks()
    assert not waiting.done()
    concurrency.change(2)
    await asyncio.wait_for(waiting, 1)
    assert concurrency.state.in_flight == 2


async def test_a_smaller_maximum_lets_calls_under_way_end() -> None:
    async with line(cap=4) as it, asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(it.come(number))
        await settle_tasks()
        assert it.order == [0, 1, 2, 3]
        it.gate.limit(concurrency=1, rpm=None, tpm=None)
        for granted in list(it.passes)[:3]:
            granted.leave(Outcome.SUCCESS, 10)
        await settle_tasks()
        assert it.order == [0, 1, 2, 3]
        it.passes[3].leave(Outcome.SUCCESS, 10)
        await settle_tasks()
        assert it.order == [0, 1, 2, 3, 4]
        it.passes[4].leave(Outcome.SUCCESS, 10)
