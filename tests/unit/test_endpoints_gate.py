"""The line in front of an endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.endpoints.concurrency import AdaptiveConcurrency, Outcome
from mmbu_async.endpoints.gate import LONGEST_PAUSE_S, Draining, Gate, Pass
from mmbu_async.endpoints.limits import RequestRate, TokenBudget


async def settle() -> None:
    """Let every task run until all of them wait."""
    for _ in range(20):
        await asyncio.sleep(0)


@dataclass
class Clock:
    """Moves by the sleeps of who waits for it, at once."""

    now: float = 100.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class HeldRate(RequestRate):
    """Lets requests through by hand, and counts who waits."""

    def __init__(self) -> None:
        super().__init__(None)
        self.open = asyncio.Event()
        self.waiting = 0
        self.most_waiting = 0
        self.passed = 0

    async def acquire(self) -> None:
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        try:
            await self.open.wait()
        finally:
            self.waiting -= 1
        self.passed += 1


@dataclass
class Line:
    """A gate with its dispatcher, and what it was asked."""

    gate: Gate
    clock: Clock
    tokens: TokenBudget
    order: list[int] = field(default_factory=list)
    passes: dict[int, Pass] = field(default_factory=dict)

    @property
    def in_flight(self) -> int:
        return self.gate.concurrency.state.in_flight

    async def come(self, number: int, tokens: float = 10.0) -> None:
        granted = await self.gate.enter(tokens)
        self.order.append(number)
        self.passes[number] = granted


@asynccontextmanager
async def line(
    cap: int = 1, rate: RequestRate | None = None, tpm: float | None = None
) -> AsyncIterator[Line]:
    clock = Clock()
    tokens = TokenBudget(tpm, clock=clock, sleep=clock.sleep)
    gate = Gate(
        AdaptiveConcurrency(cap, cap, clock=clock, sleep=clock.sleep),
        rate or RequestRate(None),
        tokens,
        clock=clock,
    )
    dispatcher = asyncio.create_task(gate.dispatch())
    try:
        yield Line(gate=gate, clock=clock, tokens=tokens)
    finally:
        dispatcher.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dispatcher


async def test_first_in_first_out() -> None:
    async with line(cap=3) as it, asyncio.TaskGroup() as group:
        for number in range(30):
            group.create_task(it.come(number))
        for released in range(30):
            await settle()
            assert it.order == list(range(min(30, released + 3)))
            it.passes[released].leave(Outcome.SUCCESS, 10)
    assert it.in_flight == 0


async def test_a_limiter_has_one_waiter_however_long_the_line() -> None:
    rate = HeldRate()
    async with line(cap=100, rate=rate) as it, asyncio.TaskGroup() as group:
        for number in range(100):
            group.create_task(it.come(number))
        await settle()
        assert rate.waiting == 1
        # The first has its turn, the others are in line.
        assert it.gate.waiting == 99
        rate.open.set()
        for _ in range(10):
            await settle()
        assert it.order == list(range(100))
    assert rate.most_waiting == 1


async def test_a_slot_is_in_use_until_its_pass_is_left() -> None:
    async with line(cap=2, tpm=6000) as it:
        first = await it.gate.enter(50)
        second = await it.gate.enter(50)
        assert it.in_flight == 2
        assert it.tokens.level == pytest.approx(200)
        first.leave(Outcome.SUCCESS, 20)
        assert it.in_flight == 1
        assert it.tokens.level == pytest.approx(230)
        first.leave(Outcome.SUCCESS, 20)
        assert it.in_flight == 1
        second.leave(Outcome.SUCCESS, 80)
        assert it.in_flight == 0
        assert it.tokens.level == pytest.approx(200)


# ---------------------------------------------------------------- cancellation


async def test_who_is_cancelled_in_line_is_passed_over() -> None:
    async with line(cap=1) as it:
        blocking = await it.gate.enter(1)
        tasks = [asyncio.create_task(it.come(number)) for number in range(4)]
        await settle()
        tasks[0].cancel()
        tasks[2].cancel()
        await settle()
        blocking.leave(Outcome.SUCCESS, 1)
        await settle()
        it.passes[1].leave(Outcome.SUCCESS, 1)
        await settle()
        assert it.order == [1, 3]
        it.passes[3].leave(Outcome.SUCCESS, 1)
        assert it.in_flight == 0


async def test_who_is_cancelled_while_the_limits_are_awaited_gives_everything_back() -> None:
    rate = HeldRate()
    async with line(cap=1, rate=rate, tpm=6000) as it:
        task = asyncio.create_task(it.come(0, tokens=100))
        await settle()
        assert rate.waiting == 1
        task.cancel()
        await settle()
        rate.open.set()
        await settle()
        assert it.in_flight == 0
        assert it.tokens.level == pytest.approx(300)
        await it.come(1)
        assert it.order == [1]


async def test_who_is_cancelled_in_the_very_moment_of_the_grant_gives_everything_back() -> None:
    async with line(cap=1, tpm=6000) as it:
        blocking = await it.gate.enter(0)
        task = asyncio.create_task(it.come(0, tokens=100))
        await settle()
        blocking.leave(Outcome.SUCCESS, 0)
        # Step the loop until the grant is made but its receiver has not run; then cancel the receiver.
        while it.tokens.level > 200:
            assert not task.done()
            await asyncio.sleep(0)
        task.cancel()
        await settle()
        if not it.order:
            assert task.cancelled()
            assert it.in_flight == 0
            assert it.tokens.level == pytest.approx(300)
        else:
            pytest.fail("the receiver ran before it could be cancelled: the test does not test")


@given(
    st.lists(st.tuples(st.sampled_from(["come", "cancel", "leave", "step"]), st.integers(0, 9)), max_size=60)
)
async def test_no_slot_is_ever_lost(steps: list[tuple[str, int]]) -> None:
    async with line(cap=3, tpm=60_000) as it:
        tasks: list[asyncio.Task[None]] = []
        for what, which in steps:
            if what == "come":
                tasks.append(asyncio.create_task(it.come(len(tasks))))
            elif what == "cancel" and tasks:
                tasks[which % len(tasks)].cancel()
            elif what == "leave" and it.passes:
                it.passes.pop(min(it.passes)).leave(Outcome.SUCCESS, 10)
            else:
                await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await settle()
        for granted in it.passes.values():
            granted.leave(Outcome.SUCCESS, 10)
        await settle()
        assert it.in_flight == 0
        assert it.order == sorted(it.order)
        for number in range(1000, 1003):
            await it.come(number)
        assert it.in_flight == 3


# ---------------------------------------------------------------- closing


async def refused(coming: Awaitable[object]) -> None:
    with pytest.raises(Draining):
        await coming


async def test_closing_turns_everybody_away_at_once() -> None:
    """Also the one whose turn it is but who still waits for a rate limit, which can be a minute."""
    rate = HeldRate()
    async with line(cap=5, rate=rate, tpm=6000) as it, asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(refused(it.come(number)))
        group.create_task(refused(it.gate.sleep(3600)))
        await settle()
        assert rate.waiting == 1
        it.gate.close()
        await settle()
        assert it.gate.closing
        assert it.gate.waiting == 0
    assert it.order == []
    async with line(cap=5) as it:
        it.gate.close()
        await refused(it.gate.enter(1))
        await refused(it.gate.sleep(3600))


async def test_after_closing_nothing_stays_taken() -> None:
    rate = HeldRate()
    async with line(cap=5, rate=rate, tpm=6000) as it:
        task = asyncio.create_task(refused(it.come(0, tokens=100)))
        await settle()
        it.gate.close()
        rate.open.set()
        await settle()
        assert task.done()
        assert it.in_flight == 0
        assert it.tokens.level == pytest.approx(300)


async def test_closing_leaves_calls_under_way_alone() -> None:
    async with line(cap=2) as it:
        granted = await it.gate.enter(1)
        it.gate.close()
        it.gate.close()
        await settle()
        assert it.in_flight == 1
        granted.leave(Outcome.SUCCESS, 1)
        assert it.in_flight == 0


async def test_closing_in_a_pause_does_not_wait_for_its_end() -> None:
    never = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await never.wait()

    concurrency = AdaptiveConcurrency(2, 2, clock=lambda: 0.0, sleep=sleep)
    gate = Gate(concurrency, RequestRate(None), TokenBudget(None), clock=lambda: 0.0)
    dispatcher = asyncio.create_task(gate.dispatch())
    gate.pause(600)
    waiter = asyncio.create_task(refused(gate.enter(1)))
    await settle()
    gate.close()
    await settle()
    assert waiter.done()
    dispatcher.cancel()


async def test_a_cancelled_waiter_of_a_closed_gate_is_just_cancelled() -> None:
    async with line(cap=1) as it:
        await it.gate.enter(1)
        task = asyncio.create_task(it.come(1))
        await settle()
        it.gate.close()
        task.cancel()
        await settle()
        assert task.cancelled()


# ---------------------------------------------------------------- pauses and sleeps


async def test_a_pause_starts_nothing_and_lets_calls_under_way_go_on() -> None:
    async with line(cap=5) as it:
        running = await it.gate.enter(1)
        it.gate.pause(30)
        began = it.clock.now
        second = await it.gate.enter(1)
        assert it.clock.now >= began + 30
        running.leave(Outcome.SUCCESS, 1)
        second.leave(Outcome.SUCCESS, 1)


async def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    async with line(cap=5) as it:
        began = it.clock.now
        it.gate.pause(30)
        it.gate.pause(1)
        await it.gate.enter(1)
        assert it.clock.now >= began + 30


async def test_after_a_pause_the_token_budget_starts_from_nothing() -> None:
    """A 429 says that the endpoint's own bucket is empty, whatever ours holds."""
    async with line(cap=5, tpm=6000) as it:
        began = it.clock.now
        it.gate.pause(10)
        await it.gate.enter(100)
        assert it.clock.now == pytest.approx(began + 11, abs=0.1)


async def test_a_pause_of_days_is_cut() -> None:
    async with line(cap=5) as it:
        began = it.clock.now
        it.gate.pause(10 * 86400)
        await it.gate.enter(1)
        assert it.clock.now == pytest.approx(began + LONGEST_PAUSE_S)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.001])
async def test_sleep_ends_by_itself(seconds: float) -> None:
    async with line() as it:
        await it.gate.sleep(seconds)


async def test_a_sleeper_can_be_cancelled() -> None:
    async with line() as it:
        task = asyncio.create_task(it.gate.sleep(3600))
        await settle()
        task.cancel()
        await settle()
        assert task.cancelled()


CALLERS: list[Callable[[Gate], Awaitable[object]]] = [lambda gate: gate.enter(1), lambda gate: gate.sleep(9)]


@pytest.mark.parametrize("caller", CALLERS)
async def test_closing_twice_says_the_same(caller: Callable[[Gate], Awaitable[object]]) -> None:
    async with line() as it:
        it.gate.close()
        it.gate.close()
        await refused(caller(it.gate))
