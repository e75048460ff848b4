"""Batches that went, or were about to go, to a provider's batch API.

A batch stands here with its exact rows before a byte of it is sent, under a marker that goes along with it:
whenever the process dies, the next one knows what may be on its way, and finds it again by the marker. An
item is open until its fate is known; a row with an open item is nobody else's to ask.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from mmbu_async.store import codec
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import transaction


class BatchState(StrEnum):
    """Where a batch stands, as far as this store knows."""

    SUBMITTING = "submitting"
    """It may have been sent, and its answer is not known."""
    SUBMITTED = "submitted"
    """The provider has it under its `remote_id`."""
    FETCHED = "fetched"
    """Every result is stored."""
    REFUSED = "refused"
    """The provider would not have it: nothing was asked."""
    LOST = "lost"
    """It never reached the provider: nothing was asked."""


class Fate(StrEnum):
    """What became of one request of a batch."""

    REPLY = "reply"
    FAILED = "failed"
    """It is given up for the session."""
    AGAIN = "again"
    """It goes back to the queue: expired, cancelled, or failed in a way that waiting may mend."""
    NEVER = "never"
    """Its batch was refused or lost, so that nobody has seen it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchItem:
    """One request."""

    number: int
    """Its place in the batch; with the marker it makes the custom id."""
    sample_key: int
    attempt: int
    """From 1: how often the row has been in a batch, as far as this session knows."""
    prompt_sha: str = ""
    """SHA-256 of the filled prompt of a judge, hexadecimal."""
    raw_input: int = 0
    """Input tokens by the rules."""
    image_scale: float = 1.0
    image_sha256: str = ""
    image_note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRecord:
    """One batch. Times are Unix seconds."""

    marker: str
    run_id: int
    judge_id: int | None
    """None: of the model under test."""
    url: str
    """Base address of the provider that it went to."""
    state: BatchState
    requests: int
    bytes: int
    worst_usd: float | None
    """The most that it can cost; None: no price is known."""
    created_at: float
    """When it was stored, just before it was sent."""
    sent_at: float | None
    ended_at: float | None
    """When the last result was stored, or its end was found out."""
    remote_id: str
    """The provider's name for it; '' as long as that is not known."""
    status: str
    """The provider's own word for where it stands."""
    finished: int
    """Requests that the provider says are done with."""
    words: str
    """Why it came to nothing."""

    @property
    def open(self) -> bool:
        return self.state in (BatchState.SUBMITTING, BatchState.SUBMITTED)


# ---------------------------------------------------------------- what a running engine writes


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchBegun:
    """A batch is about to be sent. Post it together with its BatchItems."""

    statement: ClassVar[str] = "begin_batch"

    run_id: int
    session_id: int
    judge_id: int | None
    marker: str
    url: str
    requests: int
    bytes: int
    worst_usd: float | None
    at: float

    def values(self) -> tuple[Any, ...]:
        return (
            *(self.run_id, self.session_id, self.judge_id, self.marker, self.url),
            *(self.requests, self.bytes, self.worst_usd, self.at),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchItems:
    """The rows of a batch, in one statement."""

    statement: ClassVar[str] = "begin_batch_items"

    marker: str
    items: Sequence[BatchItem]

    def values(self) -> tuple[Any, ...]:
        rows = [
            (
                *(item.number, item.sample_key, item.attempt, item.prompt_sha, item.raw_input),
                *(item.image_scale, item.image_sha256, item.image_note),
            )
            for item in self.items
        ]
        return (self.marker, codec.dump(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSent:
    """The provider has taken a batch."""

    statement: ClassVar[str] = "note_batch_sent"

    marker: str
    remote_id: str
    status: str
    at: float

    def values(self) -> tuple[Any, ...]:
        return (codec.clean(self.remote_id), codec.clean(self.status), self.at, self.marker)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """What the provider says of a batch. False acknowledges what was known already."""

    statement: ClassVar[str] = "note_batch_status"

    marker: str
    status: str
    finished: int

    def values(self) -> tuple[Any, ...]:
        status = codec.clean(self.status)
        return (status, self.finished, self.marker, status, self.finished)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchClosed:
    """Nothing more will come of a batch."""

    statement: ClassVar[str] = "close_batch"

    marker: str
    state: BatchState
    words: str
    at: float

    def values(self) -> tuple[Any, ...]:
        return (self.state.value, codec.clean(self.words), self.at, self.marker)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsClosed:
    """The fate of some items; stored in one transaction with the calls that they are."""

    statement: ClassVar[str] = "close_batch_items"

    marker: str
    fate: Fate
    numbers: Sequence[int]

    def values(self) -> tuple[Any, ...]:
        return (self.marker, self.fate.value, codec.dump(list(self.numbers)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherItemsClosed:
    """The fate of all items of which nothing was heard."""

    statement: ClassVar[str] = "close_other_items"

    marker: str
    fate: Fate

    def values(self) -> tuple[Any, ...]:
        return (self.marker, self.fate.value)


BatchFact = BatchBegun | BatchItems | BatchSent | BatchStatus | BatchClosed | ItemsClosed | OtherItemsClosed


# ---------------------------------------------------------------- what is read


def batches(connection: sqlite3.Connection, run_id: int, *, only_open: bool = False) -> list[BatchRecord]:
    """Oldest first."""
    found = connection.execute(query("batches_of_run"), {"run": run_id, "open": int(only_open)})
    return [
        BatchRecord(
            marker=row[0],
            run_id=row[1],
            judge_id=row[2],
            url=row[3],
            state=BatchState(row[4]),
            requests=row[5],
            bytes=row[6],
            worst_usd=row[7],
            created_at=row[8],
            sent_at=row[9],
            ended_at=row[10],
            remote_id=row[11],
            status=row[12],
            finished=row[13],
            words=row[14],
        )
        for row in found
    ]


def open_by_run(connection: sqlite3.Connection) -> dict[int, int]:
    """Run -> batches that are out, where there are any."""
    return dict(connection.execute(query("open_batches_by_run")).fetchall())


def known_remote(connection: sqlite3.Connection, url: str) -> frozenset[str]:
    """The provider's names of all batches of this store that are known to be somebody's."""
    return frozenset(name for (name,) in connection.execute(query("known_remote_batches"), {"url": url}))


def open_items(connection: sqlite3.Connection, marker: str) -> Mapping[int, BatchItem]:
    """Number -> item, of those whose fate is not known."""
    found = connection.execute(query("open_batch_items"), {"marker": marker})
    return {
        row[0]: BatchItem(
            number=row[0],
            sample_key=row[1],
            attempt=row[2],
            prompt_sha=row[3] or "",
            raw_input=row[4],
            image_scale=row[5],
            image_sha256=row[6] or "",
            image_note=row[7],
        )
        for row in found
    }


def open_shas(connection: sqlite3.Connection, run_id: int, judge_id: int) -> set[str]:
    """Filled prompts, by their SHA-256, that a judge is being asked in open batches of a run."""
    found = connection.execute(query("open_batch_shas"), {"run": run_id, "judge": judge_id})
    return {sha for (sha,) in found}


def forget(connection: sqlite3.Connection, run_id: int, now: float) -> int:
    """Close the batches of a run that are out, as if they had never arrived; returns how many they were."""
    with transaction(connection):
        connection.execute(query("forget_open_items"), {"run": run_id})
        return connection.execute(query("forget_open_batches"), {"run": run_id, "now": now}).rowcount
