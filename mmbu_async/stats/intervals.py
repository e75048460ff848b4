"""Closed-form intervals: what stands beside the bootstrap where n is small or every row is alike, and where
values are no counts, so that resampling them would have to keep them all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Both ends included; fractions from 0 to 1."""

    low: float
    high: float


def wilson(successes: int, n: int, *, level: float = 0.95) -> Interval | None:
    """Wilson score interval of a proportion; None where there is nothing to estimate.

    Unlike the bootstrap it keeps a width when all rows are right or all are wrong. scipy's `binomtest` has
    the same interval, but computes a p-value first, which takes a thousand times as long, and importing
    scipy takes a third of a second.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} rows cannot be.")
    if n == 0:
        return None
    z = NormalDist().inv_cdf(0.5 + level / 2)
    spread = z * math.sqrt(z * z / 4 + successes * (n - successes) / n)
    # At the ends the exact value is 0 or 1; rounding would leave it a hair inside.
    low = 0.0 if successes == 0 else (successes + z * z / 2 - spread) / (n + z * z)
    high = 1.0 if successes == n else (successes + z * z / 2 + spread) / (n + z * z)
    return Interval(low=low, high=high)


def mean_interval(n: int, total: float, squares: float, *, level: float = 0.95) -> Interval | None:
    """Normal interval of the mean of values from 0 to 1, of which there are the sum and the sum of squares;
    None for fewer than two values, whose spread is not known."""
    if n < 2:
        return None
    mean = total / n
    variance = max(0.0, (squares - n * mean * mean) / (n - 1))
    spread = NormalDist().inv_cdf(0.5 + level / 2) * math.sqrt(variance / n)
    return Interval(low=max(0.0, mean - spread), high=min(1.0, mean + spread))
