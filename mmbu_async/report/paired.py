"""Figures of two runs from counts of how rows came out in both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mmbu_async.report.comparison import StratumComparison
from mmbu_async.report.groups import SMALL
from mmbu_async.stats import (
    ClusterSums,
    Paired,
    Pattern,
    benjamini_hochberg,
    cluster_paired,
    holm,
    mcnemar,
    paired,
)

Pairs = Counter[tuple[Pattern, Pattern]]
"""How many rows came out as which pair of patterns, in the baseline and in the later run."""
ClusterPairs = Counter[tuple[ClusterSums, ClusterSums]]


class Ways(NamedTuple):
    """Rows by who has them right."""

    wins: int
    """The later run alone."""
    losses: int
    """The baseline alone."""
    ties_right: int
    ties_wrong: int

    @property
    def n(self) -> int:
        return sum(self)


def ways(pairs: Mapping[tuple[Pattern, Pattern], int]) -> Ways:
    """Ways of these rows."""
    found: Counter[tuple[bool, bool]] = Counter()
    for (first, second), n in pairs.items():
        found[first.correct, second.correct] += n
    return Ways(
        wins=found[False, True],
        losses=found[True, False],
        ties_right=found[True, True],
        ties_wrong=found[False, False],
    )


class PairFigures:
    """Turns counts into figures. Equal counts give equal intervals: the seed is drawn from them."""

    def __init__(self, *, seed: int) -> None:
        self._seed = seed
        self._differences: dict[tuple[tuple[tuple[Pattern, Pattern], int], ...], Paired] = {}
        self._tests: dict[tuple[int, int], float] = {}

    def differences(self, pairs: Pairs, clusters: ClusterPairs | None = None) -> Paired:
        """Both differences; with intervals by cluster where clusters are given."""
        if clusters is not None:
            ordered = dict(sorted(clusters.items()))
            seeds = [number for pair, n in ordered.items() for sums in pair for number in (*sums, n)]
            return cluster_paired(ordered, np.random.default_rng([self._seed, *seeds]))
        key = tuple(sorted(pairs.items()))
        if key not in self._differences:
            seeds = [int(number) for pair, n in key for pattern in pair for number in (*pattern, n)]
            self._differences[key] = paired(dict(key), np.random.default_rng([self._seed, *seeds]))
        return self._differences[key]

    def test(self, found: Ways) -> float:
        """McNemar's p, which many strata share."""
        key = (found.losses, found.wins)
        if key not in self._tests:
            self._tests[key] = mcnemar(*key)
        return self._tests[key]

    def strata(
        self,
        attribute: str,
        counted: Mapping[str | None, Pairs],
        clusters: Mapping[str | None, ClusterPairs | None] | None = None,
    ) -> tuple[StratumComparison, ...]:
        """The values of an attribute, the largest first, rows without a value last; p corrected for all."""
        counts = [(value, pairs, ways(pairs)) for value, pairs in counted.items()]
        counts.sort(key=lambda one: (one[0] is None, -one[2].n, one[0] or ""))
        tests = [self.test(found) for _, _, found in counts]
        corrected = zip(tests, holm(tests), benjamini_hochberg(tests), strict=True)
        strata = []
        for (value, pairs, found), (p, p_holm, p_bh) in zip(counts, corrected, strict=True):
            both = self.differences(pairs, (clusters or {}).get(value))
            strata.append(
                StratumComparison(
                    attribute=attribute,
                    value=value,
                    n=found.n,
                    wins=found.wins,
                    losses=found.losses,
                    ties_right=found.ties_right,
                    ties_wrong=found.ties_wrong,
                    accuracy=both.accuracy,
                    f1=both.f1,
                    p=p,
                    p_holm=p_holm,
                    p_bh=p_bh,
                    small=found.n < SMALL,
                )
            )
        return tuple(strata)
