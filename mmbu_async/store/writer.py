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
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from mmbu_async.errors import StoreError
from mmbu_async.store.batches import Batch
from mmbu_async.store.calls import Record
from mmbu_async.store.connect import BUSY_TIMEOUT_S, AsyncConnection, Synchronous, named


class Writer:
    """The one way in which a running run writes. Made by `Writer.open`, one a process and store."""

    def __init__(self, connection: AsyncConnection, path: Path) -> None:
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

        opening = AsyncConnection.open(path, synchronous=synchronous, busy_timeout_s=busy_timeout_s)
        async with opening as connection:
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

        The future is set after the COMMIT: True, or False where the store has another reply for the row (the
        late one is not stored), or where a heartbeat was for a lease that is lost. The queue has no limit of
        its own: it is bounded by callers that wait for their acknowledgements.
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
                await self._connection.run_in_thread(batch.commit)
            except sqlite3.Error as error:
                self._stop(named(error, self._path), batch)
                return
            except BaseException as error:
                # Whatever ends this task, nobody may wait for ever.
                self._stop(
                    StoreError(f"{self._path}: the writer was ended ({error!r}); resume the run."), batch
                )
                raise
            self.transactions += 1
            self.dropped += batch.dropped
            self.written += batch.records - batch.dropped
            batch.acknowledge()

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
