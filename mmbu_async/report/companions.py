"""What stands beside accuracy where rows carry more than right and wrong: clusters and random baselines.

Read from the details of scores as rows stream by. Memory grows with the number of clusters, one small entry
each, and not with the rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from math import fsum

from mmbu_async.report import words
from mmbu_async.report.groups import Counts, Figures, Group
from mmbu_async.stats import ClusterSums, Pattern

NOTHING = ClusterSums(n=0, right=0, tp=0, fp=0, fn=0)


class Clusters:
    """Sums of rows by cluster, for one set of rows."""

    def __init__(self) -> None:
        self._sums: dict[str, ClusterSums] = {}
        self._same: dict[ClusterSums, ClusterSums] = {}
        self._rows: Counter[Pattern] = Counter()

    def add(self, cluster: str, pattern: Pattern) -> None:
        """One more row of the cluster. Equal sums are kept once."""
        self.merge(cluster, added(NOTHING, pattern))
        self._rows[pattern] += 1

    def merge(self, cluster: str, sums: ClusterSums) -> None:
        """Several rows of the cluster at once."""
        known = self._sums.get(cluster, NOTHING)
        merged = ClusterSums._make(one + other for one, other in zip(known, sums, strict=True))
        self._sums[cluster] = self._same.setdefault(merged, merged)

    def counts(self, rows: Counts | None = None) -> Counter[ClusterSums]:
        """How many clusters have which sums. Those of `rows` that were in no cluster are one each."""
        found = Counter(self._sums.values())
        for pattern, count in (rows or {}).items():
            if pattern is not None and (alone := count - self._rows[pattern]):
                found[added(NOTHING, pattern)] += alone
        return found


class Companions:
    """Clusters and baselines of all rows (under None) and of each family."""

    def __init__(self) -> None:
        self._clusters: defaultdict[str | None, Clusters] = defaultdict(Clusters)
        self._chances: defaultdict[str | None, Counter[float]] = defaultdict(Counter)
        self._by_figure = False

    def add(self, family: str, pattern: Pattern, detail: Mapping[str, object]) -> None:
        """One scored row. The rotations of a row are no more independent than questions on one figure."""
        cluster = detail.get("cluster")
        self._by_figure |= bool(cluster)
        unit = cluster or detail.get("circular_row")
        chance = detail.get("chance")
        for name in (None, family):
            if isinstance(unit, str) and unit:
                self._clusters[name].add(unit, pattern)
            if isinstance(chance, int | float):
                self._chances[name][chance] += 1

    def beside(self, name: str | None, group: Group, rows: Counts, figures: Figures) -> Group:
        """The group with its baseline, and intervals by cluster where its rows have clusters.

        Wilson's interval takes rows as independent, so that it is left out there. While rows are open, the
        clusters of some are not known, and the group keeps its bounds.
        """
        if chances := self._chances.get(name):
            total = fsum(chance * count for chance, count in chances.items())
            group = replace(group, chance=total / chances.total(), chance_rows=chances.total())
        clusters = self._clusters.get(name)
        if clusters is None or group.score is None:
            return group
        counts = clusters.counts(rows)
        score = figures.clustered(counts)
        return replace(group, score=score, worst=score, best=score, wilson=None, clusters=counts.total())

    def notes(self, overall: Group) -> tuple[str, ...]:
        """What a reader must know of the intervals."""
        if overall.clusters is None:
            return ()
        unit = "figure" if self._by_figure else "row, its rotations together"
        number = words.counted(overall.clusters, "cluster", "clusters")
        return (f"intervals by {unit}: {number}.",)


def added(sums: ClusterSums, pattern: Pattern) -> ClusterSums:
    """The sums with one more row."""
    return ClusterSums(
        n=sums.n + 1,
        right=sums.right + pattern.correct,
        tp=sums.tp + pattern.tp,
        fp=sums.fp + pattern.fp,
        fn=sums.fn + pattern.fn,
    )
