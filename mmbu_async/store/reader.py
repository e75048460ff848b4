"""Pages of work for the engine, read over a connection of their own beside the writer.

Each page is one short read: no cursor stays open between pages, so that SQLite can empty its write-ahead
log, and memory is that of one page whatever the size of the run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from mmbu_async.model import Completion, Json
from mmbu_async.store import batch_jobs, codec
from mmbu_async.store.batch_jobs import BatchItem, BatchRecord
from mmbu_async.store.connect import BUSY_TIMEOUT_S, AsyncConnection, named
from mmbu_async.store.control import Control, control_from
from mmbu_async.store.records import StoredSample
from mmbu_async.store.sql import query

SHAS_A_QUERY = 500
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowToJudge:
    """A row with a reply, to be judged."""

    stored: StoredSample
    completion: Completion
    usable: dict[int, bytes | None]
    """Judges, of those asked for, that gave a usable verdict, and the SHA-256 of the prompt it answers."""


class Reader:
    """Reads of a running run. Made by `Reader.open`."""

    def __init__(self, connection: AsyncConnection, path: Path) -> None:
        self._connection = connection
        self._path = path

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> AsyncIterator[Self]:
        """Open a store that exists."""

        async with AsyncConnection.open(path, busy_timeout_s=busy_timeout_s) as connection:
            yield cls(connection, path)

    async def pending(
        self, run_id: int, after_position: int, n: int, *, skip_failed_since_session: int | None = None
    ) -> list[StoredSample]:
        """The next `n` selected rows without a reply, in order of position; begin with `after_position` -1.
        Rows that failed for good in session `skip_failed_since_session` or a later one are left out."""
        rows = await self._page(
            query("pending"),
            {"run": run_id, "after": after_position, "n": n, "since": skip_failed_since_session},
        )
        return [_stored(row) for row in rows]

    async def to_judge(
        self,
        run_id: int,
        judge_ids: Sequence[int],
        after_position: int,
        n: int,
        *,
        judged: bool = False,
        before_session: int | None = None,
    ) -> list[RowToJudge]:
        """The next `n` rows with a reply and no usable verdict of one of these judges, in order of position;
        begin with `after_position` -1. `judged` adds the rows that have all, for a caller who finds out
        whether they answer the prompt of today. `before_session` leaves out replies of that
        session and later ones: those are on their way to the judge already."""
        rows = await self._page(
            query("to_judge"),
            {
                "run": run_id,
                "judges": codec.dump(judge_ids),
                "after": after_position,
                "n": n,
                "judged": judged,
                "before": before_session,
            },
        )
        end = 1 + codec.SAMPLE_WIDTH + codec.COMPLETION_WIDTH
        return [
            RowToJudge(
                stored=_stored(row[: 1 + codec.SAMPLE_WIDTH]),
                completion=codec.completion_from(row[1 + codec.SAMPLE_WIDTH : end]),
                usable={int(judge): bytes.fromhex(sha) or None for judge, sha in row[end].items()},
            )
            for row in rows
        ]

    async def judge_replies(self, judge_id: int, shas: Sequence[bytes]) -> dict[bytes, list[str]]:
        """Replies that this judge has given to these filled prompts, in any run of the store, oldest first.
        Prompts that it has never answered are absent."""
        found: dict[bytes, list[str]] = {}
        for at in range(0, len(shas), SHAS_A_QUERY):
            some = shas[at : at + SHAS_A_QUERY]
            sql = query("judge_replies").replace("/* shas */", ", ".join("?" * len(some)))
            for sha, text in await self._page(sql, (judge_id, *some)):
                found.setdefault(bytes.fromhex(sha), []).append(text)
        return found

    async def open_batches(self, run_id: int) -> list[BatchRecord]:
        """Batches of a run of which more is to come, oldest first."""
        return await self._read(lambda connection: batch_jobs.batches(connection, run_id, only_open=True))

    async def open_batch_items(self, marker: str) -> Mapping[int, BatchItem]:
        """Number -> item, of those of a batch whose fate is not known."""
        return await self._read(lambda connection: batch_jobs.open_items(connection, marker))

    async def open_batch_shas(self, run_id: int, judge_id: int) -> set[str]:
        """Filled prompts, by their SHA-256, that a judge is being asked in open batches of a run."""
        return await self._read(lambda connection: batch_jobs.open_shas(connection, run_id, judge_id))

    async def known_remote_batches(self, url: str) -> frozenset[str]:
        """The names that the provider at an address has given to batches of this store."""
        return await self._read(lambda connection: batch_jobs.known_remote(connection, url))

    async def control(self, run_id: int) -> Control:
        """What is asked of the process at work on a run."""
        return control_from(await self._page(query("control_page"), {"run": run_id}))

    async def _read(self, look: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await self._connection.run_in_thread(look)
        except sqlite3.Error as error:
            raise named(error, self._path) from error

    async def _page(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any]) -> Json:
        try:
            found = await self._connection.execute_fetchall(sql, parameters)
        except sqlite3.Error as error:
            raise named(error, self._path) from error
        return codec.load(next(iter(found))[0])


def _stored(values: Sequence[Any]) -> StoredSample:
    sample, family = codec.sample_from(values[1:])
    return StoredSample(key=values[0], sample=sample, family=family)
