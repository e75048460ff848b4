"""What all parts of a lane share: whom it asks, what is out, and how that is noted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from random import Random

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.batches.calls import BatchClient
from mmbu_async.endpoints.batches.format import RemoteBatch
from mmbu_async.endpoints.prices import Price
from mmbu_async.endpoints.retries import RetryPolicy
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.errors import EndpointDownError
from mmbu_async.model import Attempt, Failure, Timing
from mmbu_async.pipeline.batch_source import Source
from mmbu_async.pipeline.budget import Budget
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.stop import Stop
from mmbu_async.store import (
    BatchClosed,
    BatchItem,
    BatchRecord,
    BatchSent,
    BatchState,
    Fate,
    ItemsClosed,
    OtherItemsClosed,
    Reader,
    Writer,
)


@dataclass(slots=True, kw_only=True)
class Out:
    """A batch that is out, or may be."""

    record: BatchRecord
    held: float | None
    """US dollars set aside for it."""
    missed_at: float | None = None
    """When it was first looked for in vain."""
    called_back: bool = False
    short: int = 0
    """Times its results were fewer than the provider said."""


@dataclass(slots=True, kw_only=True)
class BatchDesk:
    """One side of a run, and its batches that are out."""

    source: Source
    calls: BatchClient
    settings: CallSettings
    price: Price | None
    estimator: Estimator
    url: str
    """What each request is posted to, below the host."""
    run_id: int
    session_id: int
    reader: Reader
    writer: Writer
    budget: Budget
    monitor: Monitor
    stop: Stop
    poll_s: float
    """Seconds between two looks at a batch, at most."""
    clock: Callable[[], float]
    """Unix seconds."""
    rest: Callable[[float], Awaitable[None]]
    """Sleeps; returns early when the run is to stop."""
    random: Random
    cancel: bool = False
    """Hand nothing in, call back what is out."""
    out: dict[str, Out] = field(default_factory=dict)
    policy: RetryPolicy = field(init=False)

    def __post_init__(self) -> None:
        self.policy = RetryPolicy(
            max_attempts=self.settings.max_attempts, max_time_s=self.settings.max_retry_time
        )

    @property
    def alone(self) -> bool:
        """Nothing of this run is out, so that it is not ours that fills a queue."""
        others = (lines for side, lines in self.monitor.batches.items() if side != self.source.label)
        return not self.out and not any(others)

    def show(self) -> None:
        lines = []
        for out in self.out.values():
            record = out.record
            if record.state is BatchState.SUBMITTING:
                lines.append(f"batch of {record.requests:,}: its answer was lost, it is looked for")
            else:
                lines.append(f"batch of {record.requests:,}: {record.status}, {record.finished:,} done")
        self.monitor.batches[self.source.label] = tuple(lines)

    async def fail(self, item: BatchItem, failure: Failure, *closed: ItemsClosed) -> None:
        timing = Timing(started_at=self.clock(), total_s=0.0)
        attempt = Attempt(number=item.attempt, timing=timing, outcome=failure, cost_usd=0.0)
        kept = self.source.keep(item, attempt, final=True)
        await self.writer.write(*kept.records, *closed)

    async def sent(self, out: Out, remote: RemoteBatch) -> None:
        """Its name is on the disk before anything else is done with it."""
        now = self.clock()
        await self.writer.write(
            BatchSent(marker=out.record.marker, remote_id=remote.id, status=remote.status, at=now)
        )
        out.record = replace(
            out.record, state=BatchState.SUBMITTED, remote_id=remote.id, status=remote.status, sent_at=now
        )
        out.missed_at = None

    def down(self, words: str) -> None:
        settings = self.settings
        self.stop.request(
            EndpointDownError(f"{settings.model} at {settings.host} {words}; stopped, everything is kept.")
        )

    async def close(self, out: Out, state: BatchState, words: str, fate: Fate) -> None:
        """Nothing will come of it; its rows are free."""
        marker = out.record.marker
        items = await self.reader.open_batch_items(marker)
        await self.writer.write(
            OtherItemsClosed(marker=marker, fate=fate),
            BatchClosed(marker=marker, state=state, words=words, at=self.clock()),
        )
        self.out.pop(marker, None)
        self.budget.release(out.held)
        for item in items.values():
            self.source.again(item, tried=False)
