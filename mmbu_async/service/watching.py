"""What is known of a run at work: where it stands, how that was before, and what it has said."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from math import ceil

from mmbu_async.pipeline.logs import RUN, PlainLines
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.progress import waits
from mmbu_async.pipeline.run import Stages
from mmbu_async.service.jobs import Progress

POINTS = 720
"""Of a history: twelve minutes, second by second, or a night in coarser and coarser steps."""
LINES = 500
"""Of a run's log."""


def measure(
    monitor: Monitor, stages: Stages, *, cost_before: float, unpriced_before: int, at: float, now: float
) -> Progress:
    """A run as it is. `at`: seconds since 1970, `now`: on the monotonic clock of the monitor; `cost_before`,
    in US dollars, and `unpriced_before` are of earlier sessions."""
    rate = monitor.rate(now)
    latencies = sorted(monitor.latencies)
    return Progress(
        at=at,
        done=monitor.done_before + monitor.done,
        total=monitor.total,
        judged=max(0, monitor.done_before + monitor.done - monitor.unjudged),
        failed=monitor.failed,
        rows_per_s=rate,
        eta_s=monitor.open / rate if rate > 0 and not monitor.paused else None,
        cost_usd=cost_before + monitor.spent,
        cost_unknown=unpriced_before + monitor.unpriced,
        in_flight=sum(side.client.gate.concurrency.state.in_flight for side in stages.sides),
        waiting="; ".join(waits(monitor, stages, now)),
        errors={str(kind): number for kind, number in monitor.kinds.items()},
        latency_p50_s=_percentile(latencies, 0.50),
        latency_p95_s=_percentile(latencies, 0.95),
        calls=monitor.calls,
        queue=monitor.judge_waiting,
    )


def _percentile(values: list[float], share: float) -> float | None:
    """The smallest of the sorted values that so large a share does not exceed."""
    return values[max(0, ceil(share * len(values)) - 1)] if values else None


class History:
    """Points of one run. When there are too many, every other one of the older half goes: the way back is as
    long as the run, and its memory is not."""

    def __init__(self, most: int = POINTS) -> None:
        self._most = most
        self.points: list[Progress] = []

    def add(self, point: Progress) -> None:
        self.points.append(point)
        if len(self.points) > self._most:
            half = self._most // 2
            self.points = [*self.points[0:half:2], *self.points[half:]]


class Logbook(logging.Handler):
    """The latest lines of each run, by the context in which they were said; others are passed over."""

    def __init__(self, tell: Callable[[str, str], None], *, lines: int = LINES) -> None:
        """`tell` hears of each line, on the event loop in which this was made, with its run first."""
        super().__init__()
        self.setFormatter(PlainLines())
        self._tell = tell
        self._lines = lines
        self._books: dict[str, deque[str]] = {}
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def lines(self, run: str) -> list[str]:
        """Oldest first."""
        return list(self._books.get(run, ()))

    def forget(self, run: str) -> None:
        self._books.pop(run, None)

    def emit(self, record: logging.LogRecord) -> None:
        run = RUN.get()
        if not run:
            return
        line = self.format(record)
        if threading.get_ident() == self._thread:
            self._note(run, line)
        else:
            self._loop.call_soon_threadsafe(self._note, run, line)

    def _note(self, run: str, line: str) -> None:
        self._books.setdefault(run, deque(maxlen=self._lines)).append(line)
        self._tell(run, line)
