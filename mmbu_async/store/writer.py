"""Group commit: one task over one connection takes all that is queued, commits once, acknowledges after.

There is no window to wait for: while one transaction is being made durable the next one's records gather,
so that transactions grow with the load by themselves. A record is acknowledged when, and only when, the
COMMIT that holds it has returned. A waiter that is cancelled loses its acknowledgement, not its record.
A transaction that fails (disk full, locked, failing disk) ends the writer: all that wait, and all that come
later, get the same named error, and what was acknowledged before is in the file.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

import aiosqlite

from mmbu_async.errors import StoreError
from mmbu_async.store.batches import Batch, call_statement, verdict_statement
from mmbu_async.store.calls import Record
from mmbu_async.store.codec import load
from mmbu_async.store.connect import BUSY_TIMEOUT_S, Synchronous, connect, named
from mmbu_async.store.sql import query


class Writer:
    """The one way in which a running run writes. Made by `Writer.open`, one a process and store."""

    def __init__(self, connection: aiosqlite.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._batch = Batch()
        self._wake = asyncio.Event()
        self._closing = False
        self._error: StoreError | None = None
        self.written = 0
        """Records acknowledged as stored."""
        self.dropped = 0
        """Late duplicates of a reply, not stored."""
        self.transactions = 0

    @classmethod
    @asynccontextmanager
    async def open(
        cls, path: Path, *, synchronous: Synchronous = "full", busy_timeout_s: float = BUSY_TIMEOUT_S
    ) -> AsyncIterator[Self]:
        """Open a store that exists. On the way out everything posted is written first; where the writer has
        failed its error is raised then, unless another one is already under way."""

        def connector() -> sqlite3.Connection:
            return connect(
                path,
                create=False,
                synchronous=synchronous,
                busy_timeout_s=busy_timeout_s,
                isolation="IMMEDIATE",
            )

        async with aiosqlite.Connection(connector, iter_chunk_size=64) as connection:
            writer = cls(connection, path)
            task = asyncio.create_task(writer._run(), name="store writer")
            try:
                yield writer
            finally:
                await writer._drain(task)
            if writer._error is not None:
                raise writer._error

    @property
    def error(self) -> StoreError | None:
        """Why the writer has stopped; None while it works."""
        return self._error

    def post(self, *records: Record) -> asyncio.Future[bool]:
        """Queue records for one transaction, without waiting.

        The future is set after the COMMIT: True, or False where a record was a late duplicate of a reply (it
        is not stored) or a heartbeat for a lease that is lost. The queue has no limit of its own: it is
        bounded by callers that wait for their acknowledgements.
        """
        if self._error is not None:
            raise self._error
        if self._closing:
            raise StoreError(f"{self._path}: the writer is closed and can store nothing more.")
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._batch.add(records, future)
        self._wake.set()
        return future

    async def write(self, *records: Record) -> bool:
        """Store records in one transaction; returns after its COMMIT, with the meaning of `post`."""
        return await self.post(*records)

    async def _run(self) -> None:
        while not (self._closing and not self._batch.futures):
            await self._wake.wait()
            self._wake.clear()
            batch, self._batch = self._batch, Batch()
            if not batch.futures:
                continue
            try:
                await self._commit(batch)
            except (sqlite3.Error, StoreError) as error:
                self._stop(named(error, self._path) if isinstance(error, sqlite3.Error) else error, batch)
                with suppress(sqlite3.Error):
                    await self._connection.rollback()
                return
            except BaseException as error:
                # Whatever ends this task, nobody may wait for ever.
                self._stop(
                    StoreError(f"{self._path}: the writer was ended ({error!r}); resume the run."), batch
                )
                raise
            batch.acknowledge()

    async def _commit(self, batch: Batch) -> None:
        """One transaction. It is opened by its first change, with the write lock taken at once."""
        try:
            inserted = await self._insert(batch)
        except (UnicodeEncodeError, OverflowError):
            await self._connection.rollback()
            batch.clean()
            inserted = await self._insert(batch)
        dropped = len(batch.calls) - inserted
        if dropped:
            found = await self._connection.execute_fetchall(
                query("replies_kept"), {"keys": batch.reply_keys(), "inserted": inserted}
            )
            batch.note_kept(load(next(iter(found))[0]))
        await self._connection.commit()
        self.transactions += 1
        self.dropped += dropped
        self.written += batch.records - dropped

    async def _insert(self, batch: Batch) -> int:
        """How many of the calls were stored; the others were late duplicates of a reply."""
        inserted = 0
        if batch.calls:
            inserted = (await self._connection.executemany(*call_statement(batch.calls))).rowcount
        if batch.verdicts:
            await self._connection.executemany(*verdict_statement(batch.verdicts))
        for waiter, values in batch.beats:
            if (await self._connection.execute(query("beat"), values)).rowcount == 0:
                batch.lost.add(waiter)
        return inserted

    def _stop(self, error: StoreError, batch: Batch) -> None:
        self._error = error
        batch.fail(error)
        self._batch.fail(error)

    async def _drain(self, task: asyncio.Task[None]) -> None:
        """Let the task write what is queued. A cancellation waits for that: it is a matter of milliseconds,
        and what was paid for must be kept."""
        self._closing = True
        self._wake.set()
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        task.result()
