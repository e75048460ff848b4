"""Requests and tokens a minute, and places at work, as an endpoint enforces them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


class Bucket:
    """A token bucket: holds `rate x burst` at most, starts full, refills evenly, may go into debt.

    Both vendors document their limits as such buckets, refilled without pause.
    """

    def __init__(self, per_minute: float, burst_s: float, clock: Callable[[], float]) -> None:
        self.per_minute = per_minute
        self.capacity = max(1.0, per_minute * burst_s / 60)
        self._rate = per_minute / 60
        self._clock = clock
        self._level = self.capacity
        self._at = clock()

    @property
    def level(self) -> float:
        now = self._clock()
        self._level = min(self.capacity, self._level + (now - self._at) * self._rate)
        self._at = now
        return self._level

    def wait(self, amount: float) -> float:
        """Seconds until `amount` can be taken; 0 when it can be now."""
        # The level is a float that was refilled in many small steps: a billionth short is not short.
        missing = amount - self.level
        return missing / self._rate if missing > 1e-6 else 0.0

    def take(self, amount: float) -> None:
        self._level = self.level - amount

    @property
    def until_full(self) -> float:
        return max(0.0, (self.capacity - self.level) / self._rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A request over a limit."""

    what: str
    """`requests` or `tokens`."""
    wait_s: float
    limit: float
    requested: float
    never: bool
    """More than the bucket can ever hold: waiting does not help."""


class Limits:
    """Both buckets of one key."""

    def __init__(
        self, *, rpm: float | None, tpm: float | None, burst_s: float, clock: Callable[[], float]
    ) -> None:
        self.requests = None if rpm is None else Bucket(rpm, burst_s, clock)
        self.tokens = None if tpm is None else Bucket(tpm, burst_s, clock)

    def admit(self, input_tokens: int) -> Refusal | None:
        """Charges a request and its input, or neither."""
        for what, bucket, amount in (
            ("requests", self.requests, 1.0),
            ("tokens", self.tokens, float(input_tokens)),
        ):
            if bucket is not None and (wait := bucket.wait(amount)) > 0:
                return Refusal(
                    what=what,
                    wait_s=wait,
                    limit=bucket.per_minute,
                    requested=amount,
                    never=amount > bucket.capacity,
                )
        if self.requests is not None:
            self.requests.take(1.0)
        if self.tokens is not None:
            self.tokens.take(float(input_tokens))
        return None

    def charge_output(self, output_tokens: int) -> None:
        if self.tokens is not None:
            self.tokens.take(float(output_tokens))


class QueueFullError(Exception):
    """The queue before the places is full."""


class Places:
    """A fixed number of servers with one queue, first in, first out."""

    def __init__(self, places: int | None, queue: int | None) -> None:
        self._free = places
        self._queue = queue
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        """Waits for a place; QueueFullError when too many wait already."""
        if self._free is None:
            return
        if self._free > 0:
            self._free -= 1
            return
        if self._queue is not None and len(self._waiting) >= self._queue:
            raise QueueFullError
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.leave()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise

    def leave(self) -> None:
        """Hands the place to the one that waited longest."""
        if self._free is None:
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
