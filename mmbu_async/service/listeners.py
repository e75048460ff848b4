"""Who is told what happens: any number of subscriptions, none of which can hold up the service."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from mmbu_async.model import Json
from mmbu_async.service.jobs import Event, EventKind

BEHIND = 512
"""Events that a subscription may be behind before it loses the oldest."""


class Listeners:
    """All subscriptions of a service."""

    def __init__(self, *, behind: int = BEHIND) -> None:
        self._behind = behind
        self._number = 0
        self._open: set[Listener] = set()
        self.closed = False

    def tell(self, kind: EventKind, run: str, data: Json) -> None:
        """An event for all who listen; nothing is made where nobody does."""
        self._number += 1
        if self._open:
            event = Event.of(self._number, kind, run, data)
            for listener in self._open:
                if listener.run in (None, run):
                    listener.put(event)

    def subscribe(self, run: str | None) -> Listener:
        return Listener(self, run, self._behind)

    def close(self) -> None:
        """Every subscription ends when it has given out what it holds."""
        self.closed = True
        for listener in self._open:
            listener.wake()

    def _enter(self, listener: Listener) -> None:
        self._open.add(listener)

    def _leave(self, listener: Listener) -> None:
        self._open.discard(listener)


class Listener:
    """One subscription; see `jobs.Subscription`."""

    def __init__(self, listeners: Listeners, run: str | None, behind: int) -> None:
        self.run = run
        self._listeners = listeners
        self._events: deque[Event] = deque(maxlen=behind)
        self._lost = 0
        self._filled = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._listeners._enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listeners._leave(self)

    def put(self, event: Event) -> None:
        if len(self._events) == self._events.maxlen:
            self._lost += 1
        self._events.append(event)
        self._filled.set()

    def wake(self) -> None:
        self._filled.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            while not self._events:
                if self._listeners.closed:
                    return
                self._filled.clear()
                await self._filled.wait()
            if self._lost:
                lost, self._lost = self._lost, 0
                yield Event.of(self._events[0].number - 1, "dropped", "", {"missed": lost})
            yield self._events.popleft()
