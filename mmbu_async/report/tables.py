"""Tables and lists on a terminal of 80 columns, alike in all that is printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mmbu_async.report.plain import line
from mmbu_async.report.sections import Section

WIDEST = 100
"""Columns; on a wider terminal the numbers would stand far from what they belong to."""

WIDTHS = {"rows": 7, "acc": 5, "95 % CI": 11, "F1": 5}
"""Columns of numbers are as wide in all tables, so that they stand below each other."""


def section_table(section: Section) -> Iterator[RenderableType]:
    found = table(line(section.title), *section.columns)
    for name, *cells in section.rows:
        found.add_row(label(name), *cells)
    yield Text()
    yield found
    if section.note:
        yield Text(line(section.note))


def facts(title: str, named: Iterable[tuple[str, str]]) -> Iterator[RenderableType]:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in named:
        grid.add_row(Text(name), Text(line(value)))
    yield Text(f"\n{line(title)}", style="bold")
    yield grid


def table(title: str, *columns: str, expand: bool = True) -> Table:
    """No lines; the first column takes what room is left and wraps, the others are numbers."""
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, expand=expand, header_style="bold")
    made.add_column(Text(title), overflow="fold", ratio=1 if expand else None)
    for column in columns:
        made.add_column(Text(column), justify="right", no_wrap=True, min_width=WIDTHS.get(column))
    return made


def label(text: str | None) -> Text:
    return Text(line(text or "(blank)"))
