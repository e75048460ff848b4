"""The table of adapted models, on a terminal of 80 columns and in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.text import Text

from mmbu_async.report import markdown_tables, tables, words
from mmbu_async.report.adaptations import MILLION, Adaptation, Adaptations
from mmbu_async.report.plain import line
from mmbu_async.report.plain import markdown as safe
from mmbu_async.report.sections import Section


def print_adaptations(found: Adaptations, console: Console) -> None:
    width = min(console.width, tables.WIDEST)
    for part in _parts(found):
        console.print(part, width=width)


def adaptations_to_markdown(found: Adaptations) -> str:
    """The whole page; ends with a line end."""
    notes = "".join(f"- Note: {safe(note)}\n" for note in found.notes)
    head = (
        f"# {safe(found.benchmark)} · {words.counted(len(found.pairs), 'adapted model', 'adapted models')}\n"
    )
    fingerprint = f"- Fingerprint of the dataset: {safe(found.fingerprint)}\n"
    table = markdown_tables.section_text(wide_table(found))
    return f"{head}\n{notes}{fingerprint}\n{table}\nFit: {safe(found.fit_text)}\n\n{safe(found.convention)}\n"


def _parts(found: Adaptations) -> Iterator[RenderableType]:
    count = words.counted(len(found.pairs), "adapted model", "adapted models")
    yield Text(line(f"{found.benchmark} · {count}"), style="bold")
    for note in found.notes:
        yield Text(f"NOTE: {line(note)}", style="yellow")
    yield from tables.section_table(_narrow(found))
    yield Text(f"\nFit: {line(found.fit_text)}", style="bold")
    yield Text("\nHow it is counted", style="bold")
    yield Text(line(found.convention))


def _narrow(found: Adaptations) -> Section:
    return Section(
        title="Adapted from base",
        columns=("size/M", "rows", "wins %", "losses %", "Δ acc", "Holm"),
        rows=tuple(
            (
                _name(pair),
                f"{pair.training_size / MILLION:.3g}",
                words.count(pair.n),
                _rate(pair.win_rate),
                _rate(pair.loss_rate),
                words.signed(pair.accuracy_difference),
                words.p_value(pair.p_holm),
            )
            for pair in found.pairs
        ),
    )


def wide_table(found: Adaptations) -> Section:
    """All that is known of each pair."""
    return Section(
        title="Adapted from base",
        columns=(
            *("training rows", "rows", "wins", "wins %", "losses", "losses %"),
            *("right in both", "wrong in both", "Δ acc", "p", "Holm"),
        ),
        rows=tuple(
            (
                _name(pair),
                f"{pair.training_size:,.0f}",
                words.count(pair.n),
                words.count(pair.wins),
                _rate(pair.win_rate),
                words.count(pair.losses),
                _rate(pair.loss_rate),
                words.count(pair.ties_right),
                words.count(pair.ties_wrong),
                words.signed(pair.accuracy_difference),
                words.p_value(pair.p),
                words.p_value(pair.p_holm),
            )
            for pair in found.pairs
        ),
    )


def _name(pair: Adaptation) -> str:
    return f"{pair.adapted} from {pair.base}"


def _rate(per_cent: float | None) -> str:
    return words.NONE if per_cent is None else f"{per_cent:.1f}"
