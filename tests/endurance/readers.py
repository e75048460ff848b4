"""Others who look at the live store: one who never lets go, one who never rests."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

WAIT_S = 30.0


@contextmanager
def reading_all_the_while(store: Path) -> Iterator[list[str]]:
    """Two threads read until the block ends; gives the list of what they were refused."""
    refused: list[str] = []
    stop = threading.Event()
    threads = [
        threading.Thread(target=work, args=(store, stop, refused), daemon=True) for work in (_long, _busy)
    ]
    for thread in threads:
        thread.start()
    try:
        yield refused
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _open(store: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True, timeout=WAIT_S, isolation_level=None)


def _long(store: Path, stop: threading.Event, refused: list[str]) -> None:
    """One transaction from beginning to end: the log of the store cannot be emptied meanwhile."""
    try:
        with closing(_open(store)) as connection:
            connection.execute("BEGIN")
            (before,) = connection.execute("SELECT count(*) FROM call").fetchone()
            stop.wait()
            (after,) = connection.execute("SELECT count(*) FROM call").fetchone()
            if before != after:
                refused.append(f"a transaction saw {before} calls, then {after}")
    except sqlite3.Error as error:
        refused.append(f"the long reader: {error}")


def _busy(store: Path, stop: threading.Event, refused: list[str]) -> None:
    """Read everything, again and again."""
    try:
        with closing(_open(store)) as connection:
            while not stop.wait(0.002):
                connection.execute("SELECT sum(length(text)) FROM call").fetchone()
                connection.execute("SELECT count(*) FROM verdict JOIN selection USING (sample_id)").fetchone()
    except sqlite3.Error as error:
        refused.append(f"the busy reader: {error}")
