"""The rows of several runs side by side: one pass over all of them, in which no row is held."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mmbu_async.model import Json, Status
from mmbu_async.report.companions import NOTHING, added
from mmbu_async.report.groups import Counting
from mmbu_async.stats import ClusterSums, Pattern
from mmbu_async.store import Result

Joint = tuple[Pattern, ...]
"""How one row came out in each of the runs."""


class JointCensus:
    """Counts the rows that have a score in every run, and those that have not."""

    def __init__(self, runs: int) -> None:
        self.tally: Counting[Joint] = Counting()
        self.clusters = JointClusters(runs)
        self.rows = [0] * runs
        """Selected rows, by run."""
        self.scored = [0] * runs
        self.elsewhere = [0] * runs
        """Rows that another run has not selected."""
        self.open = [0] * runs
        """Of the rows that all have selected, those without a score in this run."""
        self.open_rows = 0
        """Rows of all that some run has no score for."""
        self.ungraded = 0
        """Rows of all whose answer is not public."""

    def count(self, streams: Sequence[Iterable[Result]]) -> None:
        """The results of every run, each in the order of its keys."""
        for row in abreast([iter(stream) for stream in streams]):
            self._add(row)

    def _add(self, row: Sequence[Result | None]) -> None:
        everywhere = None not in row
        open_here = False
        for run, result in enumerate(row):
            if result is None:
                continue
            self.rows[run] += 1
            self.scored[run] += result.status is Status.SCORED
            if not everywhere:
                self.elsewhere[run] += 1
            elif result.status not in (Status.SCORED, Status.UNGRADED):
                self.open[run] += 1
                open_here = True
        if not everywhere:
            return
        results = [result for result in row if result is not None]
        if open_here:
            self.open_rows += 1
        elif any(result.status is Status.UNGRADED for result in results):
            self.ungraded += 1
        else:
            self._compare(results)

    def _compare(self, results: Sequence[Result]) -> None:
        joint = tuple([Pattern(one.tp, one.fp, one.fn, one.correct) for one in results])
        first = results[0]
        self.tally.add(first.family, first.strata, joint)
        self.clusters.add(first.family, joint, first.detail)


class JointClusters:
    """Sums by cluster for each run, over all rows and by family. Memory grows with the clusters alone."""

    def __init__(self, runs: int) -> None:
        self._nothing = (NOTHING,) * runs
        self._sums: defaultdict[str | None, dict[str, tuple[ClusterSums, ...]]] = defaultdict(dict)
        self._inside: defaultdict[str | None, Counter[Joint]] = defaultdict(Counter)

    def add(self, family: str, joint: Joint, detail: Mapping[str, Json]) -> None:
        """One row that all runs have a score for; `detail` is that of any of its scores."""
        # The rotations of a row are no more independent than questions on one figure.
        cluster = detail.get("cluster") or detail.get("circular_row")
        if not isinstance(cluster, str):
            return
        for name in (None, family):
            clusters = self._sums[name]
            known = clusters.get(cluster, self._nothing)
            clusters[cluster] = tuple(map(added, known, joint))
            self._inside[name][joint] += 1

    def counts(
        self, family: str | None, rows: Mapping[Joint, int]
    ) -> Counter[tuple[ClusterSums, ...]] | None:
        """How many clusters have which sums; rows without a cluster are one each. `family` None: all rows.
        None where no row has a cluster."""
        if family not in self._sums:
            return None
        found = Counter(self._sums[family].values())
        for joint, count in rows.items():
            if alone := count - self._inside[family][joint]:
                found[tuple(added(NOTHING, pattern) for pattern in joint)] += alone
        return found


def abreast(streams: Sequence[Iterator[Result]]) -> Iterator[tuple[Result | None, ...]]:
    """Every key that any stream has, in order: what each has under it, or None. Each stream is in order."""
    heads = [next(stream, None) for stream in streams]
    while any(heads):
        key = min([head.key for head in heads if head is not None])
        row = tuple([head if head is not None and head.key == key else None for head in heads])
        yield row
        heads = [
            head if result is None else next(stream, None)
            for head, result, stream in zip(heads, row, streams, strict=True)
        ]
