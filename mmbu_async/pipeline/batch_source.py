"""What is asked in batches, and what is kept of the answers: the seam between a lane and its side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mmbu_async.model import Attempt
from mmbu_async.store import BatchItem, CallRecord, Fate, VerdictRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A request that is to go into a batch."""

    key: int
    """Of the row."""
    row_id: str
    body: bytes
    raw_input: int
    """Input tokens by the rules, uncorrected."""
    attempt: int
    prompt_sha: str = ""
    image_scale: float = 1.0
    image_sha256: str = ""
    image_note: str = ""

    def item(self, number: int) -> BatchItem:
        return BatchItem(
            number=number,
            sample_key=self.key,
            attempt=self.attempt,
            prompt_sha=self.prompt_sha,
            raw_input=self.raw_input,
            image_scale=self.image_scale,
            image_sha256=self.image_sha256,
            image_note=self.image_note,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What one answer comes to."""

    records: Sequence[CallRecord | VerdictRecord]
    fate: Fate
    useful: bool
    """Whether it is what was asked for: a reply, or a usable verdict."""


class Source(Protocol):
    """One side of a run: the model under test, or a judge."""

    @property
    def label(self) -> str:
        """What it is called where people look."""

    @property
    def judge_id(self) -> int | None:
        """None: the model under test."""

    def news(self) -> bool:
        """Whether there may be something to ask that there was not when `drafts` was last run through."""

    def drafts(self) -> AsyncGenerator[Draft, None]:
        """What is to be asked now."""

    async def more(self) -> bool:
        """Wait for news, with nothing out; False: none will come."""

    def keep(self, item: BatchItem, attempt: Attempt, *, final: bool) -> Kept:
        """An answer, good or bad; `final`: it is not asked again in this session."""

    def again(self, item: BatchItem, *, tried: bool) -> None:
        """A request goes back to the queue; `tried`: that counts as an attempt."""

    def turned_over(self) -> None:
        """What a batch gave is on the disk."""


@dataclass(slots=True)
class Feed:
    """Tells the judges' lanes of replies that the model's lane has stored."""

    version: int = 0
    over: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        self.version += 1
        self._wake()

    def close(self) -> None:
        self.over = True
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def after(self, version: int) -> bool:
        """Wait until there is a newer version; False: there will be none."""
        while self.version <= version and not self.over:
            await self._changed.wait()
        return self.version > version
