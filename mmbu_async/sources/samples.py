"""Raw rows -> validated samples of a benchmark, with all bad rows named in one error."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence

from mmbu_async.errors import DataError, RowError
from mmbu_async.model import Benchmark, RawRow, Sample
from mmbu_async.sources.base import Source

LISTED = 10
"""Rows that an error names; the rest is counted."""
_LONGEST_SHOWN = 200
"""Characters of a locator."""


def samples(
    source: Source, benchmark: Benchmark, *, left_out: Callable[[], None] = lambda: None
) -> Iterator[tuple[Sample, str]]:
    """(sample, family) of every row, in order; that each image is there is checked too. `left_out` is told
    of each row of the data that is none of the benchmark's.

    Rows that cannot be used are skipped until the end and then named in one DataError, so whoever collects
    the samples must keep none of them before the iterator is through.
    """
    bad: _BadRows | None = None
    empty = True
    positions = itertools.count()
    for raw in source.rows():
        empty = False
        try:
            found = _samples(raw, source, benchmark)
        except RowError as error:
            bad = bad or _BadRows(raw.where, error)
            bad.add(error)
            continue
        if not found:
            left_out()
        for sample in found:
            yield dataclasses.replace(sample, position=next(positions)), benchmark.family(sample)
    if bad:
        raise bad.error()
    if empty:
        raise DataError(f"{source.description}: has no rows; choose a dataset that has some.")
    if next(positions) == 0:
        raise DataError(
            f"{source.description}: none of its rows is one of {benchmark.name}; choose another benchmark."
        )


def _samples(raw: RawRow, source: Source, benchmark: Benchmark) -> Sequence[Sample]:
    found = benchmark.samples(raw)
    for ref in raw.images if found else ():
        if problem := source.image_problem(ref):
            raise RowError(found[0].id, problem, _shortened(ref.locator))
    return found


def _shortened(locator: str) -> str:
    """A cell that should have been a name can be of any length."""
    return locator if len(locator) <= _LONGEST_SHOWN else f"{locator[:_LONGEST_SHOWN]}…"


class _BadRows:
    """The first problem with the rows that have it, and the number of rows with others."""

    def __init__(self, where: str, first: RowError) -> None:
        self._where = where
        self._first = first
        self._listed: list[str] = []
        self._alike = 0
        self._others = 0

    def add(self, error: RowError) -> None:
        if error.problem != self._first.problem:
            self._others += 1
            return
        self._alike += 1
        if len(self._listed) < LISTED:
            self._listed.append(f"{error.row} ({error.value})" if error.value else error.row)

    def error(self) -> DataError:
        others = f" Rows with other problems: {self._others}." if self._others else ""
        if self._alike == 1:
            return DataError(f"{self._where}: {self._first}{others}")
        more = self._alike - len(self._listed)
        named = ", ".join(self._listed) + (f" and {more} more" if more else "")
        return DataError(f"{self._where}: {self._first.problem}; {self._alike} rows are so: {named}.{others}")
