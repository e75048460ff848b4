"""One line in front of an endpoint: concurrency, requests a minute, tokens a minute, pauses.

A single dispatcher acquires the limits and hands the right to call on, first in, first out. So a limiter has
one waiter, not a thousand, which matters since asyncio-throttle polls (2 ms of CPU an acquire with 1,000
waiters).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from mmbu_async.endpoints.concurrency import AdaptiveConcurrency, Outcome, Slot
from mmbu_async.endpoints.limits import Clock, RequestRate, Reservation, TokenBudget

LONGEST_PAUSE_S = 3600.0
"""A longer Retry-After is taken as this: the next call finds out whether it still holds."""


class Draining(Exception):  # noqa: N818 - a signal, not an error
    """No further call is started; those under way go on."""


@dataclass(slots=True, kw_only=True)
class Pass:
    """The right to make one call."""

    slot: Slot
    reservation: Reservation
    beyond: Pass | None = None
    """That of the line which several gates share."""

    def leave(self, outcome: Outcome, tokens: float) -> None:
        """The call ended and used this many tokens."""
        self.reservation.settle(tokens)
        if self.beyond is None:
            self.slot.release(outcome)
        else:
            # What the endpoint says of its load, it says of the key: it is learnt there, for all gates.
            self.slot.release(Outcome.OTHER)
            self.beyond.leave(outcome, tokens)


class Beyond(Protocol):
    """A place in a line that several gates share: see `shared.Seat`."""

    async def take(self, tokens: float) -> Pass: ...

    def pause(self, seconds: float) -> None: ...

    @property
    def pause_left(self) -> float: ...


class Gate:
    """Run `dispatch()` as a task beside the callers of `enter()`."""

    def __init__(
        self,
        concurrency: AdaptiveConcurrency,
        rate: RequestRate,
        tokens: TokenBudget,
        *,
        beyond: Beyond | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.concurrency = concurrency
        self._rate = rate
        self._tokens = tokens
        self._beyond = beyond
        self._clock = clock
        self._line: deque[tuple[asyncio.Future[Pass], float]] = deque()
        self._first: asyncio.Future[Pass] | None = None
        """Whose turn it is, while the dispatcher waits for its limits."""
        self._filled = asyncio.Event()
        self._closing = asyncio.Event()
        self._going = asyncio.Event()
        """Not set while the gate is held, unless it is closing."""
        self._going.set()
        self._held_at = 0.0
        self._held_s = 0.0

    @property
    def waiting(self) -> int:
        """Callers in the line."""
        return len(self._line)

    @property
    def pause_left(self) -> float:
        """Seconds until calls are started again; 0 where none are held back by a pause."""
        if self._beyond is not None:
            return self._beyond.pause_left
        return max(0.0, self.concurrency.paused_until - self._clock())

    @property
    def closing(self) -> bool:
        return self._closing.is_set()

    async def enter(self, tokens: float) -> Pass:
        """Wait for the right to make a call of about this many tokens. Raises Draining once closed."""
        if self.closing:
            raise Draining
        turn: asyncio.Future[Pass] = asyncio.get_running_loop().create_future()
        self._line.append((turn, tokens))
        self._filled.set()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                turn.result().leave(Outcome.OTHER, 0)
            raise

    def pause(self, seconds: float) -> None:
        """Start no call for a while: Retry-After. Calls under way go on."""
        if self._beyond is not None:
            self._beyond.pause(seconds)
            return
        until = self._clock() + min(seconds, LONGEST_PAUSE_S)
        self.concurrency.pause_until(until)
        self._tokens.pause_until(until)

    def limit(self, *, concurrency: int, rpm: float | None, tpm: float | None) -> None:
        """Other limits, at once."""
        self.concurrency.change(concurrency)
        self._rate.change(rpm)
        self._tokens.change(tpm)

    def hold(self) -> None:
        """Start no call until `go_on`, however long that takes. Calls under way go on."""
        if self._going.is_set() and not self.closing:
            self._going.clear()
            self._held_at = self._clock()

    def go_on(self) -> None:
        """Undo `hold`."""
        if not self._going.is_set():
            self._held_s += self._clock() - self._held_at
            self._going.set()

    async def unheld(self) -> None:
        """Return at once, or when the gate is held no more. Raises Draining once it is closed."""
        await self._going.wait()
        if self.closing:
            raise Draining

    def time_for_calls(self) -> float:
        """Seconds in which calls might start: a clock that stands still while the gate is held."""
        held_now = 0.0 if self._going.is_set() else self._clock() - self._held_at
        return self._clock() - self._held_s - held_now

    def close(self) -> None:
        """Start no further call at all; whoever waits gets Draining."""
        self._closing.set()
        self.go_on()
        waiting = [turn for turn, _ in self._line]
        self._line.clear()
        if self._first is not None:
            waiting.append(self._first)
        for turn in waiting:
            if not turn.done():
                turn.set_exception(Draining())

    async def sleep(self, seconds: float) -> None:
        """Sleep, but raise Draining as soon as the gate closes."""
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return
        raise Draining

    async def dispatch(self) -> None:
        """Serve the line for ever; ends by cancellation."""
        while True:
            if not self._line:
                self._filled.clear()
                await self._filled.wait()
            await self._going.wait()
            slot = await self.concurrency.acquire()
            try:
                await self._serve(slot)
            except asyncio.CancelledError:
                slot.release(Outcome.OTHER)
                raise

    async def _serve(self, slot: Slot) -> None:
        """Give the slot to the first in the line who still wants it."""
        while self._line and self._line[0][0].done():
            self._line.popleft()
        if not self._line:
            slot.release(Outcome.OTHER)
            return
        turn, tokens = self._line.popleft()
        self._first = turn
        try:
            await self._rate.acquire()
            reservation = await self._tokens.reserve(tokens)
            beyond = None if self._beyond is None else await self._beyond.take(tokens)
        except asyncio.CancelledError:
            turn.cancel()
            raise
        finally:
            self._first = None
        granted = Pass(slot=slot, reservation=reservation, beyond=beyond)
        if turn.done():
            granted.leave(Outcome.OTHER, 0)
        elif not self._going.is_set():
            # Held meanwhile: it is the first again when it goes on.
            granted.leave(Outcome.OTHER, 0)
            self._line.appendleft((turn, tokens))
        else:
            turn.set_result(granted)
