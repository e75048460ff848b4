"""Taking in the results of a batch that has ended, some at a time, each once whenever the process dies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from mmbu_async.endpoints.batches.calls import BatchClient
from mmbu_async.endpoints.batches.format import End, RemoteBatch, Result, number_of
from mmbu_async.endpoints.prices import Price
from mmbu_async.endpoints.retries import RetryPolicy, decide
from mmbu_async.model import FATAL_KINDS, Attempt, Completion, Failure, FailureKind, Timing
from mmbu_async.pipeline.batch_source import Source
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.store import (
    BatchClosed,
    BatchItem,
    BatchRecord,
    BatchState,
    CallRecord,
    Fate,
    ItemsClosed,
    OtherItemsClosed,
    Reader,
    VerdictRecord,
    Writer,
)

CHUNK = 256
"""Results stored in one transaction."""
EXPIRED = "the batch ended before the request's turn came (expired)"


@dataclass(slots=True)
class Fetched:
    """What came of a batch, of the results that were new."""

    useful: int = 0
    given_up: int = 0
    """Requests that are not asked again in this session, and gave nothing useful."""
    cost_usd: float = 0.0
    words: str = ""
    """Of the last answer that was not useful."""
    fatal: Failure | None = None
    """A failure that no other request will escape."""


@dataclass(slots=True, kw_only=True)
class _Taking:
    record: BatchRecord
    source: Source
    writer: Writer
    monitor: Monitor
    price: Price | None
    policy: RetryPolicy
    random: Random
    now: float
    fetched: Fetched

    async def take(self, results: Sequence[tuple[BatchItem, Result]]) -> None:
        """Calls, verdicts and the fates of their items, in one transaction."""
        records: list[CallRecord | VerdictRecord] = []
        fates: dict[Fate, list[int]] = {}
        back: list[tuple[BatchItem, bool]] = []
        for item, result in results:
            if result.end is End.CANCELLED:
                fate, tried = Fate.AGAIN, False
            else:
                found, fate = self._answer(item, result)
                records += found
                tried = True
            fates.setdefault(fate, []).append(item.number)
            if fate is Fate.AGAIN:
                back.append((item, tried))
        closed = [
            ItemsClosed(marker=self.record.marker, fate=fate, numbers=numbers)
            for fate, numbers in fates.items()
        ]
        await self.writer.write(*records, *closed)
        for item, tried in back:
            self.source.again(item, tried=tried)

    def _answer(self, item: BatchItem, result: Result) -> tuple[Sequence[CallRecord | VerdictRecord], Fate]:
        outcome = result.outcome
        if outcome is None:
            outcome = Failure(kind=FailureKind.TIMEOUT, message=EXPIRED)
        final = isinstance(outcome, Completion) or item.attempt >= self.policy.max_attempts
        if isinstance(outcome, Failure):
            self.fetched.words = outcome.message
            final = final or not decide(outcome, item.attempt, self.policy, self.random).again
            if outcome.kind in FATAL_KINDS:
                self.fetched.fatal = outcome
        started = self.record.sent_at or self.record.created_at
        attempt = Attempt(
            number=item.attempt,
            timing=Timing(started_at=started, total_s=max(0.0, self.now - started)),
            outcome=outcome,
            cost_usd=self._cost(outcome),
        )
        self.monitor.attempt(attempt, final=final)
        if attempt.cost_usd is not None:
            self.fetched.cost_usd += attempt.cost_usd
        kept = self.source.keep(item, attempt, final=final)
        self.fetched.useful += kept.useful
        self.fetched.given_up += not kept.useful and kept.fate is not Fate.AGAIN
        return kept.records, kept.fate

    def _cost(self, outcome: Completion | Failure) -> float | None:
        """Dollars; None: unknown. What failed or expired is not charged."""
        usage = outcome.usage
        if isinstance(outcome, Failure) and usage is None:
            return 0.0
        if self.price is None or usage is None or not usage.reported:
            return None
        return self.price.cost(usage)


async def fetch(
    remote: RemoteBatch,
    record: BatchRecord,
    *,
    calls: BatchClient,
    source: Source,
    reader: Reader,
    writer: Writer,
    monitor: Monitor,
    price: Price | None,
    policy: RetryPolicy,
    random: Random,
    now: float,
    complete: bool,
) -> Fetched | None:
    """Store every result that is not stored yet, and close the batch.

    None, with what came in stored, where fewer came than the provider says and `complete` asks for all.
    Raises BatchCallError where the download fails: the next look goes on where this one ended.
    """
    open_items = dict(await reader.open_batch_items(record.marker))
    fetched = Fetched()
    taking = _Taking(
        record=record,
        source=source,
        writer=writer,
        monitor=monitor,
        price=price,
        policy=policy,
        random=random,
        now=now,
        fetched=fetched,
    )
    seen = 0
    chunk: list[tuple[BatchItem, Result]] = []
    try:
        async for result in calls.results(remote):
            number = number_of(result.custom_id, record.marker)
            if number is None:
                continue
            seen += 1
            item = open_items.pop(number, None)
            if item is not None:
                chunk.append((item, result))
            if len(chunk) == CHUNK:
                ready, chunk = chunk, []
                await taking.take(ready)
    finally:
        if chunk:
            await taking.take(chunk)
    if complete and seen < remote.finished:
        return None
    await writer.write(
        OtherItemsClosed(marker=record.marker, fate=Fate.AGAIN),
        BatchClosed(marker=record.marker, state=BatchState.FETCHED, words="", at=now),
    )
    for item in open_items.values():
        source.again(item, tried=False)
    return fetched
