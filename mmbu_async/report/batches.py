"""Batches at providers, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mmbu_async.report import words
from mmbu_async.report.plain import line
from mmbu_async.store import BatchRecord, BatchState

_MEANINGS = {
    BatchState.SUBMITTING: "not known to have arrived",
    BatchState.SUBMITTED: "out",
    BatchState.FETCHED: "fetched",
    BatchState.REFUSED: "refused",
    BatchState.LOST: "never arrived",
}


def summary(batches: Sequence[BatchRecord]) -> str:
    """`2 out (1,000 requests, 350 of them done), 7 fetched`; '' where there are none."""
    parts = []
    out = [batch for batch in batches if batch.open]
    if out:
        requests = sum(batch.requests for batch in out)
        done = sum(batch.finished for batch in out)
        counted = f"{words.count(requests)} requests, {words.count(done)} of them done"
        parts.append(f"{words.count(len(out))} out ({counted})")
    ended = Counter(batch.state for batch in batches if not batch.open)
    parts += [f"{words.count(ended[state])} {_MEANINGS[state]}" for state in BatchState if ended[state]]
    return ", ".join(parts)


def print_batches(batches: Sequence[BatchRecord], judges: Mapping[int, str], console: Console) -> None:
    """One line a batch, oldest first."""
    if not batches:
        console.print(Text("The run has no batches; `mmbu run --batch` and `mmbu resume --batch` make some."))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("batch", overflow="fold")
    table.add_column("of", overflow="fold")
    for head in ("requests", "done"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("sent", no_wrap=True)
    table.add_column("state", overflow="fold")
    for batch in batches:
        side = "model" if batch.judge_id is None else f"judge {judges.get(batch.judge_id, '?')}"
        cells = (
            batch.remote_id or batch.marker,
            side,
            words.count(batch.requests),
            words.count(batch.finished),
            words.moment(batch.created_at),
            _state(batch),
        )
        table.add_row(*(Text(line(cell)) for cell in cells))
    console.print(table)


def _state(batch: BatchRecord) -> str:
    said = _MEANINGS[batch.state]
    if batch.state is BatchState.SUBMITTED:
        return f"{said}: {batch.status}"
    return f"{said} ({batch.words})" if batch.words else said
