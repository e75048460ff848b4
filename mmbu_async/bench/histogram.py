"""Histograms of times with a bounded relative error, that can be added to each other.

As in HdrHistogram (G. Tene) buckets are logarithmic in halves and linear within them. Here a bucket is read
off the bits of a float: its exponent, and the first bits of its mantissa. No range has to be chosen before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mmbu_async.model import Json

PARTS = 512
"""Buckets from one power of two to the next."""
ERROR = 1 / (2 * PARTS)
"""Largest relative distance of a value from its bucket's middle: 0.1 per cent."""
LEAST = 1e-9
"""Seconds that stand for all that is shorter, 0 included: nobody measures less."""

Values = NDArray[np.float64]
Buckets = NDArray[np.int64]


def buckets_of(values: Sequence[float] | Values) -> Buckets:
    """The number of the bucket in which each value lies."""
    mantissa, exponent = np.frexp(np.maximum(np.asarray(values, dtype=np.float64), LEAST))
    # A mantissa lies in [0.5, 1).
    within = ((mantissa - 0.5) * (2 * PARTS)).astype(np.int64)
    return exponent.astype(np.int64) * PARTS + within


def middles(buckets: Sequence[int] | Buckets) -> Values:
    """The value that stands for each bucket."""
    found = np.asarray(buckets, dtype=np.int64)
    exponent, within = found // PARTS, found % PARTS
    return np.ldexp(0.5 + (within + 0.5) / (2 * PARTS), exponent.astype(np.int32))


class Histogram:
    """Counts by bucket, and what is known exactly: how many, their sum, the least and the largest."""

    __slots__ = ("_counts", "count", "largest", "least", "total")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.count = 0
        self.total = 0.0
        self.least = float("inf")
        self.largest = 0.0

    @classmethod
    def of(cls, values: Iterable[float]) -> Histogram:
        made = cls()
        made.add(np.fromiter(values, dtype=np.float64))
        return made

    def add(self, values: Sequence[float] | Values) -> None:
        """Take in values, in seconds."""
        if len(values) == 0:
            return
        found = np.asarray(values, dtype=np.float64)
        numbers, counts = np.unique(buckets_of(found), return_counts=True)
        self._join(zip(numbers.tolist(), counts.tolist(), strict=True))
        self.count += len(found)
        self.total += float(found.sum())
        self.least = min(self.least, float(found.min()))
        self.largest = max(self.largest, float(found.max()))

    def merge(self, other: Histogram) -> None:
        """Take in another one's values: the same as if they had been added here."""
        self._join(other._counts.items())
        self.count += other.count
        self.total += other.total
        self.least = min(self.least, other.least)
        self.largest = max(self.largest, other.largest)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def quantile(self, share: float) -> float | None:
        """The least value that a share of all do not exceed (no interpolation), within ERROR of it; the least
        and the largest are exact."""
        if not self.count:
            return None
        rank = max(1, int(np.ceil(share * self.count - 1e-9)))
        if rank == 1 or rank >= self.count:
            return self.least if rank < self.count else self.largest
        numbers, counts = self.arrays()
        place = int(np.searchsorted(np.cumsum(counts), rank))
        value = float(middles(numbers[place : place + 1])[0])
        return min(max(value, self.least), self.largest)

    def arrays(self) -> tuple[Buckets, Buckets]:
        """Buckets that hold something, in order, and their counts."""
        numbers = np.array(sorted(self._counts), dtype=np.int64)
        return numbers, np.array([self._counts[number] for number in numbers.tolist()], dtype=np.int64)

    def dump(self) -> dict[str, Json]:
        """As JSON that `load` reads."""
        numbers, counts = self.arrays()
        return {
            "count": self.count,
            "total": self.total,
            "least": self.least if self.count else None,
            "largest": self.largest if self.count else None,
            "buckets": numbers.tolist(),
            "counts": counts.tolist(),
        }

    @classmethod
    def load(cls, dumped: Mapping[str, Json]) -> Histogram:
        made = cls()
        made._counts = dict(zip(dumped["buckets"], dumped["counts"], strict=True))
        if count := dumped["count"]:
            made.count, made.total = count, dumped["total"]
            made.least, made.largest = dumped["least"], dumped["largest"]
        return made

    def _join(self, counted: Iterable[tuple[int, int]]) -> None:
        for number, count in counted:
            self._counts[number] = self._counts.get(number, 0) + count
