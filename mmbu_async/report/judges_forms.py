"""The page of a run's judges: terminal and Markdown, with the same tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from mmbu_async.report import markdown_tables, tables, words
from mmbu_async.report.humans import Against, Humans
from mmbu_async.report.judges import DifferingRow, JudgesReport
from mmbu_async.report.plain import line, short
from mmbu_async.report.plain import markdown as safe
from mmbu_async.report.sections import Section, judges, kappa_cells

NO_JUDGE = "No judge has given a verdict in this run."
SHOWN = {True: "right", False: "wrong", None: words.NONE}
LONGEST_ID = 60
"""Characters that are shown."""


def print_judges(found: JudgesReport, console: Console) -> None:
    """Print the page."""
    width = min(console.width, tables.WIDEST)
    console.print(Text(line(_title(found)), style="bold"), width=width)
    console.print(Text(line(_standing(found)), style="" if found.official else "yellow"), width=width)
    for note in found.warnings:
        console.print(Text(f"NOTE: {line(note)}", style="yellow"), width=width)
    if found.panel is None:
        console.print(Text(NO_JUDGE), width=width)
    for section in _sections(found):
        for part in tables.section_table(section):
            console.print(part, width=width)


def judges_to_markdown(found: JudgesReport) -> str:
    """The page; ends with a line end."""
    parts = [f"# {safe(_title(found))}\n", f"{safe(_standing(found))}\n"]
    parts += [f"- Note: {safe(note)}\n" for note in found.warnings]
    if found.panel is None:
        parts.append(f"{NO_JUDGE}\n")
    parts += [markdown_tables.section_text(section) for section in _sections(found)]
    return "\n".join(parts)


def _title(found: JudgesReport) -> str:
    return f"Judges of run {found.run}: {found.model} on {found.benchmark}"


def _standing(found: JudgesReport) -> str:
    return "Official settings." if found.official else f"Unofficial: {'; '.join(found.unofficial)}."


def _sections(found: JudgesReport) -> Iterator[Section]:
    if found.panel is not None:
        yield from judges(found.panel)
    if found.humans is not None:
        yield _against(found.humans)
        yield _confusion(found.humans)
    if found.rows:
        yield _rows(found)


def _against(found: Humans) -> Section:
    notes = [f"{words.rows(found.labels)} with a label, {words.count(found.right)} of them right."]
    if found.blank:
        notes.append(f"{words.rows(found.blank)} named without a label.")
    if found.by_rule:
        notes.append(f"{words.rows(found.by_rule)} left out, which no judge scores or which have no reply.")
    return Section(
        title="Against human labels",
        columns=("rows", "acc", "Wilson", "kappa", "95 % CI"),
        rows=tuple(_figures(one) for one in found.against),
        note=" ".join(notes),
    )


def _figures(one: Against) -> tuple[str, ...]:
    name, n, _, kappa, interval = kappa_cells(one.judge, one.kappa)
    return name, n, words.share(one.accuracy), words.interval(one.wilson), kappa, interval


def _confusion(found: Humans) -> Section:
    return Section(
        title="Judge / human",
        columns=("right/right", "right/wrong", "wrong/right", "wrong/wrong", "no verdict"),
        rows=tuple(
            (
                one.judge,
                words.count(one.true_positives),
                words.count(one.false_positives),
                words.count(one.false_negatives),
                words.count(one.true_negatives),
                words.count(one.missing),
            )
            for one in found.against
        ),
        note="True and false positives, false and true negatives; positive: found right.",
    )


def _rows(found: JudgesReport) -> Section:
    with_humans = found.humans is not None
    more = found.differing - len(found.rows)
    notes = [
        "The numbers are those of the judges above, in their order.",
        "`--disagreements FILE.csv` writes all rows, with a column to fill in as --labels.",
    ]
    if more:
        notes.insert(0, f"And {words.count(more)} more.")
    judges_by_number = map(str, range(1, len(found.rows[0].votes) + 1))
    return Section(
        title="Rows on which they differ",
        columns=(*(("human",) if with_humans else ()), *judges_by_number),
        rows=tuple(_cells(row, with_humans) for row in found.rows),
        note=" ".join(notes),
    )


def _cells(row: DifferingRow, with_humans: bool) -> tuple[str, ...]:
    human = (SHOWN[row.human],) if with_humans else ()
    return (short(row.row_id, LONGEST_ID), *human, *(SHOWN[vote] for vote in row.votes.values()))
