"""The differences of two runs over the same rows: rows (or clusters of them) are drawn as pairs, so that what
both runs find hard moves both figures alike and does not widen the interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmbu_async.stats.bootstrap import LEVEL, RESAMPLES, Estimate, Pattern, estimate, resample_counts
from mmbu_async.stats.clusters import ClusterSums
from mmbu_async.stats.f1 import micro_f1


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A figure of two runs, as fractions from 0 to 1, and the second minus the first, from -1 to 1."""

    first: float | None
    second: float | None
    difference: Estimate
    """Without a value where one of the two has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Both differences, from the same resamples."""

    accuracy: Difference
    f1: Difference


class _Totals(NamedTuple):
    """Sums over all rows of one run."""

    n: int
    right: int
    tp: int
    fp: int
    fn: int


def paired(
    counts: Mapping[tuple[Pattern, Pattern], int],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Paired:
    """Differences with percentile intervals; `counts` is how many rows came out as which pair of patterns,
    first run and second.

    Drawing rows together with both their outcomes and counting them by pair is one draw from a multinomial:
    the result is exactly that of the paired row bootstrap (Efron and Tibshirani 1993, An Introduction to the
    Bootstrap, chapter 8), at a cost that does not depend on the number of rows.
    """
    rows = [((_one_row(first), _one_row(second)), count) for (first, second), count in counts.items()]
    return _paired(rows, rng, resamples, level)


def cluster_paired(
    counts: Mapping[tuple[ClusterSums, ClusterSums], int],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Paired:
    """The same with clusters drawn instead of rows; `counts` is how many clusters have which sums, in the
    first run and in the second. Every cluster has at least one row in each of them."""
    return _paired(list(counts.items()), rng, resamples, level)


def paired_f1(
    counts: Mapping[tuple[Pattern, Pattern], int],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Difference:
    """The difference of micro-F1 alone."""
    return paired(counts, rng, resamples=resamples, level=level).f1


def _one_row(pattern: Pattern) -> ClusterSums:
    return ClusterSums(n=1, right=int(pattern.correct), tp=pattern.tp, fp=pattern.fp, fn=pattern.fn)


def _paired(
    counts: list[tuple[tuple[ClusterSums, ClusterSums], int]],
    rng: np.random.Generator,
    resamples: int,
    level: float,
) -> Paired:
    kept = [(pair, count) for pair, count in counts if count]
    if not kept:
        nothing = Difference(first=None, second=None, difference=Estimate())
        return Paired(accuracy=nothing, f1=nothing)
    # Columns: the five sums of the first run, then of the second.
    table = np.array([(*first, *second) for (first, second), _ in kept], dtype=np.int64)
    observed = np.array([count for _, count in kept], dtype=np.int64)
    totals = [int(total) for total in observed @ table]
    one, other = _Totals._make(totals[:5]), _Totals._make(totals[5:])
    drawn = (resample_counts(observed, rng, resamples) @ table).reshape(resamples, 2, 5)
    accuracy = drawn[:, :, 1] / drawn[:, :, 0]
    twice = 2 * drawn[:, :, 2]
    whole = twice + drawn[:, :, 3] + drawn[:, :, 4]
    # A resample in which one of the two has no F1 has no difference.
    defined = (whole > 0).all(axis=1)
    f1 = twice[defined] / whole[defined]
    return Paired(
        accuracy=_difference(one.right / one.n, other.right / other.n, accuracy, level),
        f1=_difference(micro_f1(*one[2:]), micro_f1(*other[2:]), f1, level),
    )


def _difference(
    first: float | None, second: float | None, resampled: np.ndarray[tuple[int, int]], level: float
) -> Difference:
    """`resampled` holds the figure of the first run and of the second in each resample."""
    if first is None or second is None:
        return Difference(first=first, second=second, difference=Estimate())
    found = estimate(second - first, resampled[:, 1] - resampled[:, 0], level)
    return Difference(first=first, second=second, difference=found)
