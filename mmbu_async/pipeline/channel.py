"""A bounded queue that ends: the joint between two stages."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Channel(Generic[T]):
    """First in, first out. A full channel holds the producer back; a closed one ends its consumers.

    `asyncio.Queue` can say that it is shut down only from Python 3.13 on.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: deque[T] = deque()
        self._getters: deque[asyncio.Future[None]] = deque()
        self._putters: deque[asyncio.Future[None]] = deque()
        self.closed = False

    def __len__(self) -> int:
        return len(self._items)

    async def put(self, item: T) -> None:
        """Wait for room, then append. What is put into a closed channel is dropped."""
        while len(self._items) >= self._size and not self.closed:
            await self._wait(self._putters)
        if not self.closed:
            self._items.append(item)
            _wake(self._getters)

    async def get_many(self, most: int) -> list[T]:
        """At least one item and at most `most`; empty once the channel is closed and drained."""
        while not self._items:
            if self.closed:
                return []
            await self._wait(self._getters)
        items = [self._items.popleft() for _ in range(min(most, len(self._items)))]
        for _ in items:
            _wake(self._putters)
        if self._items:
            _wake(self._getters)
        return items

    async def __aiter__(self) -> AsyncIterator[T]:
        while items := await self.get_many(1):
            yield items[0]

    def close(self, *, discard: bool = False) -> None:
        """No more items will come; `discard` also drops those that wait."""
        self.closed = True
        if discard:
            self._items.clear()
        for waiters in (self._getters, self._putters):
            while waiters:
                _wake(waiters)

    async def _wait(self, waiters: deque[asyncio.Future[None]]) -> None:
        waiter = asyncio.get_running_loop().create_future()
        waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                # Woken and cancelled at once: somebody else must have the turn.
                _wake(waiters)
            elif waiter in waiters:
                waiters.remove(waiter)
            raise


def _wake(waiters: deque[asyncio.Future[None]]) -> None:
    while waiters:
        waiter = waiters.popleft()
        if not waiter.done():
            waiter.set_result(None)
            return
