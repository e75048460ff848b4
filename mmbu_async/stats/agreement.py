"""How far judges agree beyond chance, from counts of rows by the labels that they got.

Labels are nominal: two are equal or they are not. For judges they are True (right) and False.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import NormalDist
from typing import TypeVar

import numpy as np

from mmbu_async.stats.bootstrap import LEVEL

Label = TypeVar("Label", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kappa:
    """Agreement of two or more raters over the rows that all of them rated."""

    n: int
    """Rows."""
    percent: float | None
    """Share of the pairs of labels of the same row that are equal, from 0 to 100; None without rows."""
    kappa: float | None
    """From -1 to 1: 1 is full agreement, 0 what chance would give; None where all labels are one and the
    same, since chance alone then gives full agreement."""
    low: float | None
    high: float | None
    """Ends of kappa's large-sample interval; None where kappa is, and for one row. Like the bootstrap's it
    has no width where all agree."""


def cohen_kappa(counts: Mapping[tuple[Label, Label], int], *, level: float = LEVEL) -> Kappa:
    """Cohen's kappa of two raters; `counts` is how many rows got which pair of labels.

    Cohen 1960, Educational and Psychological Measurement 20:37-46; the interval is that of the normal
    distribution with the large-sample variance of Fleiss, Cohen and Everitt 1969, Psychological Bulletin
    72:323-327; both by statsmodels.
    """
    kept = {pair: count for pair, count in counts.items() if count}
    n = sum(kept.values())
    if not n:
        return Kappa(n=0, percent=None, kappa=None, low=None, high=None)
    percent = 100 * sum(count for (one, other), count in kept.items() if one == other) / n
    labels = list(dict.fromkeys(label for pair in kept for label in pair))
    if len(labels) == 1:
        return Kappa(n=n, percent=percent, kappa=None, low=None, high=None)
    from statsmodels.stats.inter_rater import cohens_kappa

    table = [[kept.get((one, other), 0) for other in labels] for one in labels]
    # A rater that gives one label only makes the test of kappa = 0, which is not used here, divide 0 by 0.
    with np.errstate(invalid="ignore", divide="ignore"):
        found = cohens_kappa(table)
    return _kappa(n, percent, float(found.kappa), float(found.var_kappa), level)


def fleiss_kappa(counts: Mapping[tuple[Label, ...], int], *, level: float = LEVEL) -> Kappa:
    """Fleiss' kappa of two or more raters; `counts` is how many rows got which labels, one from each rater.

    Fleiss 1971, Psychological Bulletin 76:378-382, by statsmodels. The interval is that of the normal
    distribution with the large-sample variance of Gwet 2021, Educational and Psychological Measurement
    81:781-790, which holds whatever kappa is (statsmodels has none). Raises ValueError where rows differ in
    their number of labels, or have fewer than two.
    """
    kept = {labels: count for labels, count in counts.items() if count}
    n = sum(kept.values())
    if not n:
        return Kappa(n=0, percent=None, kappa=None, low=None, high=None)
    raters = {len(labels) for labels in kept}
    if len(raters) > 1 or min(raters) < 2:
        raise ValueError("Every row must have the same number of labels, two at least.")
    from statsmodels.stats import inter_rater

    names = list(dict.fromkeys(label for labels in kept for label in labels))
    votes = np.array([[labels.count(name) for name in names] for labels in kept], dtype=np.float64)
    rows = np.array(list(kept.values()), dtype=np.int64)
    m = min(raters)
    agreeing = (votes * (votes - 1)).sum(axis=1) / (m * (m - 1))
    percent = float(100 * (rows @ agreeing) / n)
    if len(names) == 1:
        return Kappa(n=n, percent=percent, kappa=None, low=None, high=None)
    kappa = float(inter_rater.fleiss_kappa(np.repeat(votes, rows, axis=0)))
    share = rows @ votes / (n * m)
    chance = float(share @ share)
    influence = (agreeing - chance - 2 * (1 - kappa) * (votes @ share / m - chance)) / (1 - chance)
    variance = float(rows @ (influence - kappa) ** 2) / (n * max(1, n - 1))
    return _kappa(n, percent, kappa, variance, level)


def krippendorff_alpha(counts: Mapping[tuple[Label | None, ...], int]) -> float | None:
    """Krippendorff's alpha for nominal labels; `counts` is how many rows got which labels, one place a rater,
    None where a rater gave none.

    1 - observed / expected disagreement, over the labels of rows that have two at least (Krippendorff 2011,
    Computing Krippendorff's Alpha-Reliability, section C). 1 is full agreement, 0 what chance would give.
    None where fewer than two different labels are left, since no disagreement is then to be expected.
    Written here since scipy, statsmodels and scikit-learn do not have it.
    """
    totals: Counter[Label] = Counter()
    observed = []
    for labels, count in counts.items():
        given = Counter(label for label in labels if label is not None)
        m = given.total()
        if m < 2:
            continue
        unequal = m * m - sum(one * one for one in given.values())
        observed.append(count * unequal / (m - 1))
        for label, times in given.items():
            totals[label] += count * times
    n = totals.total()
    expected = n * n - sum(total * total for total in totals.values())
    return 1 - (n - 1) * fsum(observed) / expected if expected else None


def _kappa(n: int, percent: float, kappa: float, variance: float, level: float) -> Kappa:
    if n == 1:
        return Kappa(n=n, percent=percent, kappa=kappa, low=None, high=None)
    # Rounding can leave a variance of zero a hair below it.
    spread = NormalDist().inv_cdf(0.5 + level / 2) * sqrt(max(0.0, variance))
    return Kappa(
        n=n, percent=percent, kappa=kappa, low=max(-1.0, kappa - spread), high=min(1.0, kappa + spread)
    )
