"""What one transaction of the writer holds, and how it is written.

Calls and verdicts go in many rows a statement. SQLite gives up the interpreter's lock around each step, and
a busy event loop lets others wait for it up to 5 ms a time: beside such a loop one statement a row was
measured at 39 rows/s, one for 16 rows at 26,000. Statements exist for a few sizes only, so that SQLite
keeps them prepared; what is left over is filled up with rows that the statement leaves out.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from itertools import chain
from typing import Any

from mmbu_async.store import codec
from mmbu_async.store.calls import CALL_COLUMNS, VERDICT_COLUMNS, CallRecord, Record, VerdictRecord
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import transaction

SIZES = (1, 4, 16, 64, 256)
"""Rows a statement; 256 calls take 7,424 parameters of the 32,766 that SQLite allows."""

_RUN, _SESSION, _SAMPLE, _JUDGE, _ATTEMPT, _OK = map(
    CALL_COLUMNS.index, ("run_id", "session_id", "sample_id", "judge_id", "attempt", "ok")
)

Values = tuple[Any, ...]


class Batch:
    """Records of several waiters, in the order in which they came."""

    __slots__ = ("call_waiters", "calls", "dropped", "futures", "lost", "records", "signs", "verdicts")

    def __init__(self) -> None:
        self.futures: list[asyncio.Future[bool]] = []
        self.calls: list[Values] = []
        self.call_waiters: list[int] = []
        self.verdicts: list[Values] = []
        self.signs: list[tuple[int, str, Values]] = []
        self.records = 0
        self.dropped = 0
        self.lost: set[int] = set()
        """Waiters to be told False."""

    def add(self, records: Sequence[Record], future: asyncio.Future[bool]) -> None:
        # All values before the first is queued: a record that has none must not leave half a post behind.
        made = [record.values() for record in records]
        waiter = len(self.futures)
        self.futures.append(future)
        self.records += len(records)
        for record, values in zip(records, made, strict=True):
            if isinstance(record, CallRecord):
                self.calls.append(values)
                self.call_waiters.append(waiter)
            elif isinstance(record, VerdictRecord):
                self.verdicts.append(values)
            else:
                self.signs.append((waiter, record.statement, values))

    def commit(self, connection: sqlite3.Connection) -> None:
        """Store everything in one transaction. Late duplicates of a reply are left out and noted."""
        try:
            self._store(connection)
        except (UnicodeEncodeError, OverflowError):
            # Looking for what SQLite cannot hold in every text would cost more than storing it.
            self.calls = list(map(codec.clean_values, self.calls))
            self.verdicts = list(map(codec.clean_values, self.verdicts))
            self._store(connection)

    def _store(self, connection: sqlite3.Connection) -> None:
        # A statement alone is a transaction by itself; BEGIN and COMMIT would each wait for the interpreter.
        alone = len(self.calls) <= SIZES[-1] and not self.verdicts and not self.signs
        with nullcontext() if alone else transaction(connection):
            if self.calls:
                cursor = connection.executemany(*_many("insert_calls", CALL_COLUMNS, self.calls))
                self.dropped = len(self.calls) - cursor.rowcount
                if self.dropped:
                    self._find_dropped(connection)
            if self.verdicts:
                connection.executemany(*_many("put_verdicts", VERDICT_COLUMNS, self.verdicts))
            for waiter, statement, values in self.signs:
                if connection.execute(query(statement), values).rowcount == 0:
                    self.lost.add(waiter)

    def _find_dropped(self, connection: sqlite3.Connection) -> None:
        """Whose reply the store has not, because it has another one for the row."""
        replies = [
            (waiter, values)
            for waiter, values in zip(self.call_waiters, self.calls, strict=True)
            if values[_OK] == 1 and values[_JUDGE] is None
        ]
        rows = codec.dump([(values[_RUN], values[_SAMPLE]) for _, values in replies])
        (found,) = connection.execute(query("replies_kept"), (rows,)).fetchone()
        kept = set(map(tuple, codec.load(found)))
        self.lost.update(
            waiter
            for waiter, values in replies
            if (values[_RUN], values[_SAMPLE], values[_SESSION], values[_ATTEMPT]) not in kept
        )

    def acknowledge(self) -> None:
        for waiter, future in enumerate(self.futures):
            if not future.done():
                future.set_result(waiter not in self.lost)

    def fail(self, error: BaseException) -> None:
        for future in self.futures:
            if not future.done():
                future.set_exception(error)
                # Who posts without waiting learns of the error from the next post: no warning is due.
                future.exception()


def _many(name: str, columns: tuple[str, ...], rows: Sequence[Values]) -> tuple[str, list[list[Any]]]:
    """Statement and parameters for `executemany`: the rows end to end, as many of them a time as the
    statement takes. Zeros fill the last time up (0 is no run's id)."""
    size = next((size for size in SIZES if size >= len(rows)), SIZES[-1])
    times = [list(chain.from_iterable(rows[at : at + size])) for at in range(0, len(rows), size)]
    times[-1].extend([0] * (size * len(columns) - len(times[-1])))
    return _statement(name, columns, size), times


@cache
def _statement(name: str, columns: tuple[str, ...], size: int) -> str:
    row = f"({', '.join('?' * len(columns))})"
    return (
        query(name)
        .replace("/* columns */", ", ".join(columns))
        .replace("/* rows */", ", ".join([row] * size))
    )
