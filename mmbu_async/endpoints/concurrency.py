"""How many calls may be under way at once, learnt from what the endpoint says.

`Cap` is the rule, a plain state machine without clock or tasks. `AdaptiveConcurrency` is the waiting
around it, for one waiter: the endpoint's dispatcher.

The rule. Slow start: one more for each success, which doubles the cap in a round (as many calls as the cap),
until the first 429. A 429 takes a fifth away, once an episode: an episode lasts until the calls begun before
the cut have ended, or a round of newer ones has, so that one hanging call cannot keep it open. Afterwards
the cap grows by an eighth of a call for each success, and by a sixty-fourth around the size that was refused
last. It grows only while at least 80 % of it is used. A server error or a timeout only stops growth for a
round. From anywhere the cap is back at 90 % of the maximum after at most 14 times the maximum successes.
"""

from __future__ import annotations

import asyncio
import math
import time
from enum import Enum, auto

from mmbu_async.endpoints.limits import Clock, Sleep

START = 16
"""Calls under way at the start of a run, where the maximum allows it."""
CUT = 0.8
USED = 0.8
"""Share of the cap that must have been in use for the cap to grow."""
GROWTH = 1 / 8
"""Growth for each success after the first 429."""
CAREFUL_GROWTH = 1 / 64
"""Growth for each success around the cap that was refused last: most of the time is spent just below it."""
AROUND = (0.92, 1.05)
"""Where growth is careful, as multiples of the cap that was refused last. Beyond, the limit has lifted."""


class Outcome(Enum):
    """What a finished call says about the endpoint's load."""

    SUCCESS = auto()
    RATE_LIMITED = auto()
    """429 or 529."""
    TROUBLE = auto()
    """5xx, timeout, lost connection: no reason to shrink, but none to grow either."""
    OTHER = auto()
    """Nothing: a 400, a call that was cancelled."""


class Cap:
    """The rule alone. `begin()` gives the call's stamp, which `end()` wants back."""

    def __init__(self, maximum: int, start: int = START) -> None:
        self.maximum = maximum
        self._start = start
        self.in_flight = 0
        self.episode = 0
        """Times the cap was cut."""
        self._untried_since = 0
        """The episode in which the cap was last new to the endpoint, and slow start began."""
        self._cap = float(max(1, min(start, maximum)))
        self._refused = math.inf
        """The cap at the last cut."""
        self._older = 0
        """Calls under way that began before the last cut."""
        self._newer_to_end = 0
        self._held = 0
        """Calls that must end before the cap may grow again."""
        self._peak = 0
        """Most calls under way at once in this round."""
        self._start_round()

    @property
    def cap(self) -> int:
        return int(self._cap)

    @property
    def slow_start(self) -> bool:
        return self.episode == self._untried_since

    @property
    def has_room(self) -> bool:
        return self.in_flight < self.cap

    def begin(self) -> int:
        """One more call is under way."""
        self.in_flight += 1
        self._peak = max(self._peak, self.in_flight)
        return self.episode

    def end(self, stamp: int, outcome: Outcome) -> None:
        """A call has ended. `stamp` is what its `begin()` returned."""
        in_episode = self._older > 0 and self._newer_to_end > 0
        self.in_flight -= 1
        if stamp < self.episode:
            self._older -= 1
        else:
            self._newer_to_end -= 1
        self._held -= 1
        if outcome is Outcome.RATE_LIMITED and not in_episode:
            self._shrink()
        elif outcome is Outcome.TROUBLE:
            self._held = self.cap
        elif outcome is Outcome.SUCCESS and stamp == self.episode and self._may_grow:
            self._grow()
        self._round_left -= 1
        if self._round_left <= 0:
            self._start_round()

    def change(self, maximum: int) -> None:
        """Another maximum. A larger one is a word that the endpoint takes more than it did: the cap is as
        at the start of a run, where it is not larger already, and slow start begins anew."""
        if maximum > self.maximum:
            self._untried_since = self.episode
            self._refused = math.inf
            self._cap = max(self._cap, float(self._start))
        self.maximum = maximum
        self._cap = min(self._cap, float(maximum))
        self._start_round()

    @property
    def _may_grow(self) -> bool:
        return self._held < 0 and self._peak >= USED * self._round_cap

    def _shrink(self) -> None:
        # From a whole number: 1.9 calls cannot have been under way.
        self._refused = float(self.cap)
        self._cap = max(1.0, self._refused * CUT)
        self.episode += 1
        self._older = self.in_flight
        self._newer_to_end = self.cap
        self._round_left = 0

    def _grow(self) -> None:
        if self.slow_start:
            step = 1.0
        elif AROUND[0] <= self._cap / self._refused <= AROUND[1]:
            step = CAREFUL_GROWTH
        else:
            step = GROWTH
        self._cap = min(float(self.maximum), self._cap + step)

    def _start_round(self) -> None:
        self._round_cap = self.cap
        self._round_left = self.cap
        self._peak = self.in_flight


class Slot:
    """The right to have one call under way."""

    __slots__ = ("_owner", "_stamp")

    def __init__(self, owner: AdaptiveConcurrency, stamp: int) -> None:
        self._owner: AdaptiveConcurrency | None = owner
        self._stamp = stamp

    def release(self, outcome: Outcome) -> None:
        """The call has ended. A second release does nothing."""
        if self._owner is not None:
            self._owner._release(self._stamp, outcome)
            self._owner = None


class AdaptiveConcurrency:
    """Slots for calls. More waiters than one are served first in, first out."""

    def __init__(
        self,
        maximum: int,
        start: int = START,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.state = Cap(maximum, start)
        self._clock = clock
        self._sleep = sleep
        self._paused_until = -math.inf
        self._turn = asyncio.Lock()
        self._room: asyncio.Future[None] | None = None

    @property
    def paused_until(self) -> float:
        """On the clock; in the past where there is no pause."""
        return self._paused_until

    async def acquire(self) -> Slot:
        """Wait until one more call may begin. Cancelled while it waits, it has taken nothing."""
        async with self._turn:
            while True:
                if (pause := self._paused_until - self._clock()) > 0:
                    await self._sleep(pause)
                elif self.state.has_room:
                    return Slot(self, self.state.begin())
                else:
                    await self._wait_for_room()

    def pause_until(self, when: float) -> None:
        """Begin no call before `when` (on the clock): Retry-After. Calls under way go on."""
        self._paused_until = max(self._paused_until, when)

    def change(self, maximum: int) -> None:
        """Another maximum, at once. Calls under way beyond a smaller one end as they would have."""
        self.state.change(maximum)
        self._wake()

    async def _wait_for_room(self) -> None:
        self._room = asyncio.get_running_loop().create_future()
        try:
            await self._room
        finally:
            self._room = None

    def _release(self, stamp: int, outcome: Outcome) -> None:
        self.state.end(stamp, outcome)
        self._wake()

    def _wake(self) -> None:
        if self._room is not None and not self._room.done() and self.state.has_room:
            self._room.set_result(None)
