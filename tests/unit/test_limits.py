"""The limiters, against a clock that only moves when somebody sleeps."""

from __future__ import annotations

import asyncio
import math
import random
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmbu_async.endpoints.limits import RequestRate, TokenBudget, request_window


@dataclass(slots=True)
class FakeTime:
    """Sleepers wake in the order of their times; nothing else moves the clock."""

    now: float = 0.0
    sleepers: list[tuple[float, int, asyncio.Future[None]]] = field(default_factory=list)
    count: int = 0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.count += 1
        waiter = asyncio.get_running_loop().create_future()
        entry = (self.now + seconds, self.count, waiter)
        self.sleepers.append(entry)
        try:
            await waiter
        finally:
            self.sleepers.remove(entry)

    async def settle(self) -> None:
        """Let every task run until all of them wait."""
        for _ in range(10):
            await asyncio.sleep(0)

    async def run_until(self, end: float) -> None:
        await self.settle()
        while self.sleepers and min(self.sleepers)[0] <= end:
            when, _, waiter = min(self.sleepers, key=lambda entry: entry[:2])
            self.now = max(self.now, when)
            if not waiter.done():
                waiter.set_result(None)
            await self.settle()
        self.now = max(self.now, end)


def budget(time: FakeTime, tpm: float | None, burst_s: float = 3.0) -> TokenBudget:
    return TokenBudget(tpm, clock=time.clock, sleep=time.sleep, burst_s=burst_s)


# ---------------------------------------------------------------- requests a minute


@given(rpm=st.floats(min_value=0.5, max_value=100_000))
def test_a_window_uses_the_allowance_and_never_exceeds_it(rpm: float) -> None:
    requests, period = request_window(rpm)
    rate = requests * 60 / period
    assert requests >= 1
    assert 0.99 * rpm <= rate <= rpm * (1 + 1e-9)
    # "A second or a few": nobody waits long for a burst, and no burst is a large part of the minute.
    assert requests == 1 or 0.5 <= period <= 3


@pytest.mark.parametrize("rpm", [3, 50, 61, 499, 500, 5000])
def test_windows_of_whole_rates_fit_into_a_minute(rpm: int) -> None:
    """So that a server that counts any 60 seconds sees at most `rpm`."""
    requests, period = request_window(rpm)
    assert requests * math.ceil(round(60 / period, 9)) <= rpm


def test_windows_are_near_a_second() -> None:
    assert request_window(6000) == (100, 1.0)
    assert request_window(500) == (10, 1.2)


@pytest.mark.parametrize("rpm", [3, 7.5, 60, 90, 500, 6000])
async def test_request_rate_keeps_to_the_rate_and_uses_it(
    rpm: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = FakeTime()
    late = random.Random(1)

    async def sleep(seconds: float) -> None:
        time.now += seconds + late.uniform(0, 0.002)  # event loops wake late

    monkeypatch.setattr("asyncio_throttle.throttler.time", SimpleNamespace(monotonic=time.clock))
    monkeypatch.setattr("asyncio_throttle.throttler.asyncio", SimpleNamespace(sleep=sleep))
    limiter = RequestRate(rpm)
    starts = []
    for _ in range(int(rpm * 5)):
        await limiter.acquire()
        starts.append(time.now)
        time.now += late.uniform(0, 30 / rpm)  # the dispatcher has other things to do
    used = (len(starts) - 1) / (starts[-1] - starts[0]) * 60 / rpm
    assert used >= 0.98
    whole = math.ceil(rpm)
    for first, later in zip(starts, starts[whole:], strict=False):
        assert later - first >= 60 * (1 - 1e-9)


async def test_no_rate_is_no_wait() -> None:
    limiter = RequestRate(None)
    for _ in range(1000):
        await asyncio.wait_for(limiter.acquire(), 0.01)


# ---------------------------------------------------------------- tokens a minute


async def test_the_whole_allowance_is_used_and_no_more() -> None:
    time = FakeTime()
    limiter = budget(time, 60_000)
    taken = 0.0

    async def demand() -> None:
        nonlocal taken
        while True:
            reservation = await limiter.reserve(700)
            taken += reservation.tokens

    task = asyncio.create_task(demand())
    await time.run_until(60)
    task.cancel()
    assert 60_000 <= taken <= 60_000 + limiter.capacity


async def test_too_high_estimates_cost_no_throughput() -> None:
    """Reserved 3,000 a call, used 1,000: after the first replies the rate is that of what is used."""
    time = FakeTime()
    limiter = budget(time, 600_000)
    used = 0
    pending: list[asyncio.Task[None]] = []

    async def call() -> None:
        nonlocal used
        reservation = await limiter.reserve(3000)

        async def reply() -> None:
            nonlocal used
            await time.sleep(2.0)
            reservation.settle(1000)
            used += 1000

        pending.append(asyncio.create_task(reply()))

    async def dispatcher() -> None:
        while True:
            await call()

    task = asyncio.create_task(dispatcher())
    await time.run_until(30)
    before = used
    await time.run_until(90)
    for one in [task, *pending]:
        one.cancel()
    assert used - before == pytest.approx(600_000, rel=0.02)


async def test_an_idle_budget_saves_up_a_few_seconds_only() -> None:
    time = FakeTime()
    limiter = budget(time, 60_000, burst_s=3)
    time.now = 3600.0
    assert limiter.level == 3000
    await limiter.reserve(2000)
    time.now += 1
    assert limiter.level == 2000
    time.now += 3600
    assert limiter.level == 3000


async def test_what_is_given_back_is_kept_beyond_the_burst() -> None:
    """It was part of the allowance; many replies at once must not lose it."""
    time = FakeTime()
    limiter = budget(time, 60_000, burst_s=3)
    reservations = []
    for _ in range(5):
        reservations.append(await limiter.reserve(3000))
        time.now += 3
    for reservation in reservations:
        reservation.settle(1000)
    assert limiter.level == 13_000
    time.now += 60
    assert limiter.level == 13_000


async def test_larger_than_capacity_goes_into_debt() -> None:
    time = FakeTime()
    limiter = budget(time, 60_000, burst_s=3)
    await limiter.reserve(10_000)
    assert time.now == 0
    assert limiter.level == -7000
    second = asyncio.create_task(limiter.reserve(1000))
    await time.run_until(7.9)
    assert not second.done()
    await time.run_until(8.1)
    assert second.done()


async def test_first_in_first_out_whatever_the_size() -> None:
    time = FakeTime()
    limiter = budget(time, 60_000)
    await limiter.reserve(3000)
    order: list[str] = []

    async def wait(name: str, tokens: float) -> None:
        await limiter.reserve(tokens)
        order.append(name)

    tasks = [asyncio.create_task(wait(*one)) for one in (("large", 2500), ("small", 10), ("medium", 500))]
    await time.run_until(10)
    assert order == ["large", "small", "medium"]
    assert all(task.done() for task in tasks)


async def test_what_is_given_back_is_noticed_at_once() -> None:
    time = FakeTime()
    limiter = budget(time, 6_000)
    first = await limiter.reserve(300)
    second = asyncio.create_task(limiter.reserve(300))
    await time.run_until(0.1)
    assert not second.done()
    first.settle(0)
    await time.run_until(0.13)
    assert second.done()


async def test_settling_takes_more_and_the_last_word_counts() -> None:
    time = FakeTime()
    limiter = budget(time, 60_000)
    reservation = await limiter.reserve(100)
    reservation.settle(400)
    assert limiter.level == 2600
    reservation.settle(400)
    assert limiter.level == 2600
    reservation.settle(50)
    assert limiter.level == 2950


async def test_retry_after_pauses_and_spends_the_burst() -> None:
    time = FakeTime()
    limiter = budget(time, 60_000)
    limiter.pause_until(0.5)
    limiter.pause_until(0.2)  # a shorter one does not shorten the pause
    waiting = asyncio.create_task(limiter.reserve(1))
    await time.run_until(0.49)
    assert not waiting.done()
    await time.run_until(0.53)
    assert waiting.done()
    assert limiter.level == pytest.approx(29)


async def test_what_is_given_back_in_a_pause_can_be_used_after_it() -> None:
    time = FakeTime()
    limiter = budget(time, 60_000)
    reservation = await limiter.reserve(3000)
    limiter.pause_until(2)
    await time.run_until(1)
    reservation.settle(500)
    await time.run_until(2)
    assert limiter.level == pytest.approx(2500)
    limiter.pause_until(3)
    waiting = asyncio.create_task(limiter.reserve(1000))
    await time.run_until(3.9)
    assert not waiting.done()
    await time.run_until(4.1)
    assert waiting.done()


async def test_no_budget_is_no_wait_but_still_pauses() -> None:
    time = FakeTime()
    limiter = budget(time, None)
    reservation = await limiter.reserve(10**9)
    reservation.settle(10**12)
    limiter.pause_until(5)
    assert limiter.level == math.inf
    waiting = asyncio.create_task(limiter.reserve(10**9))
    await time.run_until(4.9)
    assert not waiting.done()
    await time.run_until(5.1)
    assert waiting.done()


async def test_a_cancelled_waiter_takes_nothing_and_the_next_goes_on() -> None:
    time = FakeTime()
    limiter = budget(time, 60_000)
    await limiter.reserve(3000)
    first = asyncio.create_task(limiter.reserve(3000))
    second = asyncio.create_task(limiter.reserve(100))
    third = asyncio.create_task(limiter.reserve(100))
    await time.run_until(0.05)
    first.cancel()
    second.cancel()
    await time.run_until(0.11)
    assert third.done()
    assert not third.cancelled()
    assert limiter.level == pytest.approx(10, abs=25)


STEP = st.one_of(
    st.tuples(st.just("reserve"), st.floats(min_value=0, max_value=20_000)),
    st.tuples(st.just("settle"), st.floats(min_value=0, max_value=20_000)),
    st.tuples(st.just("cancel"), st.integers(min_value=0, max_value=50)),
    st.tuples(st.just("pause"), st.floats(min_value=0, max_value=10)),
    st.tuples(st.just("pass"), st.floats(min_value=0, max_value=5)),
)


@settings(max_examples=150, deadline=None)
@given(tpm=st.floats(min_value=600, max_value=600_000), steps=st.lists(STEP, max_size=40))
def test_properties(tpm: float, steps: list[tuple[str, float]]) -> None:
    asyncio.run(_play(tpm, steps))


async def _play(tpm: float, steps: list[tuple[str, float]]) -> None:
    time = FakeTime()
    limiter = budget(time, tpm)
    granted: list[int] = []
    reservations = []
    waiting: list[tuple[int, float, asyncio.Task[None]]] = []
    pause = 0.0
    charged = 0.0
    in_debt_by = 0.0

    async def wait(number: int, tokens: float) -> None:
        nonlocal charged, in_debt_by
        reservation = await limiter.reserve(tokens)
        assert time.now >= pause
        granted.append(number)
        reservations.append(reservation)
        charged += tokens
        in_debt_by = max(in_debt_by, tokens)

    for number, (action, value) in enumerate(steps):
        if action == "reserve":
            waiting.append((number, value, asyncio.create_task(wait(number, value))))
        elif action == "settle" and reservations:
            reservation = reservations.pop(0)
            in_debt_by += max(0.0, value - reservation.tokens)
            charged += value - reservation.tokens
            reservation.settle(value)
        elif action == "cancel" and waiting:
            waiting[int(value) % len(waiting)][2].cancel()
        elif action == "pause":
            pause = max(pause, time.now + value)
            limiter.pause_until(time.now + value)
        elif action == "pass":
            await time.run_until(time.now + value)
        await time.settle()
        # Never more than the allowance since the start, except for the debt of the calls that overdrew it.
        assert charged <= limiter.capacity + time.now * tpm / 60 + in_debt_by + 1e-6
    for _, _, task in waiting:
        assert not task.done() or task.cancelled() or task.exception() is None
    # Nobody waits for ever: within the time that everything asked for takes, all is granted, in order.
    owed = sum(tokens for _, tokens, _ in waiting) + max(0.0, -limiter.level) + limiter.capacity
    await time.run_until(max(time.now, pause) + owed / tpm * 60 + 1)
    left = [number for number, _, task in waiting if not task.cancelled()]
    assert granted == [number for number in left if number in granted]
    assert all(task.done() for _, _, task in waiting)


async def test_with_allowance_left_the_dispatcher_keeps_its_turn() -> None:
    limiter = TokenBudget(1e9)
    turns: list[None] = []
    asyncio.get_running_loop().call_soon(turns.append, None)
    for _ in range(100):
        await limiter.reserve(1)
    assert not turns
