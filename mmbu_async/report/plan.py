"""Which gap between two runs so many rows can show, and how many rows a wanted one needs.

Both runs answer the same rows, and McNemar's test compares them. What decides beside the number of rows is on
how many of them the two disagree. Two models that err independently of each other disagree most: that is the
cautious assumption. Real ones find the same rows hard, and half of that is the hopeful one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mmbu_async.errors import ConfigError
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


def make_plan(
    *,
    difference: float | None = None,
    rows: int | None = None,
    accuracy: float | None = None,
    disagreement: float | None = None,
    power: float = POWER,
    alpha: float = ALPHA,
    run: str | None = None,
) -> Plan:
    """How many rows show `difference`, or which difference `rows` show. `disagreement` takes the place of
    both assumptions. `run`: whose accuracy is given.

    Raises ConfigError naming the flag of what cannot be.
    """
    _check(accuracy=accuracy, disagreement=disagreement, power=power, alpha=alpha)
    level = UNKNOWN_ACCURACY if accuracy is None else accuracy
    if (difference is None) == (rows is None):
        raise ConfigError(
            "give either --difference, to learn how many rows it needs, or --rows, to learn the reverse."
        )
    if difference is not None:
        _check_difference(difference, level, disagreement)
        named = _parting(difference, level) if disagreement is None else {GIVEN: disagreement}
        assumptions = [
            Assumption(
                name=name,
                disagreement=share,
                difference=difference,
                rows=rows_needed(difference, disagreement=share, power=power, alpha=alpha),
            )
            for name, share in named.items()
        ]
    else:
        if rows is None or rows < 1:
            raise ConfigError(f"--rows {rows}: must be 1 or more.")
        assumptions = list(_gaps(rows, level, disagreement, power, alpha))
    return Plan(
        wanted=difference,
        rows=rows,
        accuracy=level,
        run=run,
        assumptions=tuple(assumptions),
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
        few = "is too few" if found.rows == 1 else "are too few"
        return f"{words.rows(found.rows)} {few} to tell another run from this one {given}."
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
    return {
        name: max(share, difference) for name, share in ((INDEPENDENT, independent), (HALF, independent / 2))
    }


def _check(*, accuracy: float | None, disagreement: float | None, power: float, alpha: float) -> None:
    for name, share in (("accuracy", accuracy), ("disagreement", disagreement)):
        if share is not None and not 0 <= share <= 1:
            raise ConfigError(f"--{name} {share:g}: is a share of the rows, from 0 to 1.")
    for name, chance in (("power", power), ("alpha", alpha)):
        if not 0 < chance < 1:
            raise ConfigError(f"--{name} {chance:g}: must be between 0 and 1.")


def _check_difference(difference: float, accuracy: float, disagreement: float | None) -> None:
    if not 0 < difference <= 1:
        raise ConfigError(
            f"--difference {difference:g}: is a difference of accuracies, above 0 and at most 1; 0.02 is two "
            "points."
        )
    if disagreement is not None and difference > disagreement:
        raise ConfigError(
            f"--difference {difference:g}: runs that disagree on {disagreement:g} of the rows "
            "(--disagreement) differ by no more than that."
        )
    if disagreement is None and difference > max(accuracy, 1 - accuracy):
        raise ConfigError(f"--difference {difference:g}: no accuracy lies so far from {accuracy:g}.")
