"""Corrections of p-values where many groups are tested at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values in the same order: with probability 1 - alpha none of those below alpha is false.

    Holm 1979, Scandinavian Journal of Statistics 6:65-70: the smallest of m values times m, the next times
    m - 1 and so on, none below the one before it. Holds whatever the dependence between the tests. Written
    here since statsmodels' `multipletests` has the interpreter collect its garbage in each call, which takes
    50 ms and more for each attribute of a comparison. Raises ValueError for what is no p-value.
    """
    _check(p)
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    return tuple(np.minimum(adjusted, 1.0).tolist())


def benjamini_hochberg(p: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values in the same order: of those below alpha, a share of at most alpha is expected to be
    false.

    Benjamini and Hochberg 1995, Journal of the Royal Statistical Society B 57:289-300; by scipy. Holds for
    tests that are independent or positively dependent. Raises ValueError for what is no p-value.
    """
    _check(p)
    if not p:
        return ()
    from scipy.stats import false_discovery_control

    return tuple(false_discovery_control(p, method="bh").tolist())


def _check(p: Sequence[float]) -> None:
    for value in p:
        if not 0 <= value <= 1:
            raise ValueError(f"{value} is no p-value; it must be from 0 to 1.")
