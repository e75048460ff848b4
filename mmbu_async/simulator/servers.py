"""A fixed number of servers behind one queue, in exact times: what a measurement must find is known.

`Places` gives a place back when a reply has really gone out, a little later than planned on a busy machine,
and so has a little less than its stated capacity. Here beginning and end of each piece of work are computed
when it arrives: first in, first out, each taken by the server that is free first. Only the delivery can be
late. A request whose client goes away is worked on all the same.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from mmbu_async.simulator.limits import QueueFullError

Window = tuple[float, float]
"""Begin and end in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """When a server works on a request, in seconds of work: those in which the servers do not stand still."""

    begins: float
    ends: float


class Servers:
    """Times are seconds of one clock that never runs backwards. `freezes` count from the first arrival."""

    def __init__(
        self,
        servers: int,
        *,
        clock: Callable[[], float],
        queue: int | None = None,
        freezes: Sequence[Window] = (),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._free = [0.0] * servers
        """A heap: when each server is free."""
        self._clock = clock
        self._sleep = sleep
        self._queue = queue
        self._given = tuple(freezes)
        self._frozen: list[Window] = []
        """On the clock, in order, apart from each other."""
        self._begun = False
        self._waiting: deque[float] = deque()
        """When those will begin that had to wait."""

    def admit(self, service_s: float) -> Turn:
        """A request that takes so long arrives now. Raises QueueFullError where too many wait already."""
        now = self._clock()
        if not self._begun:
            self._begun = True
            for begin, end in self._given:
                self._freeze(now + begin, now + end)
        arrived = self.work(now)
        while self._waiting and self._waiting[0] <= arrived:
            self._waiting.popleft()
        begins = max(arrived, self._free[0])
        if begins > arrived:
            if self._queue is not None and len(self._waiting) >= self._queue:
                raise QueueFullError
            self._waiting.append(begins)
        heapq.heapreplace(self._free, begins + service_s)
        return Turn(begins=begins, ends=begins + service_s)

    def freeze(self, seconds: float) -> None:
        """From now on no server does anything for so long."""
        now = self._clock()
        self._freeze(now, now + seconds)

    def work(self, at: float) -> float:
        """Seconds of work until a moment of the clock."""
        return at - sum(min(end, at) - begin for begin, end in self._frozen if begin < at)

    def moment(self, work: float) -> float:
        """The moment of the clock at which so many seconds of work are done."""
        at = work
        for begin, end in self._frozen:
            if begin >= at:
                break
            at += end - begin
        return at

    async def until(self, work: float) -> None:
        """Wait until so much work is done; a freeze that comes meanwhile lengthens it."""
        while (left := self.moment(work) - self._clock()) > 0:
            await self._sleep(left)

    def _freeze(self, begin: float, end: float) -> None:
        joined = sorted([*self._frozen, (begin, end)])
        self._frozen = [joined[0]]
        for begin, end in joined[1:]:
            last_begin, last_end = self._frozen[-1]
            if begin <= last_end:
                self._frozen[-1] = (last_begin, max(last_end, end))
            else:
                self._frozen.append((begin, end))
