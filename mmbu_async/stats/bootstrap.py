"""Row bootstrap of accuracy and micro-F1, at a cost that does not depend on the number of rows.

Rows fall into few distinct outcome patterns. Drawing n rows with replacement and counting them by pattern
is, by definition, one draw from a multinomial with the observed shares: so a resample is drawn as a handful
of counts, and the result is exactly that of resampling rows, not an approximation of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmbu_async.stats.f1 import micro_f1, micro_f1_each
from mmbu_async.stats.intervals import Interval

RESAMPLES = 1_000
LEVEL = 0.95


class Pattern(NamedTuple):
    """How one row came out: all that accuracy and micro-F1 need of it."""

    tp: int
    fp: int
    fn: int
    correct: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its interval; None where there is none (no rows, 0/0), never NaN."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The two figures of a set of rows, from the same resamples."""

    accuracy: Estimate
    f1: Estimate


def headline(
    counts: Mapping[Pattern, int],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Headline:
    """Accuracy and micro-F1 of the rows that `counts` sums up, with percentile intervals."""
    kept = [(pattern, count) for pattern, count in counts.items() if count]
    if not kept:
        return Headline(accuracy=Estimate(), f1=Estimate())
    outcome = np.array([pattern for pattern, _ in kept], dtype=np.int64)
    observed = np.array([count for _, count in kept], dtype=np.int64)
    tp, fp, fn, right = (int(total) for total in observed @ outcome)
    n = int(observed.sum())
    drawn = resample_counts(observed, rng, resamples) @ outcome
    return Headline(
        accuracy=estimate(right / n, drawn[:, 3] / n, level),
        f1=estimate(micro_f1(tp, fp, fn), micro_f1_each(*drawn[:, :3].T), level),
    )


def resample_counts(observed: ArrayLike, rng: np.random.Generator, resamples: int) -> NDArray[np.int64]:
    """How often each pattern occurs in each resample: shape (resamples, patterns).

    `observed` holds how often each pattern occurs in the data; its sum must be positive.
    """
    seen = np.asarray(observed, dtype=np.int64)
    n = int(seen.sum())
    return rng.multinomial(n, seen / n, size=resamples)


def percentile_interval(values: NDArray[np.float64], level: float = LEVEL) -> Interval | None:
    """The middle `level` of resampled values; None where no resample has a value."""
    if not values.size:
        return None
    tail = 50 * (1 - level)
    low, high = np.percentile(values, (tail, 100 - tail))
    return Interval(low=float(low), high=float(high))


def estimate(value: float | None, resampled: NDArray[np.float64], level: float) -> Estimate:
    """A figure with the interval of its resampled values; without either where it has none."""
    if value is None:
        return Estimate()
    interval = percentile_interval(resampled, level)
    if interval is None:
        return Estimate(value=value)
    return Estimate(value=value, low=interval.low, high=interval.high)
