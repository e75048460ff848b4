"""The money cap."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.config import RunConfig
from mmbu_async.endpoints.gate import Draining
from mmbu_async.endpoints.prices import Prices
from mmbu_async.pipeline.budget import Budget, most_unpriced
from mmbu_async.store import Unpriced


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Reached:
    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> None:
        self.times += 1


def budget(cap: float | None, spent: float = 0.0) -> tuple[Budget, Reached]:
    reached = Reached()
    return Budget(cap, spent, reached), reached


async def test_without_a_cap_it_only_counts() -> None:
    purse, reached = budget(None)
    for _ in range(3):
        await purse.hold(1e9)
        purse.settle(1e9, 2.0)
    await purse.hold(None)
    purse.settle(None, None)
    assert purse.spent == 6.0
    assert reached.times == 0


async def test_a_call_that_fits_goes_at_once() -> None:
    purse, reached = budget(10.0)
    await purse.hold(4.0)
    await purse.hold(6.0)
    assert reached.times == 0


async def test_a_call_that_does_not_fit_waits_for_those_under_way() -> None:
    purse, reached = budget(10.0)
    await purse.hold(6.0)
    waiting = asyncio.create_task(purse.hold(6.0))
    await settle()
    assert not waiting.done()
    purse.settle(6.0, 1.0)
    await settle()
    assert waiting.done()
    assert reached.times == 0
    assert purse.spent == 1.0


async def test_the_cap_is_reached_when_nothing_under_way_can_make_room() -> None:
    purse, reached = budget(10.0, spent=5.0)
    with pytest.raises(Draining):
        await purse.hold(6.0)
    assert reached.times == 1
    with pytest.raises(Draining):
        await purse.hold(0.1)
    assert reached.times == 1, "the run is told once"


async def test_reaching_the_cap_wakes_all_who_wait() -> None:
    purse, reached = budget(10.0)
    await purse.hold(9.0)
    waiting = [asyncio.create_task(purse.hold(5.0)) for _ in range(5)]
    await settle()
    purse.settle(9.0, 9.0)
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(result, Draining) for result in results)
    assert reached.times == 1


async def test_a_call_that_can_never_fit_ends_the_run_at_once_and_for_those_who_wait() -> None:
    purse, reached = budget(10.0)
    await purse.hold(2.0)
    purse.settle(2.0, 2.0)
    await purse.hold(6.0)
    waiting = asyncio.create_task(purse.hold(5.0))
    await settle()
    with pytest.raises(Draining):
        await asyncio.wait_for(purse.hold(9.0), 5)
    await settle()
    assert waiting.done()
    assert isinstance(waiting.exception(), Draining)
    assert reached.times == 1
    # The one under way ends as it may.
    purse.settle(6.0, 5.0)
    assert purse.spent == 7.0


async def test_an_unknown_cost_counts_as_its_worst_case() -> None:
    purse, _ = budget(10.0)
    await purse.hold(4.0)
    purse.settle(4.0, None)
    assert purse.spent == 4.0


async def test_earlier_sessions_count() -> None:
    purse, reached = budget(10.0, spent=10.0)
    with pytest.raises(Draining):
        await purse.hold(0.01)
    assert reached.times == 1


async def test_a_waiter_that_is_cancelled_takes_nothing() -> None:
    purse, _ = budget(10.0)
    await purse.hold(6.0)
    doomed = asyncio.create_task(purse.hold(6.0))
    await settle()
    doomed.cancel()
    await settle()
    purse.settle(6.0, 0.0)
    await purse.hold(10.0)


CALL = st.tuples(st.floats(0.01, 4.0), st.floats(0.0, 1.0) | st.none(), st.integers(0, 12), st.booleans())


@given(calls=st.lists(CALL, max_size=30), cap=st.floats(0.5, 20.0), before=st.floats(0.0, 10.0))
async def test_the_cap_holds_as_long_as_calls_cost_at_most_what_they_set_aside(
    calls: list[tuple[float, float | None, int, bool]], cap: float, before: float
) -> None:
    purse, reached = budget(cap, before)
    refused = 0
    tiny = 1e-9 * (cap + before)

    async def call(worst: float, share: float | None, turns: int, doomed: bool) -> None:
        nonlocal refused
        try:
            await purse.hold(worst)
        except Draining:
            refused += 1
            return
        spent: float | None = worst
        try:
            for _ in range(turns):
                await asyncio.sleep(0)
            spent = None if share is None else share * worst
        finally:
            purse.settle(worst, spent)
        assert purse.spent <= max(cap, before) + tiny

    tasks = [asyncio.create_task(call(*arguments)) for arguments in calls]
    for _ in range(5):
        await asyncio.sleep(0)
    for task, (*_, doomed) in zip(tasks, calls, strict=True):
        if doomed:
            task.cancel()
    # Nobody waits for ever: everyone is let through or turned away.
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
    assert purse.spent <= max(cap, before) + tiny
    assert reached.times == (1 if refused else 0)
    for task in tasks:
        assert task.cancelled() or task.exception() is None


def test_earlier_calls_of_unknown_cost_are_taken_at_their_worst() -> None:
    settings = RunConfig(model="m", max_tokens=100, input_price=1.0, output_price=10.0)
    price = Prices().find(settings)
    assert price is not None
    none = Unpriced(most_input_tokens=500)
    assert most_unpriced(none, settings, price) == 0.0
    # Tokens that are known are no guess: 2,000 in and 300 out.
    counted = Unpriced(input_tokens=2_000, output_tokens=300, most_input_tokens=500)
    assert most_unpriced(counted, settings, price) == pytest.approx(0.005)
    # Lost on the way: the largest request seen, and a reply up to its limit.
    lost = Unpriced(unseen=3, most_input_tokens=500)
    assert most_unpriced(lost, settings, price) == pytest.approx(3 * 0.0015)
    blind = Unpriced(unseen=1)
    assert most_unpriced(blind, settings, price) > most_unpriced(lost, settings, price) / 3
