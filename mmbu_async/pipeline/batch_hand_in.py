"""Handing in: what is open goes into files under the provider's limits, is stored, and then sent."""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from mmbu_async.endpoints.batches.calls import BatchCallError
from mmbu_async.endpoints.batches.upload import TooLargeError, Upload
from mmbu_async.endpoints.retries import decide
from mmbu_async.errors import EndpointError
from mmbu_async.model import FATAL_KINDS, TRANSIENT_KINDS, Failure, FailureKind, Usage
from mmbu_async.pipeline.batch_desk import BatchDesk, Out
from mmbu_async.pipeline.batch_source import Draft
from mmbu_async.pipeline.explain import explain
from mmbu_async.store import BatchBegun, BatchItem, BatchItems, BatchRecord, BatchState, Fate

INPUT_MARGIN = 1.25
"""By which the input tokens of a request in a batch are taken to be more than expected: what one by one is
corrected after a few replies is out in thousands before the first is back."""

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class HandIn:
    """Makes batches of what a side has open."""

    desk: BatchDesk
    full: bool = False
    """The provider's queue, or the money, had no room at the last try."""
    _most: int = field(init=False)
    """Requests in one batch."""

    def __post_init__(self) -> None:
        limit = self.desk.calls.form.limits.requests
        self._most = min(limit, self.desk.settings.batch_size or limit)

    async def gather(self) -> bool:
        """Put what is open into batches and hand them in; whether any went out."""
        self.full = False
        sent = False
        drafts = self.desk.source.drafts()
        try:
            draft = await anext(drafts, None)
            while draft is not None and not self.desk.stop and not self.full and not self.desk.monitor.paused:
                draft, filled = await self._fill(draft, drafts)
                sent = sent or filled
        finally:
            await drafts.aclose()
        if draft is not None and not self.desk.stop:
            # There is more, which waits for the queue or for money.
            self.full = True
        return sent

    async def _fill(
        self, draft: Draft | None, drafts: AsyncGenerator[Draft, None]
    ) -> tuple[Draft | None, bool]:
        """One batch from this draft on; the first draft that is not in it, and whether it went out."""
        marker = f"mmbu{secrets.token_hex(10)}"
        items: list[BatchItem] = []
        held: float | None = 0.0
        limits = self.desk.calls.form.limits
        with Upload(
            self.desk.calls.form, marker, self.desk.url, most_requests=self._most, most_bytes=limits.bytes
        ) as upload:
            while draft is not None and not self.desk.stop:
                worst = self._worst(draft)
                if not self.desk.budget.reserve(worst):
                    if not items and self.desk.budget.give_up(worst):
                        return draft, False
                    self.full = True
                    break
                try:
                    number = upload.add(draft.body)
                except TooLargeError as error:
                    self.desk.budget.release(worst)
                    await self._too_large(draft, str(error))
                    draft = await anext(drafts, None)
                    continue
                if number is None:
                    self.desk.budget.release(worst)
                    break
                items.append(draft.item(number))
                held = None if worst is None or held is None else held + worst
                draft = await anext(drafts, None)
            if not items or self.desk.stop:
                self.desk.budget.release(held)
                return draft, False
            return draft, await self._submit(upload, items, held)

    def _worst(self, draft: Draft) -> float | None:
        if self.desk.price is None:
            return None
        expected = self.desk.estimator.expect(draft.raw_input)
        given = math.ceil(expected.input_tokens * INPUT_MARGIN)
        return self.desk.price.cost(Usage(input_tokens=given, output_tokens=expected.most_output_tokens))

    async def _too_large(self, draft: Draft, words: str) -> None:
        """A row that no batch can hold."""
        await self.desk.fail(draft.item(0), Failure(kind=FailureKind.BAD_REQUEST, message=words))

    async def _submit(self, upload: Upload, items: list[BatchItem], held: float | None) -> bool:
        now = self.desk.clock()
        begun = BatchBegun(
            run_id=self.desk.run_id,
            session_id=self.desk.session_id,
            judge_id=self.desk.source.judge_id,
            marker=upload.marker,
            url=self.desk.settings.url,
            requests=len(items),
            bytes=upload.size,
            worst_usd=held,
            at=now,
        )
        # On the disk before a byte goes out: what may be under way is known, whenever this process dies.
        await self.desk.writer.write(begun, BatchItems(marker=upload.marker, items=items))
        out = Out(record=_record(begun), held=held)
        self.desk.out[upload.marker] = out
        self.desk.show()
        for count in range(1, self.desk.policy.max_attempts + 1):
            try:
                remote = await self.desk.calls.submit(upload)
            except BatchCallError as error:
                if error.maybe_done:
                    log.warning("%s: the answer to a batch was lost (%s)", self.desk.source.label, error)
                    return True
                last = error.failure
                again = decide(last, count, self.desk.policy, self.desk.random)
                if not again.again or count == self.desk.policy.max_attempts or self.desk.stop:
                    break
                if last.kind is FailureKind.RATE_LIMIT:
                    # The queue is full: it empties while what is out is looked at.
                    break
                await self.desk.rest(again.wait_s)
                if self.desk.stop:
                    break
            else:
                await self.desk.sent(out, remote)
                return True
        await self._not_taken(out, last)
        return False

    async def _not_taken(self, out: Out, failure: Failure) -> None:
        """The provider refused to take the batch, or could not be reached."""
        await self.desk.close(out, BatchState.REFUSED, failure.message, Fate.NEVER)
        if self.desk.stop:
            return
        settings = self.desk.settings
        if failure.status in (404, 405):
            self.desk.stop.request(
                EndpointError(
                    f"{settings.url} has no batch API ({failure.message}): turn {settings.flag('batch')} "
                    "off, and each row is asked by itself."
                )
            )
        elif failure.kind in FATAL_KINDS:
            self.desk.stop.request(EndpointError(explain(failure, settings)))
        elif failure.status == 413:
            await self.smaller(out, failure.message)
        elif failure.kind is FailureKind.RATE_LIMIT:
            self.full = True
            if self.desk.alone and out.record.requests > 1:
                await self.smaller(out, failure.message)
        elif failure.kind in TRANSIENT_KINDS and self.desk.out:
            self.full = True
        else:
            self.desk.down(f"does not take a batch ({failure.message})")

    async def smaller(self, out: Out, words: str) -> None:
        """The same rows in batches of half the size."""
        if out.record.requests == 1:
            self.desk.down(f"does not take a batch of a single request ({words})")
            return
        self._most = max(1, min(self._most, out.record.requests) // 2)
        log.warning("%s: batches are too large (%s); at most %d", self.desk.source.label, words, self._most)


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
