"""A plan on a terminal: one line an assumption."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from mmbu_async.report import tables, words
from mmbu_async.report.plain import line
from mmbu_async.report.plan import GIVEN, UNKNOWN_ACCURACY, Assumption, Plan
from mmbu_async.report.sections import Section


def print_plan(found: Plan, console: Console) -> None:
    width = min(console.width, tables.WIDEST)
    console.print(Text(line(_question(found)), style="bold"), width=width)
    for part in tables.section_table(_table(found)):
        console.print(part, width=width)


def _question(found: Plan) -> str:
    test = f"McNemar's test, {words.percent(found.power)} power, alpha {found.alpha:g}"
    if found.wanted is not None:
        return f"Rows that show a difference of accuracy of {found.wanted:g} ({test})"
    return f"Difference of accuracy that {words.rows(found.rows or 0)} show ({test})"


def _table(found: Plan) -> Section:
    asked = "rows" if found.wanted is not None else "difference"
    return Section(
        title="Two runs on the same rows",
        columns=("disagree on", asked),
        rows=tuple(
            (one.name, words.share_percent(one.disagreement), _answer(found, one))
            for one in found.assumptions
        ),
        note=_note(found),
    )


def _answer(found: Plan, one: Assumption) -> str:
    if found.wanted is not None:
        return words.count(one.rows)
    return "none" if one.difference is None else words.share(one.difference)


def _note(found: Plan) -> str:
    if found.assumptions[0].name == GIVEN:
        return "Connor's formula (1987)."
    of = f"accuracy {words.share(found.accuracy)}"
    if found.run is not None:
        of += f", that of run {found.run}"
    elif found.accuracy == UNKNOWN_ACCURACY:
        of += ", at which independent runs disagree most (--accuracy says another)"
    return (
        f"Connor's formula (1987), for {of}. Real runs find the same rows hard and disagree on fewer than "
        "independent ones; `mmbu compare` says on how many, and --disagreement takes it."
    )
