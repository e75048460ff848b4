"""Circular evaluation: a row counts as right only when it was answered right under every rotation of its
options, so that liking a letter does not pay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mmbu_async.report.companions import NOTHING, Clusters, added
from mmbu_async.report.groups import Figures
from mmbu_async.report.model import Circular
from mmbu_async.stats import ClusterSums, Estimate, Pattern, wilson

RIGHT = Pattern(tp=1, fp=0, fn=0, correct=True)
WRONG = Pattern(tp=0, fp=1, fn=1, correct=False)


class Rotations:
    """Closes each row when the next begins: the rotations of a row follow each other in the store. So memory
    grows with the clusters alone, not with the rows."""

    def __init__(self) -> None:
        self._row = ""
        self._cluster = ""
        self._options = 0
        self._sums = NOTHING
        self._rows = Sums()
        self._rotations = Sums()
        self._partial = 0

    def add(self, pattern: Pattern, detail: Mapping[str, object]) -> None:
        """One scored rotation; rows that are not rotated are passed over."""
        row = detail.get("circular_row")
        chance = detail.get("chance")
        if not isinstance(row, str) or not isinstance(chance, int | float) or not chance:
            return
        if row != self._row:
            self._close()
            self._row = row
            self._cluster = str(detail.get("cluster") or "")
            self._options = round(1 / chance)
        self._sums = added(self._sums, pattern)

    def circular(self, figures: Figures, *, complete: bool) -> Circular | None:
        """None where no row is rotated. Without figures while rows are open: those that are scored already
        are no fair sample."""
        self._close()
        if not self._rows.n and not self._partial:
            return None
        return Circular(
            rows=self._rows.n,
            right=self._rows.right,
            partial=self._partial,
            accuracy=self._rows.accuracy(figures) if complete else Estimate(),
            wilson=wilson(self._rows.right, self._rows.n) if complete and not self._rows.clustered else None,
            rotations=self._rotations.n,
            rotations_right=self._rotations.right,
            mean=self._rotations.accuracy(figures) if complete else Estimate(),
        )

    def _close(self) -> None:
        sums, self._sums = self._sums, NOTHING
        self._row = ""
        if not sums.n:
            return
        if sums.n != self._options:
            self._partial += 1
            return
        all_right = RIGHT if sums.right == sums.n else WRONG
        self._rows.add(self._cluster, added(NOTHING, all_right))
        self._rotations.add(self._cluster, sums)


class Sums:
    """Sums that fall into clusters, or stand alone."""

    def __init__(self) -> None:
        self.n = 0
        self.right = 0
        self.clustered = False
        self._clusters = Clusters()
        self._alone: Counter[ClusterSums] = Counter()

    def add(self, cluster: str, sums: ClusterSums) -> None:
        self.n += sums.n
        self.right += sums.right
        if cluster:
            self.clustered = True
            self._clusters.merge(cluster, sums)
        else:
            self._alone[sums] += 1

    def accuracy(self, figures: Figures) -> Estimate:
        return figures.clustered(self._clusters.counts() + self._alone).accuracy
