"""Intervals of all strata of a run as large as the full benchmark, beside resampling rows.

    python -m benchmarks.statistics [--json FILE] [--quick]

78,000 rows, 13 attributes, 1,000 resamples: accuracy and micro-F1 of every group, on one core. Once with
about as many values an attribute as the benchmark's own have, once with up to 300, once with 300 in each. The
usual way, drawing row numbers with replacement, is measured on a sample of the groups, which shows too that
both find the same.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.big_run import ROWS, VALUES_OF, big_run
from benchmarks.scheme import Figure, Findings, Options, median, present
from benchmarks.servers import OURS, pin
from mmbu_async.model import Status
from mmbu_async.report.groups import Counts, Figures, Tally
from mmbu_async.stats import RESAMPLES, Estimate, Headline, Pattern, paired
from mmbu_async.store import Store

AIM_S = 2.0
REPEATS = 5
VALUES = {
    "usual": tuple(VALUES_OF.values()),
    "more": tuple(round(2.5 * most) for most in VALUES_OF.values()),
    "most": (300,) * len(VALUES_OF),
}
"""How many values the attributes have."""
SAMPLED = 60
"""Groups that are resampled row by row."""

Codes = NDArray[np.int64]
Attribute = dict[str, Counter[Any]]
"""How the rows of each value came out."""


def measure(options: Options) -> Findings:
    pin(os.getpid(), OURS)
    rows = options.rows(ROWS, 3_000)
    repeats = 2 if options.quick else REPEATS
    rng = np.random.default_rng(2026)
    first = draw_outcomes(rng, rows)
    # A second run over the same rows, which comes out as the first in seven of ten.
    second = np.where(rng.random(rows) < 0.7, first, draw_outcomes(rng, rows))
    drawn = {name: draw_values(rng, rows, most) for name, most in VALUES.items()}
    work = {name: count(first, values, PATTERNS) for name, values in drawn.items()}
    pairs = [(one, other) for one in PATTERNS for other in PATTERNS]
    both = count(first * len(PATTERNS) + second, drawn["usual"], pairs)
    seconds = {
        **{name: repeated(partial(intervals, made), repeats) for name, made in work.items()},
        "paired": repeated(lambda: differences(both), repeats),
        "counting": counting(options, rows, repeats),
    }
    groups = {name: sum(map(len, made)) for name, made in work.items()}
    beside = beside_row_resampling(work["most"], options.rows(SAMPLED, 5))
    slow = beside["seconds"] * groups["most"] / beside["groups"]
    fast = {name: median(times) for name, times in seconds.items()}
    figures = [
        *(
            Figure(
                what=f"intervals of {groups[name]:,} groups",
                value=fast[name],
                unit="s",
                at_most=None if name == "most" else AIM_S,
                note=f"{sum(most) / len(most):.0f} values an attribute on average, {max(most)} at most",
            )
            for name, most in VALUES.items()
        ),
        Figure(what=f"{groups['most']:,} groups by resampling rows, extrapolated", value=slow, unit="s"),
        Figure(what="times as fast as resampling rows", value=slow / fast["most"], unit="times"),
        *(
            Figure(
                what=f"mean end of {name} intervals, apart from that by rows",
                value=beside[name],
                unit="points",
            )
            for name in ("accuracy", "F1")
        ),
        Figure(what=f"paired differences of {groups['usual']:,} groups", value=fast["paired"], unit="s"),
        Figure(what="reading rows from the store and counting them", value=fast["counting"], unit="s"),
    ]
    details = {"rows": rows, "seconds": seconds, "groups": groups, "beside": beside}
    return Findings(figures=figures, method=METHOD, details=details)


def _patterns() -> tuple[list[Pattern], list[float]]:
    """How rows come out, and how often: four in five have one label, the others up to four."""
    weights: defaultdict[Pattern, float] = defaultdict(float)
    weights |= {Pattern(1, 0, 0, True): 48, Pattern(0, 1, 1, False): 29, Pattern(0, 0, 1, False): 3}
    for true, share in ((1, 10), (2, 6), (3, 3), (4, 1)):
        weights[Pattern(true, 0, 0, True)] += 0.4 * share
        weights[Pattern(0, 0, true, False)] += 0.04 * share
        for given, part in ((1, 0.22), (2, 0.22), (3, 0.09), (4, 0.03)):
            for found in range(min(true, given) + 1 - (true == given)):
                each = part / (min(true, given) + 1 - (true == given))
                weights[Pattern(found, given - found, true - found, False)] += each * share
    total = sum(weights.values())
    return list(weights), [weight / total for weight in weights.values()]


PATTERNS, WEIGHTS = _patterns()


METHOD = (
    f"{ROWS:,} rows, {len(VALUES_OF)} attributes, {RESAMPLES:,} resamples; CPU time on one core, median of "
    f"{REPEATS}. One row in five names several labels, which makes {len(PATTERNS)} patterns of outcomes "
    "instead of three; values are drawn without regard to them, so that most patterns occur in most groups. "
    f"Resampling rows is numpy's, of {SAMPLED} groups, every so many in order of size, and extrapolated by "
    "their number. Reading and counting is of a store of as many rows."
)


def draw_outcomes(rng: np.random.Generator, rows: int) -> Codes:
    """The number of each row's pattern."""
    return rng.choice(len(PATTERNS), size=rows, p=WEIGHTS)


def draw_values(rng: np.random.Generator, rows: int, most: Iterable[int]) -> list[Codes]:
    """The number of each row's value of each attribute: the low ones are frequent, the high ones rare."""
    return [(rng.random(rows) ** 2 * each).astype(np.int64) for each in most]


def count(outcomes: Codes, values: Sequence[Codes], names: Sequence[Any]) -> list[Attribute]:
    """What the report counts as rows stream by."""
    attributes = []
    for column in values:
        table = np.zeros((int(column.max()) + 1, len(names)), dtype=np.int64)
        np.add.at(table, (column, outcomes), 1)
        lines = ((str(value), zip(names, line, strict=True)) for value, line in enumerate(table.tolist()))
        counted = {value: Counter({name: n for name, n in line if n}) for value, line in lines}
        attributes.append({value: counts for value, counts in counted.items() if counts})
    return attributes


def intervals(attributes: Sequence[Attribute]) -> None:
    figures = Figures(seed=0)
    for counted in attributes:
        figures.groups(counted)


def differences(attributes: Sequence[Attribute]) -> None:
    for counted in attributes:
        for pairs in counted.values():
            paired(pairs, np.random.default_rng(0))


def counting(options: Options, rows: int, repeats: int) -> list[float]:
    """Seconds for one pass over a store with as many rows."""
    path = options.folder / f"statistics-{rows}.sqlite"
    run = big_run(path, rows=rows)
    with Store.open(path, read_only=True) as store:
        return repeated(lambda: _count_stored(store, run.id), repeats)


def _count_stored(store: Store, run_id: int) -> None:
    tally = Tally()
    for row in store.outcomes(run_id):
        score = row.score
        scored = score is not None and score.status is Status.SCORED
        tally.add(
            row.family,
            row.strata,
            Pattern(score.tp, score.fp, score.fn, bool(score.correct)) if scored and score else None,
        )
    tally.strata()


def beside_row_resampling(attributes: Sequence[Attribute], sampled: int) -> dict[str, float]:
    """Time of the usual way for a sample of the groups, and by how much its ends differ from ours."""
    counted = sorted((counts for one in attributes for counts in one.values()), key=Counter.total)
    chosen = counted[len(counted) // (2 * sampled) :: len(counted) // sampled][:sampled]
    rng = np.random.default_rng(7)
    began = time.process_time()
    theirs = [by_rows(counts, rng) for counts in chosen]
    seconds = time.process_time() - began
    figures = Figures(seed=0)
    ours = [figures.headline(counts) for counts in chosen]
    return {
        "groups": len(chosen),
        "seconds": seconds,
        "accuracy": _apart([one.accuracy for one in ours], [one.accuracy for one in theirs]),
        "F1": _apart([one.f1 for one in ours], [one.f1 for one in theirs]),
    }


def by_rows(counts: Counts, rng: np.random.Generator) -> Headline:
    """The textbook bootstrap of one group."""
    rows = np.array([pattern for pattern, n in counts.items() if pattern for _ in range(n)], dtype=np.int64)
    n = len(rows)
    sums = np.array([rows[rng.integers(0, n, n)].sum(axis=0) for _ in range(RESAMPLES)])
    twice = 2 * sums[:, 0]
    whole = twice + sums[:, 1] + sums[:, 2]
    low, high = np.percentile(sums[:, 3] / n, (2.5, 97.5))
    f1_low, f1_high = np.percentile(twice[whole > 0] / whole[whole > 0], (2.5, 97.5))
    return Headline(accuracy=Estimate(low=low, high=high), f1=Estimate(low=f1_low, high=f1_high))


def _apart(ours: Iterable[Estimate], theirs: Iterable[Estimate]) -> float:
    """How far the mean of all ends is from theirs, in percentage points: near 0 for one distribution."""
    ends = [
        100 * (mine - other)
        for one, two in zip(ours, theirs, strict=True)
        for mine, other in ((one.low, two.low), (one.high, two.high))
        if mine is not None and other is not None
    ]
    return abs(float(np.mean(ends)))


def repeated(way: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of the processor: nothing here waits for anything."""
    found = []
    for _ in range(repeats):
        began = time.process_time()
        way()
        found.append(time.process_time() - began)
    return found


def main() -> None:
    present("statistics", measure, __doc__)


if __name__ == "__main__":
    main()
