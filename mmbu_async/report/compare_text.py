"""A comparison on a terminal: readable at 80 columns, and without colour."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.text import Text

from mmbu_async.report import compare_sections as cells
from mmbu_async.report import tables, words
from mmbu_async.report.comparison import (
    ComparedAttribute,
    Comparison,
    Flip,
    PairComparison,
    StratumComparison,
)
from mmbu_async.report.plain import line, short
from mmbu_async.report.text import MOST

LONGEST_ID = 200
LONGEST_ANSWER = 60
"""Characters that are shown."""


def print_comparison(found: Comparison, console: Console, *, most: int | None = MOST) -> None:
    """Print all parts. `most` limits the strata shown of each attribute; None shows every one."""
    width = min(console.width, tables.WIDEST)
    for part in _parts(found, most):
        console.print(part, width=width)


def _parts(found: Comparison, most: int | None) -> Iterator[RenderableType]:
    yield Text(line(found.first_line), style="bold green" if found.common_rows else "bold red")
    for note in found.left_out:
        yield Text(f"LEFT OUT: {line(note)}", style="yellow")
    for note in found.notes:
        yield Text(f"NOTE: {line(note)}", style="yellow")
    yield from tables.section_table(cells.run_table(found))
    if not found.common_rows:
        return
    for pair in found.pairs:
        yield from _pair(found, pair, most)
    yield Text("\nHow it is counted", style="bold")
    yield Text(line(found.convention))
    yield Text(line(found.correction))
    level = words.percent(found.level)
    yield Text(f"CI: {level} paired bootstrap, {words.count(found.resamples)} resamples.\n")
    for pair in found.pairs:
        yield Text(line(cells.verdict(found, pair)), style="bold")


def _pair(found: Comparison, pair: PairComparison, most: int | None) -> Iterator[RenderableType]:
    yield from tables.facts(f"{pair.second} against {pair.first}", cells.pair_facts(found, pair))
    yield from tables.section_table(cells.differences(pair))
    yield from tables.section_table(cells.tests("Wins and losses by task family", pair.families))
    yield from _strata(pair, most)
    if cells.has_small(pair):
        yield Text(f"\n{cells.MARK}")
    yield from _flips(pair)


def _strata(pair: PairComparison, most: int | None) -> Iterator[RenderableType]:
    """A table an attribute; those that would say nothing new are named in a line."""
    alike: list[str] = []
    shown: dict[tuple[tuple[str | None, int, int, int, int], ...], str] = {}
    repeated: list[str] = []
    for attribute in pair.attributes:
        title = words.attribute(attribute.name)
        key = tuple(map(_figures, attribute.strata))
        if len(attribute.strata) == 1:
            alike.append(f"{title} {attribute.strata[0].value}")
        elif key in shown:
            repeated.append(f"{title} has the groups of {shown[key]}")
        else:
            shown[key] = title
            yield from _attribute(attribute, most)
    if alike:
        yield Text(f"\nThe same in all rows: {line(', '.join(alike))}.")
    if repeated:
        yield Text(f"\nNot shown twice: {line('; '.join(repeated))}.")


def _figures(stratum: StratumComparison) -> tuple[str | None, int, int, int, int]:
    return (stratum.value, stratum.n, stratum.wins, stratum.losses, stratum.ties_right)


def _attribute(attribute: ComparedAttribute, most: int | None) -> Iterator[RenderableType]:
    strata = attribute.strata
    # One that would be left out alone is shown instead of announced.
    kept = strata if most is None or len(strata) <= most + 1 else strata[:most]
    yield from tables.section_table(cells.tests(cells.attribute_title(attribute), kept))
    if left := len(strata) - len(kept):
        yield Text(f"and {words.count(left)} more; --all shows every one", style="dim")


def _flips(pair: PairComparison) -> Iterator[RenderableType]:
    flipped = pair.wins + pair.losses
    if not flipped:
        yield Text("\nNo row flipped.")
        return
    shown = len(pair.flips)
    which = f"the first {shown} of {words.count(flipped)}" if shown < flipped else f"all {flipped}"
    yield Text(f"\nRows that flipped, {which} in dataset order", style="bold")
    for flip in pair.flips:
        yield Text(_flip(flip))
    if shown < flipped:
        yield Text("--flips FILE.csv writes every one, with whole answers", style="dim")


def _flip(flip: Flip) -> str:
    answers = [short(text, LONGEST_ANSWER) or "(nothing)" for text in (flip.first_answer, flip.second_answer)]
    return (
        f"{flip.direction:7} {short(flip.row_id, LONGEST_ID)}  ({short(flip.family, LONGEST_ANSWER)})\n"
        f"        {answers[0]} \u2192 {answers[1]}; truth {short(flip.truth, LONGEST_ANSWER)}"
    )
