"""Rows summed up by group in one pass: every group is a handful of outcome patterns with their counts.

An open row (failed, unjudged, pending) has no outcome. A group that holds one gets no score but two ends:
all its open rows wrong, and all of them right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from mmbu_async.stats import (
    ClusterSums,
    Estimate,
    Headline,
    Interval,
    Pattern,
    cluster_headline,
    headlines,
    wilson,
)

SMALL = 30
"""Groups of fewer rows are marked as too small to read."""

OPEN_RIGHT = Pattern(tp=1, fp=0, fn=0, correct=True)
OPEN_WRONG = Pattern(tp=0, fp=1, fn=1, correct=False)
"""What an open row counts as at either end of the bounds: one label, found or answered wrong."""

Counts = Counter[Pattern | None]
"""How many rows came out in each way; None is an open row."""

Coded = Counter[int]
"""The same, with a small number for each way."""

Closed = tuple[tuple[Pattern, int], ...]
"""Counts without open rows, in order: equal counts are equal."""

Way = TypeVar("Way")
"""In which way a row came out: an outcome, or those of several runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The figures of one set of rows. The denominator is all its selected rows."""

    name: str | None
    """None: the rows that have no value for the attribute."""
    n: int
    right: int
    open: int
    """Rows without a score: failed, unjudged or pending."""
    score: Headline | None
    """None while rows are open: then only `worst` and `best` are known."""
    wilson: Interval | None
    """Of the accuracy, in closed form; None while rows are open."""
    worst: Headline
    """All open rows counted wrong."""
    best: Headline
    """All open rows counted right."""
    small: bool
    """Too few rows to read anything into."""
    clusters: int | None = None
    """How many clusters the intervals were resampled by; None: by rows."""
    chance: float | None = None
    """Accuracy of picking options at random, the mean over its rows with options; None where none has."""
    chance_rows: int = 0
    """Rows with options."""

    @property
    def accuracy(self) -> Estimate:
        """The score's accuracy; without a value while rows are open."""
        return self.score.accuracy if self.score else Estimate()

    @property
    def f1(self) -> Estimate:
        """The score's micro-F1; without a value while rows are open."""
        return self.score.f1 if self.score else Estimate()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A metadata column or the task's topics, with one group a value, the largest first."""

    name: str
    groups: tuple[Group, ...]


class Counting(Generic[Way]):
    """Counts rows as they stream by; holds no row.

    The ways in which rows come out are counted under small numbers, and rows that lack an attribute by the
    set of those they have: so a row costs one addition an attribute.
    """

    def __init__(self) -> None:
        self._codes: dict[Way, int] = {}
        self._families: defaultdict[str, Coded] = defaultdict(Counter)
        self._values: defaultdict[str, defaultdict[str, Coded]] = defaultdict(lambda: defaultdict(Counter))
        self._having: defaultdict[tuple[str, ...], Coded] = defaultdict(Counter)

    def add(self, family: str, strata: Mapping[str, Sequence[str]], way: Way) -> None:
        """One row. A value named twice counts once."""
        code = self._codes.setdefault(way, len(self._codes))
        self._families[family][code] += 1
        self._having[tuple([name for name, values in strata.items() if values])][code] += 1
        for attribute, values in strata.items():
            groups = self._values[attribute]
            for value in values if len(values) == 1 else dict.fromkeys(values):
                groups[value][code] += 1

    @property
    def all(self) -> Counter[Way]:
        return self._decoded(_total(self._families.values()))

    @property
    def families(self) -> dict[str, Counter[Way]]:
        return {name: self._decoded(coded) for name, coded in self._families.items()}

    def strata(self) -> dict[str, dict[str | None, Counter[Way]]]:
        """The values of every attribute that any row has; None, the last, for the rows that lack it."""
        found: dict[str, dict[str | None, Counter[Way]]] = {}
        for name in sorted(self._values, key=_place):
            found[name] = {value: self._decoded(coded) for value, coded in self._values[name].items()}
            lacking = _total(coded for having, coded in self._having.items() if name not in having)
            if lacking:
                found[name][None] = self._decoded(lacking)
        return found

    def _decoded(self, coded: Coded) -> Counter[Way]:
        ways = tuple(self._codes)
        return Counter({ways[code]: count for code, count in coded.items()})


class Tally(Counting["Pattern | None"]):
    """Counts rows by outcome; None is a row that is open."""

    def attributes(self, figures: Figures) -> tuple[Attribute, ...]:
        """Every attribute that any row has, with a last group of the rows that lack it."""
        found = []
        for name, counted in self.strata().items():
            lacking = counted.pop(None, None)
            groups = figures.groups({value: counts for value, counts in counted.items() if value is not None})
            if lacking:
                groups += (figures.group(None, lacking),)
            found.append(Attribute(name=name, groups=groups))
        return tuple(found)


class Figures:
    """Turns counts into figures. Equal counts give equal intervals: the seed is drawn from them."""

    def __init__(self, *, seed: int) -> None:
        self._seed = seed
        self._known: dict[Closed, Headline] = {}

    def groups(self, counted: Mapping[str, Counts]) -> tuple[Group, ...]:
        self._find(_closed(counts, end) for counts in counted.values() for end in _ends(counts))
        made = [self.group(name, counts) for name, counts in counted.items()]
        return tuple(sorted(made, key=lambda group: (-group.n, group.name or "")))

    def group(self, name: str | None, counts: Counts) -> Group:
        n = counts.total()
        open_rows = counts[None]
        right = sum(count for pattern, count in counts.items() if pattern is not None and pattern.correct)
        worst = self.headline(counts, OPEN_WRONG)
        return Group(
            name=name,
            n=n,
            right=right,
            open=open_rows,
            score=None if open_rows else worst,
            wilson=None if open_rows else wilson(right, n),
            worst=worst,
            best=self.headline(counts, OPEN_RIGHT) if open_rows else worst,
            small=n < SMALL,
        )

    def headline(self, counts: Counts, open_as: Pattern = OPEN_WRONG) -> Headline:
        """The figures of these counts, open rows taken as `open_as`."""
        closed = _closed(counts, open_as)
        self._find([closed])
        return self._known[closed]

    def _find(self, sets: Iterable[Closed]) -> None:
        """The figures of all sets that are not known yet, together: that takes less time than one by one."""
        new = [closed for closed in dict.fromkeys(sets) if closed not in self._known]
        found = headlines((dict(closed), self._generator(closed)) for closed in new)
        self._known.update(zip(new, found, strict=True))

    def _generator(self, closed: Closed) -> np.random.Generator:
        numbers = [int(part) for pattern, count in closed for part in (*pattern, count)]
        # The same seed as that of a plain list, which numpy takes eight times as long to read.
        seeds: Sequence[Any] = [self._seed, np.array(numbers, dtype=np.uint32)]
        return np.random.default_rng(seeds)

    def clustered(self, counts: Mapping[ClusterSums, int]) -> Headline:
        """The figures of these clusters, with intervals that respect them."""
        ordered = dict(sorted(counts.items()))
        numbers = [self._seed, *(part for sums, count in ordered.items() for part in (*sums, count))]
        return cluster_headline(ordered, np.random.default_rng(numbers))


def _ends(counts: Counts) -> tuple[Pattern, ...]:
    """What open rows can count as; one of it where there are none."""
    return (OPEN_WRONG, OPEN_RIGHT) if counts[None] else (OPEN_WRONG,)


def _closed(counts: Counts, open_as: Pattern) -> Closed:
    closed: Counter[Pattern] = Counter()
    for pattern, count in counts.items():
        closed[open_as if pattern is None else pattern] += count
    return tuple(sorted((pattern, count) for pattern, count in closed.items() if count))


def _total(parts: Iterable[Coded]) -> Coded:
    total: Coded = Counter()
    for part in parts:
        total.update(part)
    return total


def _place(attribute: str) -> tuple[bool, bool, str]:
    """A task's topics first, then the metadata columns, then what else the rows name."""
    return (attribute != "task", not attribute.startswith("metadata_"), attribute)
