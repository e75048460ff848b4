"""Corrections of p-values where many groups are tested at once."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values in the same order: none false among those below alpha, with probability 1 - alpha.

    Holm 1979, Scandinavian Journal of Statistics 6:65-70; by statsmodels. Holds whatever the dependence
    between the tests. Raises ValueError for what is no p-value.
    """
    if not _checked(p):
        return ()
    from statsmodels.stats.multitest import multipletests

    return tuple(map(float, multipletests(p, method="holm")[1]))


def benjamini_hochberg(p: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values in the same order: of those below alpha, a share of at most alpha is expected to be
    false.

    Benjamini and Hochberg 1995, Journal of the Royal Statistical Society B 57:289-300; by scipy. Holds for
    tests that are independent or positively dependent. Raises ValueError for what is no p-value.
    """
    if not _checked(p):
        return ()
    from scipy.stats import false_discovery_control

    return tuple(map(float, false_discovery_control(p, method="bh")))


def _checked(p: Sequence[float]) -> Sequence[float]:
    for value in p:
        if not 0 <= value <= 1:
            raise ValueError(f"{value} is no p-value; it must be from 0 to 1.")
    return p
