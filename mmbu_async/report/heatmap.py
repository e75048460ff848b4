"""Accuracy over two properties of a row at once: imaging modality by task where rows have them, else the two
properties that tell most of what comes out right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from mmbu_async.model import Status
from mmbu_async.report.groups import SMALL, Group
from mmbu_async.store import Outcome

FAMILY = "task family"
"""The name of the axis that is no column."""
TOPICS = "task"
MODALITIES = ("metadata_modality", "modality")
"""Names of the column that says how an image was made, where a benchmark has one."""

CANDIDATES = 5
MOST_VALUES = 40
"""Beyond this a property splits rows too finely for two of them to be crossed."""
LEAST_FILLED = 0.4
"""Share of cells with rows below which one property follows from the other (a subject has one discipline)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The rows that have both values."""

    row: str
    column: str
    n: int
    right: int
    open: int
    small: bool
    """Too few rows to read anything into."""

    @property
    def worst(self) -> float:
        """The accuracy; while rows are open with all of them wrong."""
        return self.right / self.n

    @property
    def best(self) -> float:
        """The accuracy; while rows are open with all of them right."""
        return (self.right + self.open) / self.n


@dataclass(frozen=True, slots=True, kw_only=True)
class Heatmap:
    """Rows crossed by two properties. One that has several values of a property is in several cells."""

    by_row: str
    by_column: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    """Values, those with the most rows first."""
    cells: tuple[Cell, ...]
    """Those that hold rows."""
    left_out: int
    """Rows without one of the two properties."""


class Crossing:
    """Counts rows by the values of two properties: one addition a row, taken apart at the end."""

    def __init__(self, by_row: str, by_column: str) -> None:
        self.names = (by_row, by_column)
        self._counts: Counter[tuple[tuple[str, ...], tuple[str, ...], bool | None]] = Counter()

    def add(self, one: tuple[str, ...], other: tuple[str, ...], right: bool | None) -> None:
        """One row: the values it has of either, and whether it is right; None where it is open."""
        self._counts[one, other, right] += 1

    def heatmap(self) -> Heatmap | None:
        """None where there is nothing to compare: no rows, or less than two cells."""
        counts: defaultdict[tuple[str, str], Counter[bool | None]] = defaultdict(Counter)
        left_out = 0
        for (one, other, right), count in self._counts.items():
            if not one or not other:
                left_out += count
            for pair in product(dict.fromkeys(one), dict.fromkeys(other)):
                counts[pair][right] += count
        if len(counts) < 2:
            return None
        cells = tuple(
            Cell(
                row=row,
                column=column,
                n=found.total(),
                right=found[True],
                open=found[None],
                small=found.total() < SMALL,
            )
            for (row, column), found in sorted(counts.items())
        )
        return Heatmap(
            by_row=self.names[0],
            by_column=self.names[1],
            rows=_largest_first((cell.row, cell.n) for cell in cells),
            columns=_largest_first((cell.column, cell.n) for cell in cells),
            cells=cells,
            left_out=left_out,
        )


class Modalities:
    """Task family and task topic by modality, counted as rows stream by."""

    def __init__(self) -> None:
        self._crossings: dict[str, tuple[Crossing, Crossing]] = {}

    def add(self, row: Outcome, right: bool | None) -> None:
        for name in MODALITIES:
            if values := row.strata.get(name):
                if name not in self._crossings:
                    self._crossings[name] = (Crossing(FAMILY, name), Crossing(TOPICS, name))
                family, topics = self._crossings[name]
                family.add((row.family,), values, right)
                topics.add(row.strata.get(TOPICS, ()), values, right)

    def heatmaps(self) -> tuple[Heatmap, ...]:
        """Those with at least two values on either axis."""
        found = (crossing.heatmap() for pair in self._crossings.values() for crossing in pair)
        return tuple(one for one in found if one and len(one.rows) > 1 and len(one.columns) > 1)


def most_telling(
    properties: Mapping[str, Sequence[Group]], outcomes: Iterable[tuple[Outcome, bool | None]]
) -> Heatmap | None:
    """The two properties that together say most of what comes out right; None where there are not two.

    `properties` holds the groups of each property, the task's families under FAMILY. `outcomes` are read
    only where two properties are worth it.
    """
    telling = {name: explained(groups) for name, groups in properties.items()}
    best = sorted((name for name in telling if telling[name] > 0), key=lambda name: -telling[name])
    crossings = [Crossing(one, other) for one, other in combinations(best[:CANDIDATES], 2)]
    if not crossings:
        return None
    for row, right in outcomes:
        for crossing in crossings:
            one, other = (_values(row, name) for name in crossing.names)
            crossing.add(one, other, right)
    found = [heatmap for crossing in crossings if (heatmap := crossing.heatmap()) and _crosses(heatmap)]
    return max(found, key=lambda one: telling[one.by_row] + telling[one.by_column], default=None)


def explained(groups: Sequence[Group]) -> float:
    """Share of the variance of right and wrong that lies between the groups, less what as many groups drawn
    by chance would show (epsilon squared). 0 where the property is of no use as an axis."""
    named = [group for group in groups if group.name is not None]
    n = sum(group.n for group in named)
    if not 2 <= len(named) <= MOST_VALUES or n <= len(named):
        return 0.0
    right = sum(group.right for group in named)
    whole = right * (n - right) / n
    if not whole:
        return 0.0
    between = sum((group.right - group.n * right / n) ** 2 / group.n for group in named)
    share = between / whole
    return max(0.0, share - (len(named) - 1) / (n - len(named)) * (1 - share))


def graded(rows: Iterable[Outcome]) -> Iterator[tuple[Outcome, bool | None]]:
    """Rows that count in figures, each with right, wrong, or None where it is open."""
    for row in rows:
        if row.status is not Status.UNGRADED:
            scored = row.score is not None and row.status is Status.SCORED
            yield row, bool(row.score.correct) if scored and row.score else None


def _values(row: Outcome, name: str) -> tuple[str, ...]:
    return (row.family,) if name == FAMILY else row.strata.get(name, ())


def _crosses(found: Heatmap) -> bool:
    """Whether either property is to be had with most values of the other."""
    return len(found.cells) >= LEAST_FILLED * len(found.rows) * len(found.columns)


def _largest_first(counted: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    total: Counter[str] = Counter()
    for name, n in counted:
        total[name] += n
    return tuple(sorted(total, key=lambda name: (-total[name], name)))
