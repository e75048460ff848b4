"""Straight lines through points: win rate over training-set size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbu_async.stats.bootstrap import LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """y = slope · x + intercept, with the least sum of squared differences in y."""

    n: int
    """Points."""
    slope: float
    """Units of y for each unit of x."""
    intercept: float
    """In units of y."""
    r_squared: float | None
    """Share of y's variance that the line explains, from 0 to 1; None where y does not vary."""
    slope_low: float | None
    slope_high: float | None
    """Ends of the slope's interval, by the t distribution; None for two points, which leave nothing to
    estimate an error from, and where y does not vary."""
    p: float | None
    """Two-sided, of the hypothesis that the slope is 0; None for two points, or where y does not vary."""


def least_squares(x: Sequence[float], y: Sequence[float], *, level: float = LEVEL) -> Fit | None:
    """Ordinary least squares by scipy; None for fewer than two points, or where x does not vary.

    Interval and p-value take the points' errors as independent and normal, of one width. Raises ValueError
    where x and y differ in length or hold what is not finite.
    """
    if len(x) != len(y):
        raise ValueError(f"{len(x)} values of x and {len(y)} of y make no points.")
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if not (np.isfinite(across).all() and np.isfinite(up).all()):
        raise ValueError("Points must have finite coordinates.")
    n = len(across)
    if n < 2 or not _varies(across):
        return None
    from scipy import stats

    found = stats.linregress(across, up)
    slope, varies = float(found.slope), _varies(up)
    margin = float(stats.t.ppf(0.5 + level / 2, n - 2) * found.stderr) if varies and n > 2 else None
    return Fit(
        n=n,
        slope=slope,
        intercept=float(found.intercept),
        r_squared=float(found.rvalue) ** 2 if varies else None,
        slope_low=None if margin is None else slope - margin,
        slope_high=None if margin is None else slope + margin,
        p=None if margin is None else float(found.pvalue),
    )


def _varies(values: NDArray[np.float64]) -> bool:
    """The square is what is divided by: differences too small to have one are none."""
    return bool(np.ptp(values) ** 2 > 0)
