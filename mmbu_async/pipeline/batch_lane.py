"""One side of a run in batches: gather, hand in, look, fetch, until nothing is open.

    submitting -> submitted -> fetched
         |            \\-> refused: never begun, its rows go back
         \\-> lost: never arrived, its rows go back

A batch is stored with its rows before it is sent, and its name before it is looked at. What may have been
accepted is looked for until it is found, or has been missed twice with enough time between, and only then do
its rows go into another one: no row is bought twice, whenever the process dies.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from random import Random

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.batches.client import BatchCallError, BatchClient, Wanted
from mmbu_async.endpoints.batches.format import RemoteBatch
from mmbu_async.endpoints.batches.upload import TooLargeError, Upload
from mmbu_async.endpoints.prices import Price
from mmbu_async.endpoints.retries import RetryPolicy, decide
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.errors import EndpointDownError, EndpointError
from mmbu_async.model import FATAL_KINDS, TRANSIENT_KINDS, Attempt, Failure, FailureKind, Timing, Usage
from mmbu_async.pipeline.batch_fetch import Fetched, fetch
from mmbu_async.pipeline.batch_source import Draft, Source
from mmbu_async.pipeline.budget import Budget
from mmbu_async.pipeline.explain import explain
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.stop import Stop
from mmbu_async.store import (
    BatchBegun,
    BatchClosed,
    BatchItem,
    BatchItems,
    BatchRecord,
    BatchSent,
    BatchState,
    BatchStatus,
    Fate,
    ItemsClosed,
    OtherItemsClosed,
    Reader,
    Writer,
)

FIRST_LOOKS = 12
"""The first look at a batch comes after this part of `batch_poll`; each further wait is longer by a half."""
ALIKE = 10
"""Requests of which a batch must hold at least so many to say, by not one useful answer, that more of the
same makes no sense."""
QUEUE_CODES = frozenset({"token_limit_exceeded", "rate_limit_exceeded"})
"""The provider's queue is full: the same batch may go in later."""

log = logging.getLogger(__name__)


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
class Lane:
    """See above. One task; other lanes run beside it."""

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
    clock: Callable[[], float]
    """Unix seconds."""
    rest: Callable[[float], Awaitable[None]]
    """Sleeps; returns early when the run is to stop."""
    random: Random
    cancel: bool = False
    """Hand nothing in, call back what is out."""
    out: dict[str, Out] = field(default_factory=dict)
    _most: int = 0
    _full: bool = False
    """The provider's queue had no room at the last try."""
    _wait_s: float = 0.0
    _policy: RetryPolicy = field(init=False)

    def __post_init__(self) -> None:
        limit = self.calls.form.limits.requests
        self._most = min(limit, self.settings.batch_size or limit)
        self._policy = RetryPolicy(
            max_attempts=self.settings.max_attempts, max_time_s=self.settings.max_retry_time
        )

    # ------------------------------------------------------------ the lane

    async def run(self) -> None:
        """Until nothing is open, or the run is to stop: then what is out stays out and is found again."""
        await self._take_over()
        while not self.stop:
            sent = False
            if not self.cancel and not self.monitor.paused and (self._full or self.source.news()):
                sent = await self._gather()
            self._show()
            if self.stop:
                break
            if self.out or self._full or self.monitor.paused:
                await self._look_round(soon=sent)
            elif self.cancel or not (self.source.news() or await self.source.more()):
                break
        self._show()
        if self.out:
            log.info(
                "%s: %d batches stay with the provider, which goes on; a resume fetches them",
                self.source.label,
                len(self.out),
            )

    async def _take_over(self) -> None:
        """Batches of earlier sessions."""
        for record in await self.reader.open_batches(self.run_id):
            if record.judge_id != self.source.judge_id:
                continue
            if record.url != self.settings.url:
                self.stop.request(
                    EndpointDownError(
                        f"batches of this run are out at {record.url}, and the settings name "
                        f"{self.settings.url}: resume with {self.settings.flag('base_url')} {record.url} "
                        "until they are back."
                    )
                )
                return
            self.out[record.marker] = Out(record=record, held=record.worst_usd)
            self.budget.take_over(record.worst_usd)

    async def _look_round(self, *, soon: bool) -> None:
        first = self.poll_s / FIRST_LOOKS
        self._wait_s = first if soon or not self._wait_s else min(self.poll_s, self._wait_s * 1.5)
        await self.rest(self._wait_s)
        for out in list(self.out.values()):
            if self.stop:
                return
            try:
                await self._advance(out)
            except BatchCallError as error:
                self._troubled(error, out)
        if len(self.out) == 0:
            self._wait_s = 0.0

    def _troubled(self, error: BatchCallError, out: Out) -> None:
        failure = error.failure
        if failure.status == 404:
            self.stop.request(
                EndpointError(
                    f"{self.settings.url} does not know the batch {out.record.remote_id or 'API'} "
                    f"({failure.message}): the key may be another account's; `mmbu batches RUN --forget` "
                    "gives its rows back to be asked anew."
                )
            )
        elif failure.kind in FATAL_KINDS:
            self.stop.request(EndpointError(explain(failure, self.settings)))
        else:
            log.warning("%s: a look at a batch failed (%s)", self.source.label, failure.message)

    def _show(self) -> None:
        lines = []
        for out in self.out.values():
            record = out.record
            if record.state is BatchState.SUBMITTING:
                lines.append(f"batch of {record.requests:,}: its answer was lost, it is looked for")
            else:
                lines.append(f"batch of {record.requests:,}: {record.status}, {record.finished:,} done")
        self.monitor.batches[self.source.label] = tuple(lines)

    # ------------------------------------------------------------ handing in

    async def _gather(self) -> bool:
        """Put what is open into batches and hand them in; whether any went out."""
        self._full = False
        sent = False
        drafts = self.source.drafts()
        try:
            draft = await anext(drafts, None)
            while draft is not None and not self.stop and not self._full and not self.monitor.paused:
                draft, filled = await self._fill(draft, drafts)
                sent = sent or filled
        finally:
            await drafts.aclose()
        if draft is not None and not self.stop:
            # There is more, which waits for the queue or for money.
            self._full = True
        return sent

    async def _fill(self, draft: Draft | None, drafts: object) -> tuple[Draft | None, bool]:
        """One batch from this draft on; the first draft that is not in it, and whether it went out."""
        marker = f"mmbu{secrets.token_hex(10)}"
        items: list[BatchItem] = []
        held: float | None = 0.0
        limits = self.calls.form.limits
        with Upload(
            self.calls.form, marker, self.url, most_requests=self._most, most_bytes=limits.bytes
        ) as upload:
            while draft is not None and not self.stop:
                worst = self._worst(draft)
                if not self.budget.reserve(worst):
                    if not items and self.budget.give_up(worst):
                        return draft, False
                    self._full = True
                    break
                try:
                    number = upload.add(draft.body)
                except TooLargeError as error:
                    self.budget.release(worst)
                    await self._too_large(draft, str(error))
                    draft = await anext(drafts, None)  # type: ignore[call-overload]
                    continue
                if number is None:
                    self.budget.release(worst)
                    break
                items.append(draft.item(number))
                held = None if worst is None or held is None else held + worst
                draft = await anext(drafts, None)  # type: ignore[call-overload]
            if not items or self.stop:
                self.budget.release(held)
                return draft, False
            return draft, await self._submit(upload, items, held)

    def _worst(self, draft: Draft) -> float | None:
        if self.price is None:
            return None
        expected = self.estimator.expect(draft.raw_input)
        return self.price.cost(
            Usage(input_tokens=expected.input_tokens, output_tokens=expected.most_output_tokens)
        )

    async def _too_large(self, draft: Draft, words: str) -> None:
        """A row that no batch can hold."""
        await self._fail(draft.item(0), Failure(kind=FailureKind.BAD_REQUEST, message=words))

    async def _fail(self, item: BatchItem, failure: Failure, *closed: ItemsClosed) -> None:
        timing = Timing(started_at=self.clock(), total_s=0.0)
        attempt = Attempt(number=item.attempt, timing=timing, outcome=failure, cost_usd=0.0)
        kept = self.source.keep(item, attempt, final=True)
        await self.writer.write(*kept.records, *closed)

    async def _submit(self, upload: Upload, items: list[BatchItem], held: float | None) -> bool:
        now = self.clock()
        begun = BatchBegun(
            run_id=self.run_id,
            session_id=self.session_id,
            judge_id=self.source.judge_id,
            marker=upload.marker,
            url=self.settings.url,
            requests=len(items),
            bytes=upload.size,
            worst_usd=held,
            at=now,
        )
        # On the disk before a byte goes out: what may be under way is known, whenever this process dies.
        await self.writer.write(begun, BatchItems(marker=upload.marker, items=items))
        out = Out(record=_record(begun), held=held)
        self.out[upload.marker] = out
        self._show()
        for count in range(1, self._policy.max_attempts + 1):
            try:
                remote = await self.calls.submit(upload)
            except BatchCallError as error:
                if error.maybe_done:
                    log.warning("%s: the answer to a batch was lost (%s)", self.source.label, error)
                    return True
                last = error.failure
                again = decide(last, count, self._policy, self.random)
                if not again.again or count == self._policy.max_attempts or self.stop:
                    break
                if last.kind is FailureKind.RATE_LIMIT and len(self.out) > 1:
                    # The queue is full of our own: it empties while we look at them.
                    break
                await self.rest(again.wait_s)
                if self.stop:
                    break
            else:
                await self._sent(out, remote)
                return True
        await self._not_taken(out, last)
        return False

    async def _sent(self, out: Out, remote: RemoteBatch) -> None:
        """Its name is on the disk before anything else is done with it."""
        now = self.clock()
        await self.writer.write(
            BatchSent(marker=out.record.marker, remote_id=remote.id, status=remote.status, at=now)
        )
        out.record = replace(
            out.record, state=BatchState.SUBMITTED, remote_id=remote.id, status=remote.status, sent_at=now
        )
        out.missed_at = None

    async def _not_taken(self, out: Out, failure: Failure) -> None:
        """The provider refused to take the batch, or could not be reached."""
        await self._close(out, BatchState.REFUSED, failure.message, Fate.NEVER)
        if self.stop:
            return
        if failure.status in (404, 405):
            self.stop.request(
                EndpointError(
                    f"{self.settings.url} has no batch API ({failure.message}): "
                    f"give --no-{self.settings.flag('batch').lstrip('-')}, and each row is asked by itself."
                )
            )
        elif failure.kind in FATAL_KINDS:
            self.stop.request(EndpointError(explain(failure, self.settings)))
        elif failure.status == 413:
            await self._smaller(out, failure.message)
        elif failure.kind in TRANSIENT_KINDS and self.out:
            self._full = True
        else:
            self._down(f"does not take a batch ({failure.message})")

    async def _smaller(self, out: Out, words: str) -> None:
        """The same rows in batches of half the size."""
        if out.record.requests == 1:
            self._down(f"does not take a batch of a single request ({words})")
            return
        self._most = max(1, min(self._most, out.record.requests) // 2)
        log.warning("%s: batches are too large (%s); at most %d", self.source.label, words, self._most)

    def _down(self, words: str) -> None:
        settings = self.settings
        self.stop.request(
            EndpointDownError(f"{settings.model} at {settings.host} {words}; stopped, everything is kept.")
        )

    # ------------------------------------------------------------ what is out

    async def _advance(self, out: Out) -> None:
        if out.record.state is BatchState.SUBMITTING and not await self._found(out):
            return
        record = out.record
        if self.cancel and not out.called_back:
            out.called_back = True
            try:
                await self.calls.cancel(record.remote_id)
            except BatchCallError as error:
                # One that has ended meanwhile cannot be called back, and need not be.
                log.info("%s: a batch was not called back (%s)", self.source.label, error)
        remote = await self.calls.look(record.remote_id)
        if (remote.status, remote.finished) != (record.status, record.finished):
            out.record = replace(record, status=remote.status, finished=remote.finished)
            noted = BatchStatus(marker=record.marker, status=remote.status, finished=remote.finished)
            await self.writer.write(noted)
        if remote.refused:
            await self._never_begun(out, remote)
        elif remote.ended:
            self._ended(out, await self._fetch(out, remote))

    async def _found(self, out: Out) -> bool:
        """Look for a batch whose answer was lost; whether its name is known now."""
        record, now = out.record, self.clock()
        wanted = Wanted(
            marker=record.marker,
            requests=record.requests,
            bytes=record.bytes,
            since=record.created_at,
            known=await self.reader.known_remote_batches(record.url),
        )
        sighting = await self.calls.find(wanted)
        if sighting.batch is not None:
            await self._sent(out, sighting.batch)
            return True
        if sighting.suspects:
            # It may be one of them. Their ends will tell, and until then its rows are nobody's.
            out.missed_at = None
            return False
        if out.missed_at is None:
            out.missed_at = now
        if now - out.missed_at < self.poll_s:
            return False
        if sighting.file and not self.cancel:
            # The file arrived, and the word to begin did not.
            out.missed_at = None
            await self._sent(out, await self.calls.begin(sighting.file, record.marker))
            return True
        log.warning("%s: a batch of %d never arrived", self.source.label, record.requests)
        await self._close(out, BatchState.LOST, "it never reached the provider", Fate.NEVER)
        return False

    async def _never_begun(self, out: Out, remote: RemoteBatch) -> None:
        words = "; ".join(problem.message for problem in remote.problems[:3]) or remote.status
        blamed = {problem.line - 1: problem.message for problem in remote.problems if problem.line}
        if blamed:
            items = await self.reader.open_batch_items(out.record.marker)
            for number, message in blamed.items():
                if number in items:
                    failure = Failure(kind=FailureKind.BAD_REQUEST, message=message)
                    closed = ItemsClosed(marker=out.record.marker, fate=Fate.FAILED, numbers=(number,))
                    await self._fail(items[number], failure, closed)
        await self._close(out, BatchState.REFUSED, words, Fate.NEVER)
        if any(problem.code in QUEUE_CODES for problem in remote.problems):
            if not self.out:
                await self._smaller(out, words)
            self._full = True
        elif not blamed:
            self._down(f"refuses a batch ({words})")

    async def _fetch(self, out: Out, remote: RemoteBatch) -> Fetched | None:
        return await fetch(
            remote,
            out.record,
            calls=self.calls,
            source=self.source,
            reader=self.reader,
            writer=self.writer,
            monitor=self.monitor,
            price=self.price,
            policy=self._policy,
            random=self.random,
            now=self.clock(),
            complete=out.short < 2,
        )

    def _ended(self, out: Out, fetched: Fetched | None) -> None:
        """Every result is on the disk."""
        if fetched is None:
            out.short += 1
            return
        del self.out[out.record.marker]
        self.budget.release(out.held, fetched.cost_usd)
        self.source.turned_over()
        if fetched.fatal is not None:
            self.stop.request(EndpointError(explain(fetched.fatal, self.settings)))
        elif fetched.answered >= ALIKE and not fetched.useful:
            self._down(
                f"gave nothing useful for any of the {fetched.answered:,} requests of a batch "
                f"({fetched.words})"
            )

    async def _close(self, out: Out, state: BatchState, words: str, fate: Fate) -> None:
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


def _record(begun: BatchBegun) -> BatchRecord:
    return BatchRecord(
        marker=begun.marker,
        run_id=begun.run_id,
        judge_id=begun.judge_id,
        url=begun.url,
        state=BatchState.SUBMITTING,
        requests=begun.requests,
        bytes=begun.bytes,
        worst_usd=begun.worst_usd,
        created_at=begun.at,
        sent_at=None,
        ended_at=None,
        remote_id="",
        status="",
        finished=0,
        words="",
    )
