"""What a stage leaves behind: everything that figures are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mmbu_async.bench.gaps import Gaps
from mmbu_async.bench.histogram import Histogram
from mmbu_async.bench.plan import StagePlan
from mmbu_async.bench.record import Record
from mmbu_async.bench.watching import Tick


class End(StrEnum):
    """Why a stage started no further request."""

    COUNT = "count"
    TIME = "time"
    INTERVAL = "interval"
    """The median is known well enough."""
    COST = "cost"
    SATURATED = "over-saturated"
    """More was asked than is served: the figures say how long the stage was, not what the endpoint can do."""
    DEAD = "endpoint down"
    REFUSED = "refused"
    """The endpoint refuses every request: key, model name, quota."""
    INTERRUPTED = "interrupted"


EARLY_ENDS = frozenset({End.COST, End.SATURATED, End.DEAD, End.REFUSED, End.INTERRUPTED})
"""What still waits for a start of its own is not started any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A stage that has ended. Times are seconds after its begin."""

    plan: StagePlan
    target: str
    """Label of the endpoint."""
    began_at: float
    """Unix seconds."""
    begin_s: float
    """What was meant to start before is warm-up."""
    end_s: float
    """No request was meant to start after it."""
    ended: End
    records: tuple[Record, ...]
    """In the order of their intended starts."""
    gaps: Gaps
    """Between tokens of the streams that count."""
    ticks: tuple[Tick, ...]
    lags: Histogram
    """Lateness of the event loop, every probe."""
    drained_s: float
    """From there to the last end."""

    def counts(self, record: Record) -> bool:
        """Whether it is no warm-up."""
        return record.number >= self.plan.warmup.requests and record.intended_s >= self.begin_s
