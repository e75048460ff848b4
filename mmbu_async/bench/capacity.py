"""What an endpoint serves at its fullest, and where it gets there: the knee of throughput over load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mmbu_async.bench.figures import Figures
from mmbu_async.bench.measured import End
from mmbu_async.bench.plan import Closed, Open
from mmbu_async.bench.record import Phase
from mmbu_async.bench.saturation import SERVICE_VARIANCE, SIGMAS
from mmbu_async.stats import Estimate

GROWTH = 1.1
"""Times by which throughput must grow where users double for the endpoint not to be full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What was seen of an endpoint that was full."""

    rate: Estimate
    """Replies a second; without a value where it never was full."""
    users: float | None
    """Requests under way at which it just is: that rate times the time of a reply that waits for nobody."""
    stages: int
    """In how many stages it was full."""


def capacity(stages: Sequence[Figures]) -> Capacity:
    """From everything that was measured on one endpoint."""
    full = [found for found in stages if _is_full(found, stages)]
    if not full:
        return Capacity(rate=Estimate(), users=None, stages=0)
    weights = [found.window_s for found in full]
    whole = sum(weights)

    def mean(ends: Sequence[float | None]) -> float:
        return sum((end or 0.0) * weight for end, weight in zip(ends, weights, strict=True)) / whole

    value = mean([found.rates.requests.value for found in full])
    # Stages are independent of each other: their mean is as much better known as there are more of them.
    narrower = len(full) ** -0.5
    low = mean([found.rates.requests.low for found in full])
    high = mean([found.rates.requests.high for found in full])
    rate = Estimate(value=value, low=value - (value - low) * narrower, high=value + (high - value) * narrower)
    alone = _alone(stages, value)
    return Capacity(rate=rate, users=None if alone is None else value * alone, stages=len(full))


def _is_full(found: Figures, stages: Sequence[Figures]) -> bool:
    value = found.rates.requests.value
    if not value or found.short or found.rates.requests.low is None:
        return False
    if isinstance(found.load, Open):
        if found.load.most_in_flight is not None:
            return False
        return found.ended is End.SATURATED or _piled_up(found, found.load)
    half = [
        other.rates.requests.value
        for other in stages
        if isinstance(other.load, Closed) and other.load.concurrency * 2 <= found.load.concurrency
    ]
    best = max((rate for rate in half if rate), default=None)
    return best is not None and value < GROWTH * best


def _piled_up(found: Figures, load: Open) -> bool:
    """More than chance makes of as many arrivals."""
    started, served = found.rates.started.value or 0.0, found.rates.requests.value or 0.0
    bad = (found.counted - found.phases.get(Phase.OK, 0)) / max(1, found.counted)
    grown = (started * (1 - bad) - served) * found.window_s
    return grown > SIGMAS * math.sqrt(started * found.window_s * (load.arrivals.variance + SERVICE_VARIANCE))


def _alone(stages: Sequence[Figures], full: float) -> float | None:
    """Seconds of a reply that waits for nobody: the mean over closed loops of at most half as many users as
    fill the endpoint."""
    closed = sorted(
        (found for found in stages if isinstance(found.load, Closed) and found.times.service is not None),
        key=lambda found: found.load.size,
    )
    alone: float | None = None
    total, count = 0.0, 0
    for found in closed:
        if found.times.service is None or (alone is not None and found.load.size > full * alone / 2):
            break
        total += (found.times.service.mean.value or 0.0) * found.times.service.count
        count += found.times.service.count
        alone = total / count
    return alone
