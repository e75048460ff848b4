"""How a time is spread over requests: mean and percentiles with intervals.

Requests that wait in one queue are not independent, so whole runs of neighbours are drawn anew, not single
ones (block bootstrap: Künsch, Annals of Statistics 17, 1989). Each run is a histogram, a draw a sum of
histograms: one product of matrices, whose cost does not grow with the number of requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mmbu_async.bench.histogram import Histogram, buckets_of, middles
from mmbu_async.stats import Estimate

SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
RUNS = 60
"""Of neighbours, at most."""
FEWEST_RUNS = 8
"""With fewer there is no interval."""
DRAWS = 500
LEVEL = 0.95

Counts = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Seconds. Percentiles are within `histogram.ERROR` of the values' own; mean and largest are exact."""

    count: int
    mean: Estimate
    percentiles: dict[str, Estimate]
    """By their names in SHARES."""
    least: float
    largest: float

    def percentile(self, name: str) -> float:
        """Its value: a spread of nothing is not made."""
        value = self.percentiles[name].value
        return 0.0 if value is None else value


def spread(values: Sequence[float] | Counts) -> Spread | None:
    """Of values in the order of their starts; None for no value."""
    found = np.asarray(values, dtype=np.float64)
    if not len(found):
        return None
    runs = min(RUNS, len(found))
    place = np.arange(len(found)) * runs // len(found)
    numbers, inverse = np.unique(buckets_of(found), return_inverse=True)
    counts = np.bincount(place * len(numbers) + inverse, minlength=runs * len(numbers))
    totals: Counts = np.bincount(place, weights=found, minlength=runs).astype(np.float64)
    return _of_runs(
        Histogram.of(found), counts.reshape(runs, len(numbers)).astype(np.float64), totals, middles(numbers)
    )


def spread_of(histograms: Iterable[Histogram]) -> Spread | None:
    """Of values that are known as histograms, one for each run of neighbours."""
    parts = [one for one in histograms if one.count]
    if not parts:
        return None
    whole = Histogram()
    for part in parts:
        whole.merge(part)
    numbers, _ = whole.arrays()
    counts = np.zeros((len(parts), len(numbers)))
    for row, part in enumerate(parts):
        mine, many = part.arrays()
        counts[row, np.searchsorted(numbers, mine)] = many
    return _of_runs(whole, counts, np.array([part.total for part in parts]), middles(numbers))


def _of_runs(whole: Histogram, counts: Counts, totals: Counts, values: Counts) -> Spread:
    runs = len(counts)
    if runs < FEWEST_RUNS:
        mean = Estimate(value=whole.mean)
        found = {name: Estimate(value=whole.quantile(share)) for name, share in SHARES.items()}
    else:
        drawn = draws(runs)
        cumulated = np.cumsum(drawn @ counts, axis=1)
        number = cumulated[:, -1]
        means = (drawn @ totals) / number
        mean = _estimate(whole.mean, means)
        found = {}
        for name, share in SHARES.items():
            rank = np.ceil(share * number - 1e-9)
            place = (cumulated < rank[:, None]).sum(axis=1)
            found[name] = _estimate(whole.quantile(share), values[place])
    return Spread(count=whole.count, mean=mean, percentiles=found, least=whole.least, largest=whole.largest)


@lru_cache(maxsize=16)
def draws(runs: int) -> Counts:
    """How often each run is drawn, a row for each draw; the same for the same number of runs, so that the
    same records always have the same intervals."""
    random = np.random.default_rng(runs)
    made = random.multinomial(runs, np.full(runs, 1 / runs), size=DRAWS).astype(np.float64)
    made.flags.writeable = False
    return made


def rate(moments: Sequence[float] | Counts, weights: Sequence[float], length: float) -> Estimate:
    """What there is a second, of things that happen within so many seconds and weigh something.

    Stretches of time are drawn anew, as runs are above.
    """
    if length <= 0:
        return Estimate()
    at = np.asarray(moments, dtype=np.float64)
    weight = np.asarray(weights, dtype=np.float64)
    value = float(weight.sum()) / length
    stretches = min(RUNS, len(at))
    if stretches < FEWEST_RUNS:
        return Estimate(value=value)
    place = np.clip((at / length * stretches).astype(int), 0, stretches - 1)
    sums = np.bincount(place, weights=weight, minlength=stretches)
    return _estimate(value, draws(stretches) @ sums / length)


def _estimate(value: float | None, drawn: Counts) -> Estimate:
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Estimate(value=value, low=float(low), high=float(high))
