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
from dataclasses import dataclass, replace

from mmbu_async.endpoints.batches.calls import BatchCallError, Wanted
from mmbu_async.endpoints.batches.format import RemoteBatch
from mmbu_async.errors import EndpointDownError, EndpointError
from mmbu_async.model import FATAL_KINDS, Failure, FailureKind
from mmbu_async.pipeline.batch_desk import BatchDesk, Out
from mmbu_async.pipeline.batch_fetch import Fetched, fetch
from mmbu_async.pipeline.batch_hand_in import HandIn
from mmbu_async.pipeline.explain import explain
from mmbu_async.store import BatchState, BatchStatus, Fate, ItemsClosed

FIRST_LOOKS = 12
"""The first look at a batch comes after this part of `batch_poll`; each further wait is longer by a half."""
ALIKE = 10
"""Requests given up: a batch of at least so many, and without one useful answer, says that more of the same
makes no sense."""
QUEUE_CODES = frozenset({"token_limit_exceeded", "rate_limit_exceeded"})
"""The provider's queue is full: the same batch may go in later."""

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Lane:
    """See above. One task; other lanes run beside it."""

    desk: BatchDesk
    hand_in: HandIn
    _wait_s: float = 0.0
    _silent_since: float | None = None
    """When the provider last began to answer no look."""

    async def run(self) -> None:
        """Until nothing is open, or the run is to stop: then what is out stays out and is found again."""
        await self._take_over()
        while not self.desk.stop:
            sent = False
            if (
                not self.desk.cancel
                and not self.desk.monitor.paused
                and (self.hand_in.full or self.desk.source.news())
            ):
                sent = await self.hand_in.gather()
            self.desk.show()
            if self.desk.stop:
                break
            if self.desk.out or self.hand_in.full or self.desk.monitor.paused:
                await self._look_round(soon=sent)
            elif self.desk.cancel or not (self.desk.source.news() or await self.desk.source.more()):
                break
        self.desk.show()
        if self.desk.out:
            count = len(self.desk.out)
            what = "1 batch stays" if count == 1 else f"{count} batches stay"
            log.info("%s: %s with the provider; a resume fetches what is done", self.desk.source.label, what)

    async def _take_over(self) -> None:
        """Batches of earlier sessions."""
        for record in await self.desk.reader.open_batches(self.desk.run_id):
            if record.judge_id != self.desk.source.judge_id:
                continue
            settings = self.desk.settings
            if record.url != settings.url:
                self.desk.stop.request(
                    EndpointDownError(
                        f"batches of this run are out at {record.url}, and the settings name {settings.url}: "
                        f"resume with {settings.flag('base_url')} {record.url} until they are back."
                    )
                )
                return
            self.desk.out[record.marker] = Out(record=record, held=record.worst_usd)
            self.desk.budget.take_over(record.worst_usd)

    async def _look_round(self, *, soon: bool) -> None:
        first = self.desk.poll_s / FIRST_LOOKS
        self._wait_s = first if soon or not self._wait_s else min(self.desk.poll_s, self._wait_s * 1.5)
        await self.desk.rest(self._wait_s)
        for out in list(self.desk.out.values()):
            if self.desk.stop:
                return
            try:
                await self._advance(out)
                self._silent_since = None
            except BatchCallError as error:
                self._troubled(error, out)
        if len(self.desk.out) == 0:
            self._wait_s = 0.0

    def _troubled(self, error: BatchCallError, out: Out) -> None:
        failure = error.failure
        if failure.status == 404:
            self.desk.stop.request(
                EndpointError(
                    f"{self.desk.settings.url} does not know the batch {out.record.remote_id or 'API'} "
                    f"({failure.message}): the key may be another account's; `mmbu batches RUN --forget` "
                    "gives its rows back to be asked anew."
                )
            )
        elif failure.kind in FATAL_KINDS:
            self.desk.stop.request(EndpointError(explain(failure, self.desk.settings)))
        else:
            log.warning("%s: a look at a batch failed (%s)", self.desk.source.label, failure.message)
            now = self.desk.clock()
            self._silent_since = self._silent_since or now
            if now - self._silent_since > self.desk.settings.max_retry_time:
                self.desk.down(f"cannot be asked about batches ({failure.message})")

    async def _advance(self, out: Out) -> None:
        if out.record.state is BatchState.SUBMITTING and not await self._found(out):
            return
        record = out.record
        if self.desk.cancel and not out.called_back:
            out.called_back = True
            try:
                await self.desk.calls.cancel(record.remote_id)
            except BatchCallError as error:
                # One that has ended meanwhile cannot be called back, and need not be.
                log.info("%s: a batch was not called back (%s)", self.desk.source.label, error)
        remote = await self.desk.calls.look(record.remote_id)
        if (remote.status, remote.finished) != (record.status, record.finished):
            out.record = replace(record, status=remote.status, finished=remote.finished)
            noted = BatchStatus(marker=record.marker, status=remote.status, finished=remote.finished)
            await self.desk.writer.write(noted)
        if remote.refused:
            await self._never_begun(out, remote)
        elif remote.ended:
            self._ended(out, await self._fetch(out, remote))

    async def _found(self, out: Out) -> bool:
        """Look for a batch whose answer was lost; whether its name is known now."""
        record, now = out.record, self.desk.clock()
        wanted = Wanted(
            marker=record.marker,
            requests=record.requests,
            bytes=record.bytes,
            since=record.created_at,
            known=await self.desk.reader.known_remote_batches(record.url),
        )
        sighting = await self.desk.calls.find(wanted)
        if sighting.batch is not None:
            await self.desk.sent(out, sighting.batch)
            return True
        if sighting.suspects:
            # It may be one of them. Their ends will tell, and until then its rows are nobody's.
            out.missed_at = None
            return False
        if out.missed_at is None:
            out.missed_at = now
        if now - out.missed_at < self.desk.poll_s:
            return False
        if sighting.file and not self.desk.cancel:
            # The file arrived, and the word to begin did not.
            out.missed_at = None
            await self.desk.sent(out, await self.desk.calls.begin(sighting.file, record.marker))
            return True
        log.warning("%s: a batch of %d never arrived", self.desk.source.label, record.requests)
        await self.desk.close(out, BatchState.LOST, "it never reached the provider", Fate.NEVER)
        return False

    async def _never_begun(self, out: Out, remote: RemoteBatch) -> None:
        words = "; ".join(problem.message for problem in remote.problems[:3]) or remote.status
        blamed = {problem.line - 1: problem.message for problem in remote.problems if problem.line}
        if blamed:
            items = await self.desk.reader.open_batch_items(out.record.marker)
            for number, message in blamed.items():
                if number in items:
                    failure = Failure(kind=FailureKind.BAD_REQUEST, message=message)
                    closed = ItemsClosed(marker=out.record.marker, fate=Fate.FAILED, numbers=(number,))
                    await self.desk.fail(items[number], failure, closed)
        await self.desk.close(out, BatchState.REFUSED, words, Fate.NEVER)
        if any(problem.code in QUEUE_CODES for problem in remote.problems):
            if self.desk.alone and out.record.requests > 1:
                await self.hand_in.smaller(out, words)
            self.hand_in.full = True
        elif not blamed:
            self.desk.down(f"refuses a batch ({words})")

    async def _fetch(self, out: Out, remote: RemoteBatch) -> Fetched | None:
        return await fetch(
            remote,
            out.record,
            calls=self.desk.calls,
            source=self.desk.source,
            reader=self.desk.reader,
            writer=self.desk.writer,
            monitor=self.desk.monitor,
            price=self.desk.price,
            policy=self.desk.policy,
            random=self.desk.random,
            now=self.desk.clock(),
            complete=out.short < 2,
        )

    def _ended(self, out: Out, fetched: Fetched | None) -> None:
        """Every result is on the disk."""
        if fetched is None:
            out.short += 1
            log.warning("%s: results are missing in a download; once more", self.desk.source.label)
            return
        del self.desk.out[out.record.marker]
        self.desk.budget.release(out.held, fetched.cost_usd)
        self.desk.source.turned_over()
        if fetched.fatal is not None:
            self.desk.stop.request(EndpointError(explain(fetched.fatal, self.desk.settings)))
        elif fetched.given_up >= ALIKE and not fetched.useful:
            self.desk.down(
                f"gave nothing useful for any of the {fetched.given_up:,} requests of a batch "
                f"({fetched.words})"
            )
