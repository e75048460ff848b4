"""Closed-form intervals: what stands beside the bootstrap where n is small or every row is alike."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import stats


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Both ends included; fractions from 0 to 1."""

    low: float
    high: float


def wilson(successes: int, n: int, *, level: float = 0.95) -> Interval | None:
    """Wilson score interval of a proportion; None where there is nothing to estimate.

    Unlike the bootstrap it keeps a width when all rows are right or all are wrong.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} rows cannot be.")
    if n == 0:
        return None
    found = stats.binomtest(successes, n).proportion_ci(confidence_level=level, method="wilson")
    return Interval(low=float(found.low), high=float(found.high))
