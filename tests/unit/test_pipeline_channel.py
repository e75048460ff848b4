"""The joint between two stages: bounded, ending, and losing nothing under cancellation."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.pipeline.channel import Channel


async def settle() -> None:
    """Let every task run until all of them wait."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_first_in_first_out() -> None:
    channel: Channel[int] = Channel(10)
    for number in range(5):
        await channel.put(number)
    assert len(channel) == 5
    assert await channel.get_many(2) == [0, 1]
    assert await channel.get_many(10) == [2, 3, 4]


async def test_a_full_channel_holds_the_producer_back() -> None:
    channel: Channel[int] = Channel(2)

    async def produce() -> None:
        for number in range(6):
            await channel.put(number)

    task = asyncio.create_task(produce())
    await settle()
    assert len(channel) == 2
    assert await channel.get_many(1) == [0]
    await settle()
    assert len(channel) == 2
    assert await channel.get_many(9) == [1, 2]
    await settle()
    assert await channel.get_many(9) == [3, 4]
    await task
    assert await channel.get_many(9) == [5]


async def test_a_consumer_waits_for_the_first_item_and_takes_no_more_than_are_there() -> None:
    channel: Channel[int] = Channel(10)
    task = asyncio.create_task(channel.get_many(5))
    await settle()
    assert not task.done()
    await channel.put(1)
    assert await task == [1]


async def test_closing_ends_consumers_once_the_rest_is_taken() -> None:
    channel: Channel[int] = Channel(10)
    await channel.put(1)
    await channel.put(2)
    channel.close()
    assert [item async for item in channel] == [1, 2]
    assert await channel.get_many(1) == []


async def test_closing_wakes_everybody() -> None:
    empty: Channel[int] = Channel(1)
    getters = [asyncio.create_task(empty.get_many(1)) for _ in range(3)]
    full: Channel[int] = Channel(1)
    await full.put(0)
    putters = [asyncio.create_task(full.put(number)) for number in range(1, 4)]
    await settle()
    empty.close()
    full.close()
    assert await asyncio.gather(*getters) == [[], [], []]
    await asyncio.gather(*putters)
    assert [item async for item in full] == [0]


async def test_discarding_drops_what_waits() -> None:
    channel: Channel[int] = Channel(10)
    await channel.put(1)
    channel.close(discard=True)
    assert len(channel) == 0
    await channel.put(2)
    assert await channel.get_many(1) == []
    channel.close()
    channel.close(discard=True)


@pytest.mark.parametrize("ending", ["put", "close"])
async def test_a_consumer_cancelled_in_the_moment_it_is_woken(ending: str) -> None:
    """Cancelled first and woken second, within one turn of the loop: the cancellation must come through."""
    channel: Channel[int] = Channel(10)
    doomed = asyncio.create_task(channel.get_many(1))
    other = asyncio.create_task(channel.get_many(1))
    await settle()
    doomed.cancel()
    if ending == "put":
        await channel.put(7)
    else:
        channel.close()
    with pytest.raises(asyncio.CancelledError):
        await doomed
    assert await other == ([7] if ending == "put" else [])


async def test_a_consumer_woken_first_and_cancelled_second_passes_the_turn_on() -> None:
    channel: Channel[int] = Channel(10)
    doomed = asyncio.create_task(channel.get_many(1))
    other = asyncio.create_task(channel.get_many(1))
    await settle()
    await channel.put(7)
    doomed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doomed
    assert await asyncio.wait_for(other, 5) == [7]


async def test_a_producer_cancelled_in_the_moment_there_is_room() -> None:
    for cancel_first in (True, False):
        channel: Channel[int] = Channel(1)
        await channel.put(0)
        doomed = asyncio.create_task(channel.put(1))
        other = asyncio.create_task(channel.put(2))
        await settle()
        if cancel_first:
            doomed.cancel()
        assert await channel.get_many(1) == [0]
        doomed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doomed
        await asyncio.wait_for(other, 5)
        assert await channel.get_many(1) == [2]


STEP = st.tuples(
    st.sampled_from(["produce", "produce", "consume", "consume", "consume many", "cancel", "step"]),
    st.integers(0, 20),
)


@given(steps=st.lists(STEP, max_size=80), size=st.integers(1, 4), closing=st.booleans())
async def test_nothing_is_lost_and_nothing_doubled(
    steps: list[tuple[str, int]], size: int, closing: bool
) -> None:
    channel: Channel[int] = Channel(size)
    accepted: list[int] = []
    received: list[int] = []
    tasks: list[asyncio.Task[None]] = []

    async def produce(first: int) -> None:
        for number in range(first, first + 3):
            await channel.put(number)
            if not channel.closed:
                accepted.append(number)

    async def consume(most: int) -> None:
        received.extend(await channel.get_many(most))

    for at, (what, which) in enumerate(steps):
        if what == "produce":
            tasks.append(asyncio.create_task(produce(1000 * at)))
        elif what.startswith("consume"):
            tasks.append(asyncio.create_task(consume(1 if what == "consume" else 3)))
        elif what == "cancel" and tasks:
            tasks[which % len(tasks)].cancel()
        else:
            await asyncio.sleep(0)
        assert len(channel) <= size
    await settle()
    if closing:
        channel.close()
    else:
        # Everybody who still wants to put gets through when there are takers.
        while len(channel):
            received.extend(await channel.get_many(2))
            await settle()
        channel.close()
    await asyncio.gather(*tasks, return_exceptions=True)
    received += [item async for item in channel]
    assert Counter(received) == Counter(accepted)
    assert all(task.cancelled() or task.exception() is None for task in tasks)
    for first in {number // 1000 for number in received}:
        mine = [number for number in received if number // 1000 == first]
        assert mine == sorted(mine)


async def test_many_workers_share_the_work() -> None:
    channel: Channel[int] = Channel(8)
    seen: list[int] = []

    async def work() -> None:
        async for item in channel:
            await asyncio.sleep(0)
            seen.append(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(work())
        for number in range(500):
            await channel.put(number)
        channel.close()
    assert sorted(seen) == list(range(500))
