"""Where runs stand: a table of all, or one in full."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mmbu_async.report import at_work, words
from mmbu_async.report.batches import summary
from mmbu_async.report.plain import line
from mmbu_async.store import BatchRecord, Lease, RunCounts, RunRecord, RunTotals

NARROW_MODEL = 8
"""Columns that the name of the model keeps beside a long name of a run."""
NUMBERS = ("rows", "scored", "failed", "unjudged", "pending")


def print_runs(
    runs: Sequence[tuple[RunRecord, RunCounts]],
    console: Console,
    *,
    working: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """One line a run, in the order given; `working` says what the process at work on a run does."""
    if not runs:
        console.print(Text("The store has no runs yet; `mmbu run` makes one."))
        return
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    heads = [*NUMBERS, "started", *(["now"] if working else [])]
    figures = [_figures(run, counts) + ([working.get(run.id, "")] if working else []) for run, counts in runs]
    widths = [max(map(len, column)) for column in zip(heads, *figures, strict=True)]
    # A blank stands between two columns. Figures come first, for cut ones say nothing.
    room = max(2 * NARROW_MODEL, console.width - sum(widths) - len(widths) - 1)
    name = max(cell_len(line(run.name)) for run, _ in runs)
    model = max(cell_len(line(run.model)) for run, _ in runs)
    # The name is what other commands want: the model's is folded before it.
    model = min(max(model, len("model")), max(room - max(name, len("run")), min(NARROW_MODEL, room - 1)))
    table.add_column("run", overflow="fold", width=min(max(name, len("run")), room - model))
    table.add_column("model", overflow="fold", width=model)
    for head, width in zip(heads, widths, strict=True):
        table.add_column(head, justify="right" if head in NUMBERS else "left", no_wrap=True, min_width=width)
    for (run, _), cells in zip(runs, figures, strict=True):
        table.add_row(Text(line(run.name)), Text(line(run.model)), *cells)
    console.print(table)


def _figures(run: RunRecord, counts: RunCounts) -> list[str]:
    numbers = (counts.selected, counts.graded, counts.failed, _unscored(counts), counts.pending)
    return [*map(words.count, numbers), words.moment(run.created_at).split()[0]]


def print_status(
    run: RunRecord,
    counts: RunCounts,
    totals: RunTotals,
    console: Console,
    *,
    flags: str = "",
    process: Lease | None = None,
    paused: bool = False,
    tied: int = 0,
    batches: Sequence[BatchRecord] = (),
) -> None:
    """One run: rows, sessions, money, and the command that goes on; `flags` name the store in it. `process`:
    who works on it at the moment. `tied`: rows on which the panel has no majority. `batches`: all that were
    handed to a provider."""
    judge = f", judge {run.judge.name}" if run.judge and _judged(counts, totals) else ""
    console.print(Text(line(f"{run.name}: {run.model} on {run.benchmark}{judge}"), style="bold"))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    facts = _facts(run, counts, totals, open_session=at_work.DIED if process is None else "at work")
    if said := summary(batches):
        facts.insert(5, ("Batches", said))
    if process is not None:
        facts.insert(0, ("Now", at_work.said(process, paused=paused)))
    for name, value in facts:
        grid.add_row(Text(name), Text(line(value)))
    console.print(grid)
    if process is not None:
        advice = f"mmbu continue {shlex.quote(run.name)}" if paused else ""
    else:
        out = any(batch.open for batch in batches)
        advice = f"mmbu resume {shlex.quote(run.name)}" if out else _next(run, counts, tied)
    if advice:
        # A command to copy: no line break inside.
        console.print(Text(line(f"Next     {advice}{flags}")), soft_wrap=True)


def _facts(
    run: RunRecord, counts: RunCounts, totals: RunTotals, *, open_session: str
) -> list[tuple[str, str]]:
    facts = [
        ("Rows", f"{words.count(counts.selected)} of the dataset's {words.count(run.dataset.rows)}"),
        (
            "Replies",
            f"{words.count(counts.completed)}, {words.count(counts.failed)} failed, "
            f"{words.count(counts.pending)} pending",
        ),
        ("Scored", f"{words.count(counts.graded)}{_without_answer(counts)}, {_unscored(counts):,} unjudged"),
        ("Model", _side(totals, judge=False)),
    ]
    if _judged(counts, totals):
        facts.append(("Judge", _side(totals, judge=True)))
    for session in totals.sessions:
        ended = session.ended or open_session
        lasted = "" if session.wall_s is None else f", {words.duration(session.wall_s)}"
        facts.append((session.kind.capitalize(), f"{words.moment(session.started_at)}{lasted}, {ended}"))
    return facts


def _side(totals: RunTotals, *, judge: bool) -> str:
    spend = totals.judge if judge else totals.infer
    if not spend.calls:
        return "no calls"
    return (
        f"{words.count(spend.calls)} calls, {words.count(spend.retries)} retries, "
        f"{words.count(spend.rate_limited)} 429s, {words.count(spend.input_tokens)} tokens in, "
        f"{words.count(spend.output_tokens)} out, {words.cost(spend)}"
    )


def _judged(counts: RunCounts, totals: RunTotals) -> bool:
    """Whether a judge has or may get a part in the run: rows of some benchmarks are scored without."""
    return bool(totals.judge.calls or counts.by_verdict or _unscored(counts) or not counts.scored)


def _without_answer(counts: RunCounts) -> str:
    return f", {counts.ungraded:,} without a public answer" if counts.ungraded else ""


def _unscored(counts: RunCounts) -> int:
    """Rows with a reply and no score."""
    return max(0, counts.completed - counts.scored)


def _next(run: RunRecord, counts: RunCounts, tied: int) -> str:
    if counts.pending or counts.failed:
        return f"mmbu resume {shlex.quote(run.name)}"
    if tied and tied >= _unscored(counts):
        # To ask the same judges again would ask nobody.
        return f"mmbu rejudge {shlex.quote(run.name)} --panel WITH_ONE_MORE_JUDGE.toml"
    if _unscored(counts):
        return f"mmbu rejudge {shlex.quote(run.name)}"
    return ""
