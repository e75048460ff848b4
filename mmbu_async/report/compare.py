"""From the store to `Comparison`, in one pass over the rows of all runs: memory does not grow with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from mmbu_async.report import at_work, words
from mmbu_async.report.comparable import check_comparable
from mmbu_async.report.comparison import ComparedAttribute, ComparedRun, Comparison, PairComparison
from mmbu_async.report.differing import differing
from mmbu_async.report.flips import flips
from mmbu_async.report.groups import Counts, Figures, Group
from mmbu_async.report.joint import Joint, JointCensus
from mmbu_async.report.model import Provenance
from mmbu_async.report.paired import ClusterPairs, PairFigures, Pairs, ways
from mmbu_async.report.plan import smallest_gap
from mmbu_async.report.provenance import provenance_of, standings
from mmbu_async.stats import ClusterSums, holm
from mmbu_async.store import RunRecord, Store

FLIPS_KEPT = 10
"""Rows that flipped which a comparison itself holds for each later run."""

FAMILY = "task family"


def build_comparison(store: Store, runs: Sequence[RunRecord], *, seed: int = 0) -> Comparison:
    """The runs, over the rows that all of them have a score for; the first is the baseline. `seed` is that of
    the bootstrap: the same store and seed give the same intervals. Scores are taken as stored.

    Raises ConfigError or DataError where the runs cannot be compared; see `check_comparable`.
    """
    check_comparable(store, runs)
    return Comparer(store, runs, seed).comparison()


class Comparer:
    """Runs that can be compared."""

    def __init__(self, store: Store, runs: Sequence[RunRecord], seed: int) -> None:
        self._store = store
        self._runs = runs
        self._figures = Figures(seed=seed)
        self._pair_figures = PairFigures(seed=seed)
        self._census = JointCensus(len(runs))
        self._census.count([store.results(run.id) for run in runs])
        self._joint = self._census.tally.all

    def comparison(self) -> Comparison:
        common = self._joint.total()
        runs = tuple(self._run(place) for place in range(len(self._runs)))
        pairs = [self._pair(place) for place in range(1, len(runs))]
        corrected = holm([pair.p for pair in pairs])
        return Comparison(
            benchmark=self._runs[0].benchmark,
            fingerprint=self._runs[0].dataset.fingerprint,
            first_line=_first_line(len(runs), self._runs[0].benchmark, common),
            common_rows=common,
            runs=runs,
            pairs=tuple(replace(pair, p_holm=p) for pair, p in zip(pairs, corrected, strict=True)),
            left_out=tuple(self._left_out(runs)),
            notes=(*self._at_work(), *_notes(runs, pairs), *standings(self._ran())),
        )

    def _at_work(self) -> list[str]:
        return list(filter(None, (at_work.note(self._store, run) for run in self._runs)))

    def _run(self, place: int) -> ComparedRun:
        run, census = self._runs[place], self._census
        return ComparedRun(
            name=run.name,
            model=run.model,
            judge=run.judge.name if run.judge else None,
            official=self._provenance(place).official,
            rows=census.rows[place],
            scored=census.scored[place],
            elsewhere=census.elsewhere[place],
            open=census.open[place],
            overall=self._overall(place),
        )

    def _provenance(self, place: int) -> Provenance:
        return provenance_of(self._store, self._runs[place], selected=self._census.rows[place])

    def _ran(self) -> Iterator[tuple[str, Provenance]]:
        for place, run in enumerate(self._runs):
            yield run.name, self._provenance(place)

    def _overall(self, place: int) -> Group:
        counts: Counts = Counter()
        for joint, n in self._joint.items():
            counts[joint[place]] += n
        group = self._figures.group("compared rows", counts)
        clusters = self._census.clusters.counts(None, self._joint)
        if clusters is None:
            return group
        sums: Counter[ClusterSums] = Counter()
        for each, n in clusters.items():
            sums[each[place]] += n
        score = self._figures.clustered(sums)
        return replace(group, score=score, worst=score, best=score, wilson=None, clusters=sums.total())

    def _pair(self, place: int) -> PairComparison:
        first, second = self._runs[0], self._runs[place]
        pairs = _beside(place, self._joint)
        found = ways(pairs)
        clusters = self._clusters(place, None, self._joint)
        both = self._pair_figures.differences(pairs, clusters)
        p = self._pair_figures.test(found)
        parted = (found.wins + found.losses) / found.n if found.n else None
        detectable = None if parted is None else smallest_gap(found.n, parted)
        return PairComparison(
            first=first.name,
            second=second.name,
            n=found.n,
            wins=found.wins,
            losses=found.losses,
            ties_right=found.ties_right,
            ties_wrong=found.ties_wrong,
            accuracy=both.accuracy,
            f1=both.f1,
            clusters=None if clusters is None else clusters.total(),
            p=p,
            p_holm=p,
            disagreement=parted,
            detectable=detectable,
            differing=differing(first, second),
            families=self._pair_figures.strata(FAMILY, *self._families(place)),
            attributes=tuple(self._attributes(place)),
            flips=tuple(islice(flips(self._store, first, second, among=self._runs), FLIPS_KEPT)),
        )

    def _families(
        self, place: int
    ) -> tuple[Mapping[str | None, Pairs], Mapping[str | None, ClusterPairs | None]]:
        families = self._census.tally.families
        counted: dict[str | None, Pairs] = {name: _beside(place, rows) for name, rows in families.items()}
        return counted, {name: self._clusters(place, name, rows) for name, rows in families.items()}

    def _attributes(self, place: int) -> Iterator[ComparedAttribute]:
        for name, counted in self._census.tally.strata().items():
            pairs = {value: _beside(place, rows) for value, rows in counted.items()}
            yield ComparedAttribute(name=name, strata=self._pair_figures.strata(name, pairs))

    def _clusters(self, place: int, family: str | None, rows: Mapping[Joint, int]) -> ClusterPairs | None:
        found = self._census.clusters.counts(family, rows)
        if found is None:
            return None
        pairs: ClusterPairs = Counter()
        for sums, n in found.items():
            pairs[sums[0], sums[place]] += n
        return pairs

    def _left_out(self, runs: Sequence[ComparedRun]) -> Iterator[str]:
        """What became of the rows that are in some run and not compared."""
        others = "the other has not selected" if len(runs) == 2 else "not all others have selected"
        for run in runs:
            if run.elsewhere:
                yield f"{words.rows(run.elsewhere)} of {run.name} that {others}."
        if self._census.open_rows:
            each = ", ".join(f"{words.count(run.open)} in {run.name}" for run in runs if run.open)
            yield f"{words.rows(self._census.open_rows)} of all runs without a score in some ({each})."
        if self._census.ungraded:
            yield f"{words.rows(self._census.ungraded)} without a public answer."


def _beside(place: int, rows: Mapping[Joint, int]) -> Pairs:
    """The baseline's outcomes and those of the run at `place`."""
    pairs: Pairs = Counter()
    for joint, n in rows.items():
        pairs[joint[0], joint[place]] += n
    return pairs


def _first_line(runs: int, benchmark: str, common: int) -> str:
    if not common:
        return f"NOTHING TO COMPARE: no row has a score in all {runs} runs of {benchmark}."
    return f"COMPARED: {runs} runs of {benchmark} over the {words.rows(common)} with a score in all of them."


def _notes(runs: Sequence[ComparedRun], pairs: Sequence[PairComparison]) -> Iterator[str]:
    for pair in pairs:
        if pair.differing:
            yield (
                f"{pair.first} and {pair.second} also differ in {', '.join(pair.differing)}: that may be "
                "what makes the difference."
            )
    if runs[0].overall.clusters is not None:
        clusters = words.counted(runs[0].overall.clusters, "cluster", "clusters")
        yield (
            f"rows share figures or rotations ({clusters}): intervals of all rows and of the families are by "
            "cluster; those of the strata, and every p, take rows as independent, which makes them too "
            "narrow and too small."
        )
