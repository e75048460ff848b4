"""How many rows a comparison of two runs needs, and what difference so many rows can show."""

from __future__ import annotations

from math import ceil, sqrt
from statistics import NormalDist

POWER = 0.8
ALPHA = 0.05


def rows_needed(difference: float, *, disagreement: float, power: float = POWER, alpha: float = ALPHA) -> int:
    """Rows after which McNemar's two-sided test at level `alpha` finds this difference with this power.

    `difference` is that of the two accuracies, of either sign, and `disagreement` the share of rows that one
    run has right and the other wrong; both are fractions. The formula is that of Connor 1987, Biometrics
    43:207-211: n = (z(1 - alpha/2)·√d + z(power)·√(d - δ²))² / δ².

    It takes the test's statistic as normal. The exact test, which `mcnemar` is, asks for a little more: its
    power, computed exactly, comes to 76 to 80 % where 80 % are wanted, for 50 rows and more and disagreements
    up to one half, and to 78 to 80 % from 1,000 rows on. Some 2/δ rows more make up for it.

    Raises ValueError for a difference of 0, which no number of rows can show, for one above the disagreement,
    which cannot be, and for shares out of range.
    """
    delta = abs(difference)
    _check(disagreement, power, alpha)
    if not 0 < delta <= disagreement:
        raise ValueError(
            f"A difference of {delta:g} cannot be found where runs disagree on {disagreement:g} of the rows; "
            "it must be above 0 and at most the disagreement."
        )
    normal = NormalDist()
    reach = normal.inv_cdf(1 - alpha / 2) * sqrt(disagreement)
    reach += normal.inv_cdf(power) * sqrt(disagreement - delta * delta)
    return ceil((reach / delta) ** 2)


def detectable_difference(
    n: int, *, disagreement: float, power: float = POWER, alpha: float = ALPHA
) -> float | None:
    """Smallest difference of two accuracies, a fraction, for which `rows_needed` is at most `n`.

    None where not even a difference as large as the disagreement, in which one run is never the worse, needs
    so few rows. Raises ValueError for shares out of range.
    """
    _check(disagreement, power, alpha)

    def enough(difference: float) -> bool:
        return rows_needed(difference, disagreement=disagreement, power=power, alpha=alpha) <= n

    if disagreement == 0 or not enough(disagreement):
        return None
    # Rows needed fall as the difference grows: halve the range until no number lies between its ends.
    low, high = 0.0, disagreement
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def independent_disagreement(p1: float, p2: float) -> float:
    """Share of rows that one of two runs has right and the other wrong, if they know nothing of each other.

    `p1` and `p2` are their accuracies, as fractions. Real runs find the same rows hard and disagree less.
    Raises ValueError for what is no fraction.
    """
    for share in (p1, p2):
        if not 0 <= share <= 1:
            raise ValueError(f"{share} is no accuracy; it must be from 0 to 1.")
    return p1 * (1 - p2) + p2 * (1 - p1)


def _check(disagreement: float, power: float, alpha: float) -> None:
    if not 0 <= disagreement <= 1:
        raise ValueError(f"{disagreement} is no share of rows; it must be from 0 to 1.")
    for name, share in (("power", power), ("alpha", alpha)):
        if not 0 < share < 1:
            raise ValueError(f"A {name} of {share} cannot be; it must be between 0 and 1.")
