"""How time, tokens and overlap spread over rows: counted in fixed bins as rows stream by, so that memory does
not grow with them.

Seconds and tokens span decades, so their bins are equal in the logarithm: a quantile read out of them is off
by less than five per cent. Mean, least and most are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from math import inf

import numpy as np
from numpy.typing import NDArray

from mmbu_async.store.outcomes import Spent

PER_DECADE = 48
"""Bins from 1 to 10: each is 4.9 % wider than the one below it."""
IOU_BINS = 20
"""Between 0 and 1. The threshold 0.5 is an edge of theirs."""
TOGETHER = 4_096
"""Rows that are counted at once."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Values from `low` on and below `high`; in the last bin of an IoU also 1."""

    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How one figure spreads over rows. Zeros are counted apart: a logarithm has no place for them."""

    n: int
    """Rows that have the figure, those with a zero included."""
    zeros: int
    mean: float
    least: float
    median: float
    p90: float
    """Nine rows in ten have at most this."""
    p99: float
    most: float
    bins: tuple[Bin, ...]
    """Those that hold rows, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distributions:
    """Over rows with a reply, of that reply alone (earlier attempts not added). None where no row has it."""

    total_s: Histogram | None
    """Seconds from the request to the last byte of the reply."""
    first_token_s: Histogram | None
    """Seconds to the first token, of replies that were streamed."""
    input_tokens: Histogram | None
    output_tokens: Histogram | None
    """Reasoning included, as endpoints report it."""
    reasoning_tokens: Histogram | None
    max_iou: Histogram | None
    """The largest IoU of a row's offered and true boxes, over the rows scored by boxes."""


class Spread:
    """Counts of one figure by bin."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self._zeros = 0
        self._sum = 0.0
        self._least = inf
        self._most = -inf

    def add(self, bins: Floats, values: Floats) -> None:
        """Some rows' figures, none below zero, and the number of the bin of each that is above it."""
        if not values.size:
            return
        above = bins[values > 0].astype(np.int64)
        numbers, counts = np.unique(above, return_counts=True)
        self.counts.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
        self._zeros += values.size - above.size
        self._sum += float(values.sum())
        self._least = min(self._least, float(values.min()))
        self._most = max(self._most, float(values.max()))

    def histogram(self, edge: Callable[[int], float]) -> Histogram | None:
        """None where nothing was counted. `edge` gives the lower edge of a bin."""
        n = self._zeros + self.counts.total()
        if n == 0:
            return None
        bins = tuple(
            Bin(low=edge(number), high=edge(number + 1), count=count)
            for number, count in sorted(self.counts.items())
        )
        # Quantiles lie inside of a bin, and may not leave what was seen.
        median, p90, p99 = (
            min(max(_quantile(bins, share * n - self._zeros), self._least), self._most)
            for share in (0.5, 0.9, 0.99)
        )
        return Histogram(
            n=n,
            zeros=self._zeros,
            mean=self._sum / n,
            least=self._least,
            median=median,
            p90=p90,
            p99=p99,
            most=self._most,
            bins=bins,
        )


class Spreads:
    """Everything whose spread a report shows. Some thousand rows at a time are kept, and counted together."""

    def __init__(self) -> None:
        self._spreads = {name: Spread() for name in (*Spent._fields, "max_iou")}
        self._spent: list[Spent] = []
        self._overlaps: list[tuple[float, bool]] = []

    def add(self, spent: Spent) -> None:
        """One row's reply; what the endpoint did not report is left out."""
        self._spent.append(spent)
        if len(self._spent) == TOGETHER:
            self._count()

    def add_iou(self, iou: float, *, correct: bool) -> None:
        """One row's largest IoU. `correct` decides on which side of one half it lies: the scorer counts with
        more digits than a float has."""
        self._overlaps.append((iou, correct))
        if len(self._overlaps) == TOGETHER:
            self._count()

    def distributions(self) -> Distributions:
        self._count()
        found = {name: self._spreads[name].histogram(_log_edge) for name in Spent._fields}
        return Distributions(**found, max_iou=self._spreads["max_iou"].histogram(_iou_edge))

    def _count(self) -> None:
        if self._spent:
            self._count_spent(np.array(self._spent, dtype=np.float64).T)
        if self._overlaps:
            self._count_overlaps(*np.array(self._overlaps, dtype=np.float64).T)
        self._spent, self._overlaps = [], []

    def _count_spent(self, columns: Floats) -> None:
        for name, column in zip(Spent._fields, columns, strict=True):
            # None has become NaN. An endpoint may claim less than nothing.
            values = np.maximum(column[~np.isnan(column)], 0)
            bins = np.log10(values, out=np.zeros_like(values), where=values > 0) * PER_DECADE
            self._spreads[name].add(np.floor(bins), values)

    def _count_overlaps(self, iou: Floats, correct: Floats) -> None:
        half = IOU_BINS // 2
        bins = np.clip(np.floor(iou * IOU_BINS), 0, IOU_BINS - 1)
        sided = np.where(correct > 0, np.maximum(bins, half), np.minimum(bins, half - 1))
        self._spreads["max_iou"].add(sided, iou)


def _log_edge(number: int) -> float:
    edge: float = 10 ** (number / PER_DECADE)
    return edge


def _iou_edge(number: int) -> float:
    return number / IOU_BINS


def _quantile(bins: tuple[Bin, ...], rank: float) -> float:
    """The value below which `rank` of the rows in the bins lie, taken to be even within a bin."""
    if rank <= 0 or not bins:
        return 0.0
    below = 0
    for found, reached in zip(bins, accumulate(one.count for one in bins), strict=True):
        if reached >= rank:
            return found.low + (found.high - found.low) * (rank - below) / found.count
        below = reached
    return bins[-1].high
