"""Pieces of a page. Whatever is foreign (names, values, notes) goes through `text`, and is then only text."""

from __future__ import annotations

import csv
import io
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

from mmbu_async.report import words
from mmbu_async.report.plain import csv_cell, line
from mmbu_async.report.sections import Section

LONGEST = 300
"""Characters of one text on a page; of longer ones the rest is cut, and the whole length said."""
LONGEST_CELL = 30_000
"""The same for a CSV cell: a spreadsheet takes some 32,000 characters."""
LONG_WORD = 20
"""Characters: a longer one is an id or an address, and a table would be as wide as it."""

Cells = Sequence[str | int | float | None]


def text(foreign: str) -> str:
    """Any text as HTML that shows it and does nothing: markup, control characters and direction marks are
    shown instead of obeyed."""
    return escape(cut(foreign), quote=True)


def cut(foreign: str, longest: int = LONGEST) -> str:
    """The text on one line, with what it would be cut to said at its end."""
    if len(foreign) <= longest:
        return line(foreign)
    return f"{line(foreign[:longest])}… ({words.count(len(foreign))} characters)"


def element(tag: str, *inner: str, **attributes: str | None) -> str:
    """`inner` is HTML already. A trailing underscore of an attribute's name is dropped (`class_`), an inner
    one is a dash (`aria_label`); None leaves it out."""
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value, quote=True)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{given}>{''.join(inner)}</{tag}>"


def paragraph(foreign: str, *, class_: str | None = None) -> str:
    return element("p", escape(line(foreign), quote=True), class_=class_)


def number(name: str, value: str, below: str) -> str:
    """One figure, large, with what it is above and a remark below."""
    inner = (
        element("span", text(name), class_="name"),
        element("span", text(value), class_="value"),
        element("span", text(below), class_="below"),
    )
    return element("p", *inner)


def meaning(sentences: Iterable[str]) -> str:
    """What a reader must know to read the numbers."""
    inner = "".join(paragraph(sentence) + "\n" for sentence in sentences)
    return f'<h2 class="quiet">What the numbers mean</h2>\n<div class="meaning">\n{inner}</div>\n'


def section(identity: str, title: str, *parts: str) -> str:
    """A part of the page with a heading, that links can lead to."""
    heading = element("h2", text(title), id=f"{identity}-title")
    return element("section", heading, "\n", *parts, id=identity, aria_labelledby=f"{identity}-title") + "\n"


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    shown: bool = True,
    numbers: bool = True,
    note: str = "",
) -> str:
    """Plain texts. The first column names its row, the others are numbers; the first header may be empty.

    The table scrolls inside of its frame where the page is narrower than it. `shown`: whether the caption is
    to be seen, or only to be heard.
    """
    first, *others = columns
    kind = "n" if numbers else None
    head = "".join(
        [
            element("th", text(first), scope="col", class_=_breaks(first)) if first else "<td></td>",
            *(element("th", text(name), scope="col", class_=kind or _breaks(name)) for name in others),
        ]
    )
    body = "\n".join(
        f"<tr>{element('th', text(name), scope='row', class_=_breaks(name))}"
        + "".join(element("td", text(cell), class_=kind or _breaks(cell)) for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    title = element("caption", text(caption), class_=None if shown else "unseen")
    made = f"<table>{title}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return scrolling(made, caption) + (paragraph(note, class_="note") if note else "")


def listed(found: Section) -> str:
    """A table that other forms have too."""
    return table(found.title, ("", *found.columns), found.rows, shown=False, note=found.note)


def scrolling(inner: str, label: str) -> str:
    """A frame that scrolls sideways by itself, with the keyboard too."""
    return element("div", inner, class_="scroll", role="region", tabindex="0", aria_label=cut(label)) + "\n"


def facts(pairs: Iterable[tuple[str, str]], *, short: bool = False) -> str:
    """Names and what they are; `short` values stand beside each other."""
    inner = "\n".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="{"facts short" if short else "facts"}">\n{inner}\n</dl>\n'


def details(summary: str, *inner: str) -> str:
    """What is shown when it is asked for."""
    return f"<details><summary>{text(summary)}</summary>\n{''.join(inner)}</details>\n"


def figure(identity: str, title: str, drawing: str, caption: str, *under: str, wide: bool = False) -> str:
    """A drawing (an SVG element) with what it is above it, and how to read it below."""
    frame = scrolling(drawing, title) if wide else f'<div class="plot">{drawing}</div>\n'
    head = f"<figcaption>{element('h3', text(title))}{paragraph(caption) if caption else ''}</figcaption>\n"
    return element("figure", "\n", head, frame, *under, id=identity, class_="wide" if wide else None) + "\n"


def grid(figures: Sequence[str]) -> str:
    """Figures beside each other where the page is wide enough."""
    return element("div", "\n", *figures, class_="grid") + "\n" if figures else ""


def download(name: str, columns: Sequence[str], rows: Iterable[Cells], *, label: str = "Data (CSV)") -> str:
    """A link that holds the data itself. No cell of it is run as a formula by a spreadsheet."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(csv_cell(cut_cell(column)) for column in columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    # A spreadsheet takes text without this mark for an old code page.
    content = b64encode(("\ufeff" + written.getvalue()).encode("utf-8", "replace")).decode()
    link = element(
        "a", text(label), href=f"data:text/csv;charset=utf-8;base64,{content}", download=f"{slug(name)}.csv"
    )
    return f'<p class="data">{link}</p>\n'


def cut_cell(foreign: str) -> str:
    if len(foreign) <= LONGEST_CELL:
        return foreign
    return f"{foreign[:LONGEST_CELL]}… ({words.count(len(foreign))} characters)"


def slug(name: str) -> str:
    """Letters, digits and dashes: for names of files and of places in the page."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()[:80]).strip("-") or "data"


def _breaks(cell: str) -> str | None:
    """The class of a cell that may break inside of a word, as no other may: it would for no need."""
    return "long" if any(len(word) > LONG_WORD for word in cut(cell).split()) else None


def _cell(value: str | int | float | None) -> str | int | float:
    if value is None:
        return ""
    return csv_cell(cut_cell(value)) if isinstance(value, str) else value
