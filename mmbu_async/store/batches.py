"""What one transaction of the writer holds, and the statements it takes.

Calls and verdicts go in many rows a statement. SQLite gives up the interpreter's lock around each step, and
a busy event loop lets others wait for it up to 5 ms a time: beside such a loop one statement a row was
measured at 39 rows/s, one for 16 rows at 26,000. Statements exist for a few sizes only, so that SQLite
keeps them prepared; what is left over is filled up with rows that the statement leaves out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

from mmbu_async.store import codec
from mmbu_async.store.calls import CALL_COLUMNS, VERDICT_COLUMNS, CallRecord, Record, VerdictRecord
from mmbu_async.store.sql import query

SIZES = (1, 4, 16, 64, 256)
"""Rows a statement; 256 calls take 7,424 parameters of the 32,766 that SQLite allows."""

_ATTEMPT = CALL_COLUMNS.index("attempt")
_OK = CALL_COLUMNS.index("ok")

Values = tuple[Any, ...]


class Batch:
    """Records of several waiters, in the order in which they came."""

    __slots__ = ("beats", "call_waiters", "calls", "futures", "lost", "records", "verdicts")

    def __init__(self) -> None:
        self.futures: list[asyncio.Future[bool]] = []
        self.calls: list[Values] = []
        self.call_waiters: list[int] = []
        self.verdicts: list[Values] = []
        self.beats: list[tuple[int, Values]] = []
        self.records = 0
        self.lost: set[int] = set()
        """Waiters to be told False."""

    def add(self, records: Sequence[Record], future: asyncio.Future[bool]) -> None:
        waiter = len(self.futures)
        self.futures.append(future)
        self.records += len(records)
        for record in records:
            values = record.values()
            if isinstance(record, CallRecord):
                self.calls.append(values)
                self.call_waiters.append(waiter)
            elif isinstance(record, VerdictRecord):
                self.verdicts.append(values)
            else:
                self.beats.append((waiter, values))

    def clean(self) -> None:
        """Replace what SQLite cannot hold."""
        self.calls = [codec.clean_values(values) for values in self.calls]
        self.verdicts = [codec.clean_values(values) for values in self.verdicts]
        self.beats = [(waiter, codec.clean_values(values)) for waiter, values in self.beats]

    def reply_keys(self) -> str:
        """Run and sample of each reply of the model under test, as JSON."""
        return codec.dump([values[0:3:2] for values in self.calls if _is_reply(values)])

    def note_kept(self, kept: Sequence[Sequence[int]]) -> None:
        """Find the replies that were dropped. `kept` has (run, sample, session, attempt) of the replies that
        this transaction stored."""
        left = {tuple(key) for key in kept}
        for waiter, values in zip(self.call_waiters, self.calls, strict=True):
            if _is_reply(values):
                key = (values[0], values[2], values[1], values[_ATTEMPT])
                if key in left:
                    left.remove(key)
                else:
                    self.lost.add(waiter)

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


def _is_reply(values: Values) -> bool:
    return values[_OK] == 1 and values[3] is None


def call_statement(rows: Sequence[Values]) -> tuple[str, list[list[Any]]]:
    """Statement and parameters that store calls, for `executemany`."""
    size = _size(len(rows))
    return _statement("insert_calls", CALL_COLUMNS, size), _chunks(rows, size, len(CALL_COLUMNS))


def verdict_statement(rows: Sequence[Values]) -> tuple[str, list[list[Any]]]:
    size = _size(len(rows))
    return _statement("put_verdicts", VERDICT_COLUMNS, size), _chunks(rows, size, len(VERDICT_COLUMNS))


def _size(rows: int) -> int:
    return next((size for size in SIZES if size >= rows), SIZES[-1])


def _chunks(rows: Sequence[Values], size: int, width: int) -> list[list[Any]]:
    """The rows end to end, `size` of them a chunk; zeros fill the last one up (0 is no run's id)."""
    chunks = [list(chain.from_iterable(rows[at : at + size])) for at in range(0, len(rows), size)]
    chunks[-1].extend([0] * (size * width - len(chunks[-1])))
    return chunks


@cache
def _statement(name: str, columns: tuple[str, ...], size: int) -> str:
    row = f"({', '.join('?' * len(columns))})"
    return (
        query(name)
        .replace("/* columns */", ", ".join(columns))
        .replace("/* rows */", ", ".join([row] * size))
    )
