"""A stage's look at itself: how late its own event loop is, and how much of a core it takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from mmbu_async.bench.histogram import Histogram

PROBE_S = 0.02
"""Between two looks at the loop's lateness: 50 wake-ups a second, a thousandth of a core."""
TICK_S = 0.25
"""Between two entries of the timeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What was seen in one step of the timeline."""

    at_s: float
    """Its end, after the stage's begin."""
    outstanding: int
    """Requests that were due and had not ended."""
    in_flight: int
    """Those of them that had started."""
    lag_s: float
    """Largest lateness of the event loop in it."""
    cpu: float
    """Share of one core that the event loop's thread took."""


class Watcher:
    """Runs beside a stage. `cpu` reads the seconds of CPU that this thread has used."""

    def __init__(
        self,
        look: Callable[[], tuple[int, int]],
        *,
        clock: Callable[[], float],
        cpu: Callable[[], float] = time.thread_time,
        each_tick: Callable[[], None] = lambda: None,
    ) -> None:
        self.ticks: list[Tick] = []
        self.lags = Histogram()
        """Lateness of every probe."""
        self._look = look
        self._clock = clock
        self._cpu = cpu
        self._each_tick = each_tick

    async def run(self) -> None:
        """Until it is cancelled."""
        began = tick_began = self._clock()
        cpu = self._cpu()
        lags: list[float] = []
        while True:
            due = self._clock() + PROBE_S
            await asyncio.sleep(PROBE_S)
            now = self._clock()
            lags.append(max(0.0, now - due))
            if now - tick_began < TICK_S:
                continue
            used, cpu = self._cpu() - cpu, self._cpu()
            outstanding, in_flight = self._look()
            self.ticks.append(
                Tick(
                    at_s=now - began,
                    outstanding=outstanding,
                    in_flight=in_flight,
                    lag_s=max(lags),
                    cpu=used / (now - tick_began),
                )
            )
            self.lags.add(lags)
            lags, tick_began = [], now
            self._each_tick()
