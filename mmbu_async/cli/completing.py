"""What a shell completes beside commands and flags: names of runs, benches and benchmarks.

A shell waits for it at each press of a key: nothing is imported that takes long, the store is only read, and
what cannot be read completes to nothing. No message may reach the line that somebody is typing.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import typer

_PATIENCE_S = 0.5
"""For a store that somebody writes to."""


def run_names(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Runs of the store that the line names, else of the environment's, the newest first."""
    query = "SELECT name, model || ', ' || benchmark FROM run ORDER BY created_at DESC"
    return _stored(context, query, incomplete)


def bench_names(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Benches likewise."""
    return _stored(context, "SELECT name, host FROM bench ORDER BY created_at DESC", incomplete)


def benchmark_names(incomplete: str) -> list[str]:
    """Ours and those of packages; a file of one's own is the shell's to complete."""
    from mmbu_async.tasks import NAMES, plug_ins

    names = [*NAMES, *(point.name for point in plug_ins.offered())]
    return [name for name in names if name.startswith(incomplete)]


def _stored(context: typer.Context, query: str, incomplete: str) -> list[tuple[str, str]]:
    from mmbu_async.cli.arguments import DEFAULT_STORE, STORE_VARIABLE

    given: Any = context.params.get("store")
    path = Path(given or os.environ.get(STORE_VARIABLE) or DEFAULT_STORE)
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE_S)
        ) as store:
            rows = store.execute(query).fetchall()
    except sqlite3.Error:
        return []
    return [(str(name), str(words)) for name, words in rows if str(name).startswith(incomplete)]
