"""How fast requests and tokens may go out, by the user's `rpm` and `tpm`.

Both limiters expect one waiter, the endpoint's dispatcher, and cost it next to nothing; more waiters are
served first in, first out. Requests a minute go through asyncio-throttle. Tokens a minute need what no
library has at once: first in, first out, weighted, and able to give back what was reserved too much.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, cast

from asyncio_throttle.throttler import Throttler

Clock = Callable[[], float]
"""Seconds that never run backwards."""
Sleep = Callable[[float], Awaitable[None]]

BURST_S = 3.0
"""Most seconds of token allowance that an idle budget saves up."""
NAP_S = 0.02
"""Longest sleep between two looks at the budget: how late tokens that were given back are noticed."""
_SHORTEST_NAP_S = 0.001
"""What event loops can measure; less would only turn the loop."""
_MOST_EVEN_RPM = 120.0
"""Up to here one request a window; above, the poll of a window that short would cost more than 2 % of it."""
_WINDOWS_A_MINUTE = range(20, 121)


def request_window(rpm: float) -> tuple[int, float]:
    """Requests and seconds of the window that stands for `rpm`.

    A window of a minute would let everything go at once and then nothing for a minute. A whole number of
    windows fits a minute and together they hold at most `rpm`, so that a server that counts any 60 seconds
    never counts more; what the rounding gives away is below one per cent.
    """
    if rpm <= _MOST_EVEN_RPM:
        return 1, 60.0 / rpm
    windows = max(_WINDOWS_A_MINUTE, key=lambda k: (k * math.floor(rpm / k), -abs(k - 60)))
    return math.floor(rpm / windows), 60.0 / windows


class _Throttle(Protocol):
    """What we use of asyncio-throttle, which has no types."""

    rate_limit: float
    period: float
    retry_interval: float

    async def acquire(self) -> None: ...


class RequestRate:
    """Requests a minute; None: no limit."""

    def __init__(self, rpm: float | None) -> None:
        self._throttler: _Throttle | None = None
        self.change(rpm)

    def change(self, rpm: float | None) -> None:
        """Another limit, also for who is waiting now. Requests of the last window count against it."""
        if rpm is None:
            if self._throttler is not None:
                # Who polls it now is let through.
                self._throttler.rate_limit = math.inf
            self._throttler = None
            return
        requests, period = request_window(rpm)
        # asyncio-throttle polls. A two-hundredth of the window costs half a per cent of the rate at worst
        # and one wake-up in 2.5 ms at most, which a single waiter can afford.
        interval = min(period / 200, 0.05)
        if self._throttler is None:
            self._throttler = cast(_Throttle, Throttler(requests, period, retry_interval=interval))
        else:
            throttler = self._throttler
            throttler.rate_limit, throttler.period, throttler.retry_interval = requests, period, interval

    async def acquire(self) -> None:
        """Return when one more request may go out."""
        if self._throttler is not None:
            await self._throttler.acquire()


class Reservation:
    """Tokens taken from a budget for one call, until it is known what the call used."""

    __slots__ = ("_budget", "tokens")

    def __init__(self, budget: TokenBudget, tokens: float) -> None:
        self._budget = budget
        self.tokens = tokens
        """What the budget has been charged so far."""

    def settle(self, actual: float) -> None:
        """Charge what the call really used: give the rest back, or take more. The last word counts.

        A call that used nothing (a 429, a lost connection) is settled with 0.
        """
        self._budget._return(self.tokens - actual)
        self.tokens = actual


class TokenBudget:
    """Tokens a minute; None: no limit.

    A bucket that fills at `tpm / 60` a second up to `burst_s` seconds' worth. A call that is larger than the
    bucket waits until it is full and then goes into debt, which later calls wait for. What is given back may
    fill the bucket beyond its burst: it was part of the allowance before, so that at any time the tokens
    charged since the start are at most `burst + rate * seconds + debt of the last call`.
    """

    def __init__(
        self,
        tpm: float | None,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        burst_s: float = BURST_S,
    ) -> None:
        self._rate = math.inf if tpm is None else tpm / 60.0
        self._burst_s = burst_s
        self.capacity = self._rate * burst_s
        self._clock = clock
        self._sleep = sleep
        self._level = self.capacity
        self._read_at = clock()
        self._paused_until = -math.inf
        # asyncio.Lock serves its waiters in the order they came, and passes on when one is cancelled.
        self._turn = asyncio.Lock()

    @property
    def level(self) -> float:
        """Tokens that are free now; negative: debt."""
        now = self._clock()
        if now > self._read_at:
            if self._level < self.capacity:
                self._level = min(self.capacity, self._level + (now - self._read_at) * self._rate)
            self._read_at = now
        return self._level

    def change(self, tpm: float | None) -> None:
        """Another limit, also for who is waiting now. A debt stays."""
        level = self.level
        self._rate = math.inf if tpm is None else tpm / 60.0
        self.capacity = self._rate * self._burst_s
        self._level = self.capacity if tpm is None else min(level, self.capacity)

    async def reserve(self, estimate: float) -> Reservation:
        """Wait for `estimate` tokens and take them. Cancelled while it waits, it has taken nothing."""
        async with self._turn:
            while (wait := self._wait_s(estimate)) > 0:
                await self._sleep(min(max(wait, _SHORTEST_NAP_S), NAP_S))
            self._level -= estimate
        return Reservation(self, estimate)

    def pause_until(self, when: float) -> None:
        """Reserve nothing before `when` (on the clock), and start from an empty bucket then: Retry-After.

        Who says so has less in its bucket than we thought. What ours holds, and gains until then, would only
        be refused again.
        """
        self._paused_until = max(self._paused_until, when)
        if self._rate < math.inf:
            self._level = min(self.level, 0.0)
            self._read_at = max(self._read_at, when)

    def _wait_s(self, amount: float) -> float:
        """Seconds until `amount` can be taken, as it looks now; 0: at once."""
        missing = min(amount, self.capacity) - self.level
        now = self._clock()
        until_full_enough = self._read_at - now + missing / self._rate if missing > 0 else 0.0
        return max(self._paused_until - now, until_full_enough)

    def _return(self, tokens: float) -> None:
        self._level = self.level + tokens
