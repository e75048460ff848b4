"""How well a median is known, of values that need not be independent: a stage may end when it is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

FEWEST = 50
"""Values below which no interval is tight, whatever it looks like."""
Z = 1.96


def median_interval(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Median and the ends of its 95 % interval, values in the order of their starts; None: too few.

    Whether a value lies below the median is 0 or 1; how much the share of those varies is seen in the means
    of runs of neighbours, so that requests which wait for each other count as less than as many independent
    ones.
    """
    n = len(values)
    if n < FEWEST:
        return None
    found = np.asarray(values, dtype=np.float64)
    median = float(np.median(found))
    below = found <= median
    size = max(1, round(math.sqrt(n)))
    runs = below[: n // size * size].reshape(-1, size).mean(axis=1)
    variance = max(float(runs.var(ddof=1)) * size, 0.25)
    half = Z * math.sqrt(variance / n)
    low, high = np.quantile(found, [max(0.0, 0.5 - half), min(1.0, 0.5 + half)])
    return median, float(low), float(high)


def tight(values: Sequence[float], share: float) -> bool:
    """Whether both ends of the interval are within that share of the median."""
    found = median_interval(values)
    if found is None:
        return False
    median, low, high = found
    return max(high - median, median - low) <= share * median
