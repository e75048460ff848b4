"""The cap on calls under way: the rule by itself, and the waiting around it."""

from __future__ import annotations

import asyncio
import random
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmbu_async.endpoints.concurrency import AdaptiveConcurrency, Cap, Outcome

OK, LIMITED, TROUBLE, OTHER = Outcome.SUCCESS, Outcome.RATE_LIMITED, Outcome.TROUBLE, Outcome.OTHER


class Endpoint:
    """Keeps a cap as full as it lets itself be filled; refuses calls beyond `limit` under way."""

    def __init__(self, cap: Cap, limit: float = float("inf"), seed: int = 0) -> None:
        self.cap = cap
        self.limit = limit
        self.random = random.Random(seed)
        self.calls: list[tuple[int, Outcome]] = []
        self.refused = 0
        self.served = 0

    def fill(self) -> None:
        while self.cap.has_room:
            refused = self.cap.in_flight >= self.limit
            self.refused += refused
            self.served += not refused
            self.calls.append((self.cap.begin(), LIMITED if refused else OK))

    def finish(self, count: int = 1) -> None:
        """Some calls end, in no order, and others begin in their place."""
        for _ in range(count):
            self.fill()
            stamp, outcome = self.calls.pop(self.random.randrange(len(self.calls)))
            self.cap.end(stamp, outcome)


def test_starts_modestly_and_within_the_maximum() -> None:
    assert Cap(256).cap == 16
    assert Cap(4).cap == 4
    assert Cap(256, start=1).cap == 1


def test_doubles_in_a_round_until_the_maximum() -> None:
    cap = Cap(256, start=16)
    for expected in (32, 64, 128, 256, 256):
        stamps = [cap.begin() for _ in range(cap.cap)]
        for stamp in stamps:
            cap.end(stamp, OK)
        assert cap.cap == expected


def test_the_first_429_ends_slow_start_and_takes_a_fifth() -> None:
    cap = Cap(256, start=100)
    stamps = [cap.begin() for _ in range(100)]
    cap.end(stamps[0], LIMITED)
    assert cap.cap == 80
    assert not cap.slow_start


def test_one_cut_an_episode() -> None:
    """All the 429s of the calls that were under way together are one piece of news."""
    cap = Cap(256, start=100)
    stamps = [cap.begin() for _ in range(100)]
    for stamp in stamps:
        cap.end(stamp, LIMITED)
    assert cap.cap == 80
    cap.end(cap.begin(), LIMITED)
    assert cap.cap == 64


def test_newer_calls_belong_to_the_episode_while_older_ones_are_under_way() -> None:
    cap = Cap(256, start=10)
    stamps = [cap.begin() for _ in range(10)]
    cap.end(stamps[0], LIMITED)
    assert cap.cap == 8
    for stamp in stamps[1:8]:
        cap.end(stamp, OK)
    cap.end(cap.begin(), LIMITED)
    assert cap.cap == 8
    for stamp in stamps[8:]:
        cap.end(stamp, OK)
    cap.end(cap.begin(), LIMITED)
    assert cap.cap == 6


def test_one_hanging_call_does_not_keep_an_episode_open() -> None:
    cap = Cap(256, start=10)
    hanging, first, *rest = [cap.begin() for _ in range(10)]
    cap.end(first, LIMITED)
    for stamp in rest:
        cap.end(stamp, LIMITED)
    assert cap.cap == 8
    for _ in range(8):
        cap.end(cap.begin(), LIMITED)
    assert cap.cap == 8
    cap.end(cap.begin(), LIMITED)
    assert cap.cap == 6
    cap.end(hanging, OK)
    assert cap.in_flight == 0


def test_successes_of_calls_from_before_the_cut_do_not_grow_it() -> None:
    cap = Cap(256, start=100)
    stamps = [cap.begin() for _ in range(100)]
    cap.end(stamps[0], LIMITED)
    for stamp in stamps[1:]:
        cap.end(stamp, OK)
    assert cap.cap == 80


def test_an_unused_cap_does_not_grow() -> None:
    cap = Cap(256, start=16)
    for _ in range(500):
        stamps = [cap.begin() for _ in range(12)]  # 75 % of 16
        for stamp in stamps:
            cap.end(stamp, OK)
    assert cap.cap == 16
    stamps = [cap.begin() for _ in range(13)]  # 81 %
    for stamp in stamps:
        cap.end(stamp, OK)
    assert cap.cap > 16


def test_trouble_stops_growth_for_a_round_and_never_shrinks() -> None:
    cap = Cap(256, start=16)
    stamps = [cap.begin() for _ in range(16)]
    cap.end(stamps[0], TROUBLE)
    for stamp in stamps[1:]:
        cap.end(stamp, OK)
    assert cap.cap == 16
    endpoint = Endpoint(cap)
    endpoint.finish(60)
    assert cap.cap > 32


def test_other_outcomes_say_nothing() -> None:
    cap = Cap(256, start=16)
    for _ in range(10):
        stamps = [cap.begin() for _ in range(16)]
        for stamp in stamps:
            cap.end(stamp, OTHER)
    assert cap.cap == 16


@pytest.mark.parametrize("maximum", [8, 64, 256, 1000])
def test_recovers_after_the_limit_lifts(maximum: int) -> None:
    """The stated number: 14 times the maximum successes, from however low."""
    cap = Cap(maximum)
    endpoint = Endpoint(cap, limit=0)
    while cap.cap > 1:
        endpoint.finish()
    endpoint.limit = float("inf")
    endpoint.finish(cap.in_flight)
    before = endpoint.served
    while cap.cap < 0.9 * maximum:
        endpoint.finish()
        assert endpoint.served - before <= 14 * maximum


@pytest.mark.parametrize(("limit", "most_refused"), [(5, 0.07), (40, 0.03), (130, 0.02)])
def test_settles_near_a_limit_that_it_was_not_told(limit: int, most_refused: float) -> None:
    cap = Cap(256)
    endpoint = Endpoint(cap, limit=limit)
    endpoint.finish(3000)
    endpoint.refused = endpoint.served = 0
    sizes = []
    for _ in range(20_000):
        endpoint.finish()
        sizes.append(cap.cap)
    assert sum(sizes) / len(sizes) >= 0.85 * limit
    assert endpoint.refused / endpoint.served < most_refused


@settings(max_examples=200, deadline=None)
@given(
    maximum=st.integers(min_value=1, max_value=300),
    start=st.integers(min_value=1, max_value=300),
    steps=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(list(Outcome))), max_size=300),
)
def test_properties(maximum: int, start: int, steps: list[tuple[int, Outcome]]) -> None:
    cap = Cap(maximum, start)
    under_way: deque[int] = deque()
    for fill, outcome in steps:
        for _ in range(fill):
            if cap.has_room:
                under_way.append(cap.begin())
        before, episode = cap.cap, cap.episode
        if under_way:
            cap.end(under_way.popleft(), outcome)
        assert 1 <= cap.cap <= maximum
        assert cap.in_flight == len(under_way)
        assert cap.cap <= before + 1
        if cap.cap < before:
            assert outcome is LIMITED
            assert cap.episode == episode + 1
            assert cap.cap >= int(before * 0.8)
        if outcome in (TROUBLE, OTHER):
            assert cap.cap == before
    # No history leaves it stuck: with successes it grows to the maximum.
    while under_way:
        cap.end(under_way.popleft(), OK)
    Endpoint(cap).finish(20 * maximum + 1000)
    assert cap.cap >= 0.9 * maximum


# ---------------------------------------------------------------- the waiting


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_acquire_waits_for_room_and_a_release_wakes_it() -> None:
    slots = AdaptiveConcurrency(2, 2)
    first, second = await slots.acquire(), await slots.acquire()
    waiting = asyncio.create_task(slots.acquire())
    await turn()
    assert not waiting.done()
    second.release(OK)
    await turn()
    assert waiting.done()
    first.release(OK)
    first.release(OK)  # a second release is none
    assert slots.state.in_flight == 1
    waiting.result().release(OTHER)
    assert slots.state.in_flight == 0


async def test_several_releases_in_one_turn() -> None:
    slots = AdaptiveConcurrency(3, 3)
    held = [await slots.acquire() for _ in range(3)]
    waiting = [asyncio.create_task(slots.acquire()) for _ in range(2)]
    await turn()
    for slot in held:
        slot.release(OK)
    await turn()
    assert all(task.done() for task in waiting)
    assert slots.state.in_flight == 2


async def test_after_a_cut_nobody_begins_until_enough_have_ended() -> None:
    slots = AdaptiveConcurrency(10, 10)
    held = [await slots.acquire() for _ in range(10)]
    waiting = asyncio.create_task(slots.acquire())
    held[0].release(LIMITED)
    held[1].release(OK)
    await turn()
    assert not waiting.done()
    held[2].release(OK)
    await turn()
    assert waiting.done()


async def test_a_pause_holds_new_calls_and_can_be_extended() -> None:
    now = 0.0
    naps: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        naps.append(seconds)
        now += seconds
        if len(naps) == 1:
            slots.pause_until(30.0)

    slots = AdaptiveConcurrency(2, 2, clock=lambda: now, sleep=sleep)
    slots.pause_until(10.0)
    slots.pause_until(5.0)
    await slots.acquire()
    assert now == 30.0
    assert naps == [10.0, 20.0]


async def test_a_pause_does_not_freeze_the_cap() -> None:
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    slots = AdaptiveConcurrency(64, 16, clock=lambda: now, sleep=sleep)
    held = [await slots.acquire() for _ in range(16)]
    for slot in held:
        slot.release(LIMITED)
    slots.pause_until(60.0)
    before = slots.state.cap
    for _ in range(14 * 64 // 8):
        held = [await slots.acquire() for _ in range(slots.state.cap)]
        for slot in held:
            slot.release(OK)
    assert before < 16
    assert slots.state.cap >= 0.9 * 64


async def test_cancelled_waiters_take_nothing_and_the_next_goes_on() -> None:
    slots = AdaptiveConcurrency(1, 1)
    held = await slots.acquire()
    tasks = [asyncio.create_task(slots.acquire()) for _ in range(3)]
    await turn()
    tasks[0].cancel()
    tasks[1].cancel()
    await turn()
    held.release(OK)
    await turn()
    assert tasks[2].done()
    assert slots.state.in_flight == 1


async def test_cancelled_in_the_moment_of_waking() -> None:
    """The waiter is woken and cancelled in one turn of the loop: the room is not lost."""
    slots = AdaptiveConcurrency(1, 1)
    held = await slots.acquire()
    waiting = asyncio.create_task(slots.acquire())
    await turn()
    held.release(OK)
    waiting.cancel()
    await turn()
    assert slots.state.in_flight == 0
    await asyncio.wait_for(slots.acquire(), 1)
