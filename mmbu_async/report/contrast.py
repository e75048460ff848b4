"""Δ closed - open: what a model gains when MMBU's options are shown to it, over the rows of both runs."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import orjson

from mmbu_async.model import Status
from mmbu_async.report.model import Contrast, Delta
from mmbu_async.stats import Pattern, paired
from mmbu_async.store import Result, RunRecord, Store

OPEN = "mmbu-public"
CLOSED = "mmbu-closed"
COUNTERPART = {OPEN: CLOSED, CLOSED: OPEN}
SAME = ("endpoint", "max_tokens", "temperature", "seed", "image_detail", "params")
"""Settings that change answers: where they differ between the runs, the difference is theirs too."""

SHOWN_ORDER = "shown_order"
"""Column that a closed run adds to the dataset's own."""

Pairs = Counter[tuple[Pattern, Pattern]]


def contrast(store: Store, run: RunRecord, *, seed: int) -> Contrast | None:
    """The run beside the latest complete one of the same model in the other format.

    None where there is no such run, or it has no row in common. `run` itself must be complete.
    """
    other = _counterpart(store, run)
    if other is None:
        return None
    opened, closed = (run, other) if run.benchmark == OPEN else (other, run)
    families: defaultdict[str, Pairs] = defaultdict(Counter)
    both = (store.results(run.id, columns=True) for run in (opened, closed))
    for family, one, two in _in_both(*both):
        families[family][one, two] += 1
    if not families:
        return None
    total: Pairs = Counter()
    for pairs in families.values():
        total.update(pairs)
    named = sorted(families.items(), key=lambda item: (-item[1].total(), item[0]))
    return Contrast(
        open_run=opened.name,
        closed_run=closed.name,
        differing=tuple(name for name in SAME if opened.identity.get(name) != closed.identity.get(name)),
        overall=_delta("all rows in both", total, seed),
        families=tuple(_delta(name, pairs, seed) for name, pairs in named),
    )


def _counterpart(store: Store, run: RunRecord) -> RunRecord | None:
    wanted = COUNTERPART.get(run.benchmark)
    if wanted is None:
        return None
    for other in reversed(store.runs()):
        if (other.benchmark, other.model) == (wanted, run.model) and _complete(store, other):
            return other
    return None


def _complete(store: Store, run: RunRecord) -> bool:
    """Every row has a score, and no reply or verdict came after it."""
    counts = store.counts(run.id)
    if not counts.selected or counts.scored != counts.selected:
        return False
    return not store.scores_stale(run.id, run.judge.id if run.judge else None)


def _in_both(opened: Iterable[Result], closed: Iterable[Result]) -> Iterator[tuple[str, Pattern, Pattern]]:
    """Family and both outcomes of each row that is scored in both.

    Rows are told by their content, not by their place: those whose answer is no option are in no closed run,
    and all behind them stand elsewhere. Memory holds a mark and a pattern for each closed row.
    """
    outcomes = {_mark(row): _pattern(row) for row in closed if row.status is Status.SCORED}
    for row in opened:
        if row.status is Status.SCORED and (other := outcomes.get(_mark(row))) is not None:
            yield row.family, _pattern(row), other


def _mark(row: Result) -> bytes:
    """The same for a row of the dataset in whatever form it is asked."""
    columns = {name: value for name, value in (row.fields or {}).items() if name != SHOWN_ORDER}
    return hashlib.blake2b(
        orjson.dumps([row.row_id, columns], option=orjson.OPT_SORT_KEYS), digest_size=16
    ).digest()


def _pattern(row: Result) -> Pattern:
    return Pattern(tp=row.tp, fp=row.fp, fn=row.fn, correct=row.correct)


def _delta(name: str, pairs: Pairs, seed: int) -> Delta:
    ordered = dict(sorted(pairs.items()))
    numbers = [
        seed,
        *(int(part) for pair, n in ordered.items() for pattern in pair for part in (*pattern, n)),
    ]
    found = paired(ordered, np.random.default_rng(numbers))
    return Delta(
        name=name,
        n=pairs.total(),
        open_f1=found.f1.first,
        closed_f1=found.f1.second,
        difference=found.f1.difference,
        open_accuracy=found.accuracy.first,
        closed_accuracy=found.accuracy.second,
        accuracy_difference=found.accuracy.difference,
    )
