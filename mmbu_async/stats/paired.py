"""The difference of two F1s over the same rows: rows are drawn as pairs, so that what both runs find hard
moves both figures alike and does not widen the interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mmbu_async.stats.bootstrap import LEVEL, RESAMPLES, Estimate, Pattern, estimate, resample_counts
from mmbu_async.stats.f1 import micro_f1


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two micro-F1s and the second minus the first."""

    first: float | None
    second: float | None
    difference: Estimate


def paired_f1(
    counts: Mapping[tuple[Pattern, Pattern], int],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Difference:
    """`counts` is how many rows came out as which pair of patterns, first run and second."""
    kept = [(pair, count) for pair, count in counts.items() if count]
    if not kept:
        return Difference(first=None, second=None, difference=Estimate())
    # Columns: tp, fp, fn of the first run, then of the second.
    table = np.array([(*first[:3], *second[:3]) for (first, second), _ in kept], dtype=np.int64)
    observed = np.array([count for _, count in kept], dtype=np.int64)
    totals = [int(total) for total in observed @ table]
    one, other = micro_f1(*totals[:3]), micro_f1(*totals[3:])
    if one is None or other is None:
        return Difference(first=one, second=other, difference=Estimate())
    sums = (resample_counts(observed, rng, resamples) @ table).reshape(resamples, 2, 3)
    twice = 2 * sums[:, :, 0]
    whole = twice + sums[:, :, 1] + sums[:, :, 2]
    # A resample in which one of the two has no F1 has no difference.
    defined = (whole > 0).all(axis=1)
    f1 = twice[defined] / whole[defined]
    return Difference(first=one, second=other, difference=estimate(other - one, f1[:, 1] - f1[:, 0], level))
