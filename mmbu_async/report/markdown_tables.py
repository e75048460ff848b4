"""Tables and lists in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mmbu_async.report.plain import markdown as safe
from mmbu_async.report.sections import Section


def section_text(section: Section) -> str:
    rows = [(safe(name or "(blank)"), *cells) for name, *cells in section.rows]
    note = f"\n{safe(section.note)}\n" if section.note else ""
    return f"## {safe(section.title)}\n\n" + table(("", *section.columns), rows) + note


def listed(facts: Iterable[tuple[str, str]]) -> str:
    return "".join(f"- {safe(name)}: {safe(value)}\n" for name, value in facts)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """`rows` hold Markdown already; the first column is text, the others are numbers."""
    head = "| " + " | ".join(columns) + " |\n| --- |" + " ---: |" * (len(columns) - 1) + "\n"
    return head + "".join("| " + " | ".join(row) + " |\n" for row in rows)
