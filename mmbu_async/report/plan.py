"""Which gap between two runs so many rows can show, and how many rows a wanted one needs.

Both runs answer the same rows, and McNemar's test compares them. What decides beside the number of rows is on
how many of them the two disagree. Two models that err independently of each other disagree most: that is the
cautious assumption. Real ones find the same rows hard, and half of that is the hopeful one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mmbu_async.report import words
from mmbu_async.stats import detectable_difference, independent_disagreement, rows_needed
from mmbu_async.stats.power import ALPHA, POWER

UNKNOWN_ACCURACY = 0.5
"""Assumed where no accuracy is given: at no other do independent models disagree on more rows."""
INDEPENDENT = "if the two err independently"
HALF = "if they disagree half as often"
GIVEN = "as given"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """What is assumed of two runs, and what follows."""

    name: str
    disagreement: float
    """Share of the rows that one of the two has right and the other wrong."""
    difference: float | None
    """Of the accuracies, a fraction: asked for, or the smallest that the rows show; None where they show
    none."""
    rows: int
    """On offer, or needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The smallest difference of accuracy to another run on the same rows that these rows can show."""

    rows: int
    accuracy: float
    """Of the run at hand."""
    assumptions: tuple[Assumption, ...]
    power: float = POWER
    alpha: float = ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many rows show a wanted difference, or which difference a number of rows shows."""

    wanted: float | None
    """The difference that was asked for; None: `rows` were given."""
    rows: int | None
    accuracy: float
    run: str | None
    """The run that the accuracy is of; None: it was given, or assumed."""
    assumptions: tuple[Assumption, ...]
    power: float
    alpha: float


def resolution(rows: int, right: int) -> Resolution | None:
    """Of `rows` with a score, `right` of them right; None without rows."""
    if not rows:
        return None
    return Resolution(
        rows=rows, accuracy=right / rows, assumptions=tuple(_gaps(rows, right / rows, None, POWER, ALPHA))
    )


def plan_rows(
    difference: float,
    *,
    accuracy: float = UNKNOWN_ACCURACY,
    disagreement: float | None = None,
    power: float = POWER,
    alpha: float = ALPHA,
    run: str | None = None,
) -> Plan:
    """How many rows show this difference. `disagreement` takes the place of both assumptions.

    Raises ValueError where the difference is larger than the disagreement, or than the accuracy allows.
    """
    if difference > max(accuracy, 1 - accuracy):
        raise ValueError(f"no accuracy lies {difference:g} from {accuracy:g}")
    named = _parting(difference, accuracy) if disagreement is None else {GIVEN: disagreement}
    return Plan(
        wanted=difference,
        rows=None,
        accuracy=accuracy,
        run=run,
        assumptions=tuple(
            Assumption(
                name=name,
                disagreement=share,
                difference=difference,
                rows=rows_needed(difference, disagreement=share, power=power, alpha=alpha),
            )
            for name, share in named.items()
        ),
        power=power,
        alpha=alpha,
    )


def plan_difference(
    rows: int,
    *,
    accuracy: float = UNKNOWN_ACCURACY,
    disagreement: float | None = None,
    power: float = POWER,
    alpha: float = ALPHA,
    run: str | None = None,
) -> Plan:
    """Which difference so many rows show."""
    return Plan(
        wanted=None,
        rows=rows,
        accuracy=accuracy,
        run=run,
        assumptions=tuple(_gaps(rows, accuracy, disagreement, power, alpha)),
        power=power,
        alpha=alpha,
    )


def smallest_gap(
    rows: int, disagreement: float, *, power: float = POWER, alpha: float = ALPHA
) -> float | None:
    """The smallest difference that so many rows show; None where they show none.

    Two runs that differ by more than they were assumed to disagree do disagree by as much: then one of them
    is never the worse.
    """
    found = detectable_difference(rows, disagreement=disagreement, power=power, alpha=alpha)
    if found is not None or rows < rows_needed(1.0, disagreement=1.0, power=power, alpha=alpha):
        return found
    low, high = disagreement, 1.0
    while low < (middle := (low + high) / 2) < high:
        enough = rows_needed(middle, disagreement=middle, power=power, alpha=alpha) <= rows
        low, high = (low, middle) if enough else (middle, high)
    return high


def resolution_text(found: Resolution, *, clustered: bool) -> str:
    """In a sentence or two, for every form of the report. `clustered`: rows share figures or rotations."""
    given = f"({words.percent(found.power)} power, alpha {found.alpha:g})"
    gaps = [(one.name, one.difference) for one in found.assumptions if one.difference is not None]
    if not gaps:
        return f"{words.rows(found.rows)} are too few to tell another run from this one {given}."
    parts = ", ".join(f"{words.share(gap)} {name}" for name, gap in gaps)
    less = " Rows that share a figure count for less." if clustered else ""
    return (
        f"Another run on these {words.rows(found.rows)} is told from this one {given} by a difference of "
        f"accuracy of {parts}.{less}"
    )


def _gaps(
    rows: int, accuracy: float, disagreement: float | None, power: float, alpha: float
) -> Iterator[Assumption]:
    independent = independent_disagreement(accuracy, accuracy)
    named = {INDEPENDENT: independent, HALF: independent / 2}
    for name, share in (named if disagreement is None else {GIVEN: disagreement}).items():
        gap = smallest_gap(rows, share, power=power, alpha=alpha)
        yield Assumption(name=name, disagreement=share, difference=gap, rows=rows)


def _parting(difference: float, accuracy: float) -> dict[str, float]:
    """On which share of rows the two may disagree: at least by what they differ."""
    others = [other for other in (accuracy - difference, accuracy + difference) if 0 <= other <= 1]
    independent = max(independent_disagreement(accuracy, other) for other in (accuracy, *others))
    return {INDEPENDENT: independent, HALF: max(independent / 2, difference)}
