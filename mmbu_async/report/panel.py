"""What several judges make of one run: the accuracy under each, and how far they agree beyond chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from mmbu_async.model import Json
from mmbu_async.stats import Kappa, cohen_kappa, fleiss_kappa, krippendorff_alpha
from mmbu_async.store import CallTotals, JudgeRecord, RunRecord, RunTotals, Standing, Store, Votes

NAMED = 10
"""Row ids that a report names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeLine:
    """A judge, and the run as it sees it."""

    name: str
    """Under which the store keeps its verdicts."""
    model: str
    """'' for a majority, which is nobody's model."""
    decides: bool
    """Whether the run's scores are made with its verdicts."""
    derived: bool
    """Whether it is the majority of others."""
    judged: int
    """Rows with its usable verdict on the reply as it is read today."""
    missing: int
    """Rows that need a judge, without such a verdict."""
    right: int
    """Of those judged."""
    accuracy: float | None
    """Of the run, all selected rows, were it scored by this judge; None while rows are open under it."""
    worst: float | None
    best: float | None
    """The same with all open rows wrong, and all right; None where the run has no rows."""
    spend: CallTotals | None
    """What it took in this run; None for one that is not asked."""

    @property
    def sure(self) -> bool:
        """Whether no row is open under it."""
        return self.accuracy is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two judges over the rows that both judged."""

    first: str
    second: str
    agreement: Kappa
    """Cohen's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """All judges that gave verdicts on a run, those of an earlier rejudge too."""

    judges: tuple[JudgeLine, ...]
    pairs: tuple[Pair, ...]
    """Of judges that were asked, each with each."""
    fleiss: Kappa | None
    """Over the rows that all of them judged; None for fewer than three."""
    alpha: float | None
    """Krippendorff's, over the rows that two at least judged; None where it does not exist."""
    compared: int
    """Rows that two at least judged."""
    disagreeing: int
    """Of these, rows that one found right and another wrong."""
    disagreeing_rows: tuple[str, ...]
    """Ids of the first of them, in dataset order."""


def panel(store: Store, run: RunRecord, totals: RunTotals) -> Panel | None:
    """None where fewer than two judges were asked: there is nothing to compare."""
    found = build_panel(store, run, totals)
    return found if found is not None and len([one for one in found.judges if not one.derived]) > 1 else None


def build_panel(store: Store, run: RunRecord, totals: RunTotals) -> Panel | None:
    """None where no judge has given a verdict."""
    judges = store.judges(run.id)
    if not judges:
        return None
    counts = store.vote_patterns(run.id)
    asked = [judge.id for judge in judges if not is_derived(judge)]
    votes = _votes_of(counts, asked)
    names = {judge.id: judge.name for judge in judges}
    disagreeing = sum(count for pattern, count in votes.items() if {True, False} <= set(pattern))
    return Panel(
        judges=tuple(_line(judge, run, counts, totals) for judge in judges),
        pairs=tuple(
            Pair(first=names[one], second=names[other], agreement=cohen_kappa(_both(counts, one, other)))
            for one, other in combinations(asked, 2)
        ),
        fleiss=fleiss_kappa(_complete(votes)) if len(asked) > 2 else None,
        alpha=krippendorff_alpha(votes) if len(asked) > 1 else None,
        compared=sum(n for pattern, n in votes.items() if len(pattern) - pattern.count(None) > 1),
        disagreeing=disagreeing,
        disagreeing_rows=_disagreeing_rows(store, run, asked) if disagreeing else (),
    )


def is_derived(judge: JudgeRecord) -> bool:
    """Whether its verdicts are the majority of others'."""
    return "panel" in judge.identity


def tied(store: Store, run: RunRecord) -> int:
    """Rows on which all judges of the run's majority have voted and no side has won: asking again changes
    nothing. 0 where no majority decides."""
    members = run.judge.identity.get("panel") if run.judge is not None else None
    if not isinstance(members, list):
        return 0
    ids = [judge.id for judge in store.judges(run.id) if judge.identity in members]
    if len(ids) < len(members):
        return 0
    votes = _votes_of(store.vote_patterns(run.id), ids)
    # As often right as wrong, and nobody left out.
    return sum(n for one, n in votes.items() if one.count(True) == one.count(False) == len(ids) / 2)


def disagree(votes: Mapping[int, bool], asked: Sequence[int]) -> bool:
    """Whether two of the judges that were asked say different things."""
    return len({votes[judge] for judge in asked if judge in votes}) > 1


def _line(judge: JudgeRecord, run: RunRecord, counts: Mapping[Votes, int], totals: RunTotals) -> JudgeLine:
    said: Counter[bool | None] = Counter()
    by_rule: Counter[Standing] = Counter()
    for pattern, count in counts.items():
        if pattern.standing is Standing.JUDGED:
            said[dict(pattern.votes).get(judge.id)] += count
        else:
            by_rule[pattern.standing] += count
    rows = said.total() + by_rule.total() - by_rule[Standing.UNGRADED]
    still_open = said[None] + by_rule[Standing.OPEN]
    right = said[True] + by_rule[Standing.RIGHT]
    return JudgeLine(
        name=judge.name,
        model=_text(judge.identity.get("model")),
        decides=run.judge is not None and run.judge.id == judge.id,
        derived=is_derived(judge),
        judged=said[True] + said[False],
        missing=said[None],
        right=said[True],
        accuracy=right / rows if rows and not still_open else None,
        worst=right / rows if rows else None,
        best=(right + still_open) / rows if rows else None,
        spend=None if is_derived(judge) else totals.judges.get(judge.id, CallTotals()),
    )


def _votes_of(counts: Mapping[Votes, int], asked: Sequence[int]) -> Counter[tuple[bool | None, ...]]:
    """Judged rows by what each of these judges said, in their order."""
    found: Counter[tuple[bool | None, ...]] = Counter()
    for pattern, count in counts.items():
        if pattern.standing is Standing.JUDGED:
            votes = dict(pattern.votes)
            found[tuple(votes.get(judge) for judge in asked)] += count
    return found


def _both(counts: Mapping[Votes, int], one: int, other: int) -> Counter[tuple[bool, bool]]:
    found: Counter[tuple[bool, bool]] = Counter()
    for (first, second), count in _votes_of(counts, (one, other)).items():
        if first is not None and second is not None:
            found[first, second] += count
    return found


def _complete(votes: Mapping[tuple[bool | None, ...], int]) -> dict[tuple[bool, ...], int]:
    """Rows that nobody left out."""
    return {tuple(map(bool, pattern)): count for pattern, count in votes.items() if None not in pattern}


def _disagreeing_rows(store: Store, run: RunRecord, asked: Sequence[int]) -> tuple[str, ...]:
    found = (row.row_id for row in store.voted_rows(run.id) if disagree(row.votes, asked))
    return tuple(islice(found, NAMED))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
