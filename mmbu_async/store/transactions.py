"""Statements that belong together."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from mmbu_async.store.codec import clean_values


@contextmanager
def transaction(
    connection: sqlite3.Connection, kind: Literal["DEFERRED", "IMMEDIATE", "EXCLUSIVE"] = "IMMEDIATE"
) -> Iterator[None]:
    """All or nothing. Takes the write lock at once, so that it never fails half-way for want of it; of kind
    "DEFERRED" it takes the lock with the first change to the file."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After some errors (a full disk) SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def insert_page(connection: sqlite3.Connection, sql: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """Insert rows into a temporary table, all or none; returns how many were. Nothing else is locked."""
    before = connection.total_changes
    try:
        with transaction(connection, "DEFERRED"):
            connection.executemany(sql, rows)
    except (UnicodeEncodeError, OverflowError):
        # The count includes what was rolled back.
        before = connection.total_changes
        with transaction(connection, "DEFERRED"):
            connection.executemany(sql, map(clean_values, rows))
    return connection.total_changes - before
