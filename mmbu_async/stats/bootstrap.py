"""Row bootstrap of accuracy and micro-F1, at a cost that does not depend on the number of rows.

Rows fall into few distinct outcome patterns. Drawing n rows with replacement and counting them by pattern
is, by definition, one draw from a multinomial with the observed shares: so a resample is drawn as a handful
of counts, and the result is exactly that of resampling rows, not an approximation of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmbu_async.stats.f1 import micro_f1, micro_f1_each
from mmbu_async.stats.intervals import Interval

RESAMPLES = 1_000
LEVEL = 0.95

RARE = 24
"""Rows of a pattern below which drawing them one by one costs less than one binomial draw a resample."""
FEW_RARE = 4
"""Rare patterns from which on it is worth the detour. Rows with one label have three patterns in all."""
ROWS_AT_ONCE = 4_000_000
"""Most rows that are drawn one by one at the same time: 32 MB of them."""
MOST_NUMBERS = 2**16
"""Of rows and patterns, so that two bytes hold each: such numbers are drawn fastest."""
BLOCK = 256
"""Sets of rows whose resampled figures are held at the same time: 4 MB of 1,000 resamples each."""


class Pattern(NamedTuple):
    """How one row came out: all that accuracy and micro-F1 need of it."""

    tp: int
    fp: int
    fn: int
    correct: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its interval; None where there is none (no rows, 0/0), never NaN."""

    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The two figures of a set of rows, from the same resamples."""

    accuracy: Estimate
    f1: Estimate


def headline(
    counts: Mapping[Pattern, int],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Headline:
    """Accuracy and micro-F1 of the rows that `counts` sums up, with percentile intervals."""
    (found,) = headlines([(counts, rng)], resamples=resamples, level=level)
    return found


def headlines(
    sets: Iterable[tuple[Mapping[Pattern, int], np.random.Generator]],
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Iterator[Headline]:
    """`headline` of many sets of rows in less time: each is what `headline` gives it, bit for bit."""
    remaining = iter(sets)
    while block := [_resampled(counts, rng, resamples) for counts, rng in islice(remaining, BLOCK)]:
        yield from _headlines(block, level)


class _Figure(NamedTuple):
    value: float | None
    resampled: NDArray[np.float64]
    """The figure in each resample that has one."""


NO_FIGURE = _Figure(value=None, resampled=np.empty(0))


def _resampled(
    counts: Mapping[Pattern, int], rng: np.random.Generator, resamples: int
) -> tuple[_Figure, _Figure]:
    """Accuracy and micro-F1 of one set of rows."""
    kept = [(pattern, count) for pattern, count in counts.items() if count]
    if not kept:
        return NO_FIGURE, NO_FIGURE
    outcome = np.array([pattern for pattern, _ in kept], dtype=np.int64)
    observed = np.array([count for _, count in kept], dtype=np.int64)
    tp, fp, fn, right = (int(total) for total in observed @ outcome)
    n = int(observed.sum())
    drawn = resample_counts(observed, rng, resamples) @ outcome
    return (
        _Figure(right / n, drawn[:, 3] / n),
        _Figure(micro_f1(tp, fp, fn), micro_f1_each(*drawn[:, :3].T)),
    )


def _headlines(block: Sequence[tuple[_Figure, _Figure]], level: float) -> Iterator[Headline]:
    figures = [figure for both in block for figure in both]
    intervals = iter(percentile_intervals([figure.resampled for figure in figures], level))
    for accuracy, f1 in block:
        yield Headline(
            accuracy=_estimate(accuracy.value, next(intervals)), f1=_estimate(f1.value, next(intervals))
        )


def resample_counts(observed: ArrayLike, rng: np.random.Generator, resamples: int) -> NDArray[np.int64]:
    """How often each pattern occurs in each resample: shape (resamples, patterns).

    `observed` holds how often each pattern occurs in the data; its sum must be positive. Each row of the
    result is one draw from the multinomial distribution. Where several patterns are rare, that draw is made
    in two steps, which is the same and takes less than half the time: how many rows fall on any of the rare
    patterns, and then on which of their rows each of them falls.
    """
    seen = np.asarray(observed, dtype=np.int64)
    n = int(seen.sum())
    rare = seen < RARE
    rare_rows = int(seen[rare].sum())
    too_many = rare_rows * resamples > ROWS_AT_ONCE or max(rare_rows, len(seen)) > MOST_NUMBERS
    if too_many or np.count_nonzero(rare) < FEW_RARE:
        return rng.multinomial(n, seen / n, size=resamples)
    often = np.flatnonzero(~rare)
    rows = np.repeat(np.arange(len(seen), dtype=np.uint16), np.where(rare, seen, 0))
    drawn = rng.multinomial(n, np.append(seen[often], rare_rows) / n, size=resamples)
    cells = np.repeat(np.arange(resamples) * len(seen), drawn[:, -1])
    cells += rows[rng.integers(0, rare_rows, len(cells), dtype=np.uint16)]
    counts = np.bincount(cells, minlength=resamples * len(seen)).reshape(resamples, len(seen))
    counts[:, often] = drawn[:, :-1]
    return counts


def percentile_interval(values: NDArray[np.float64], level: float = LEVEL) -> Interval | None:
    """The middle `level` of resampled values; None where no resample has a value."""
    return percentile_intervals([values], level)[0]


def percentile_intervals(
    resampled: Sequence[NDArray[np.float64]], level: float = LEVEL
) -> list[Interval | None]:
    """The same for many figures; those with equally many values together, which is three times as fast."""
    found: list[Interval | None] = [None] * len(resampled)
    alike: defaultdict[int, list[int]] = defaultdict(list)
    for place, values in enumerate(resampled):
        alike[len(values)].append(place)
    alike.pop(0, None)
    tail = 50 * (1 - level)
    for places in alike.values():
        ends = np.percentile([resampled[place] for place in places], (tail, 100 - tail), axis=1)
        for place, (low, high) in zip(places, ends.T.tolist(), strict=True):
            found[place] = Interval(low=low, high=high)
    return found


def estimate(value: float | None, resampled: NDArray[np.float64], level: float) -> Estimate:
    """A figure with the interval of its resampled values; without either where it has none."""
    return _estimate(value, percentile_interval(resampled, level))


def _estimate(value: float | None, interval: Interval | None) -> Estimate:
    if value is None or interval is None:
        return Estimate(value=value)
    return Estimate(value=value, low=interval.low, high=interval.high)
