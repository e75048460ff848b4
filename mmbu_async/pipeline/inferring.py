"""The stages before the judge: read pages of open rows, prepare them, ask the model."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass

from mmbu_async.endpoints.client import EndpointClient
from mmbu_async.endpoints.gate import Draining
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.errors import EndpointDownError, EndpointError
from mmbu_async.model import Attempt, Completion, Failure, FailureKind, Timing
from mmbu_async.pipeline.breaker import Breaker, Step
from mmbu_async.pipeline.channel import Channel
from mmbu_async.pipeline.explain import concerns_every_row, explain
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.panel import Panel
from mmbu_async.pipeline.placement import BrokenRow, Placement, ReadyRow
from mmbu_async.pipeline.records import Recorder
from mmbu_async.pipeline.stop import Stop
from mmbu_async.store import Reader, StoredSample

PAGE = 64
"""Rows read from the store at once."""
BATCH = 8
"""Rows prepared in one hop to a thread: a hop costs as much CPU as preparing a small image."""

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class InferStage:
    """Everything between the store's open rows and the judges' queues."""

    run_id: int
    client: EndpointClient
    reader: Reader
    recorder: Recorder
    placement: Placement
    estimator: Estimator
    breaker: Breaker
    monitor: Monitor
    stop: Stop
    panel: Panel
    pages: Channel[StoredSample]
    ready: Channel[ReadyRow]

    async def read(self) -> None:
        """Page through the rows that have no reply yet, each once in this session."""
        position = -1
        while not self.stop:
            page = await self.reader.pending(
                self.run_id, position, PAGE, skip_failed_since_session=self.recorder.session_id
            )
            if not page:
                break
            for row in page:
                await self.pages.put(row)
            position = page[-1].sample.position
        self.pages.close(discard=bool(self.stop))

    async def prepare(self) -> None:
        """One of a few workers; rows may overtake each other."""
        while rows := await self.pages.get_many(BATCH):
            for prepared in await self.placement.prepare(rows):
                if isinstance(prepared, BrokenRow):
                    await self.broken(prepared)
                else:
                    await self.ready.put(prepared)

    async def infer(self) -> None:
        """One of many workers: one row at a time from request to stored reply."""
        async for row in self.ready:
            await self.ask(row)

    async def ask(self, row: ReadyRow, *, patience_s: float = math.inf) -> Completion | Failure | None:
        """Ask the model about one row and hand its reply on; None when the run is draining."""
        sample = row.row.sample

        async def keep(attempt: Attempt, final: bool) -> None:
            self.monitor.attempt(attempt, final=final)
            stored = self.recorder.reply(row, attempt, final=final)
            if isinstance(attempt.outcome, Completion):
                await stored
            elif final:
                # First stop what others would run into; then wait, so that the next page of open rows
                # knows of this one.
                self._consider(attempt.outcome)
                await stored

        self.monitor.under_way[sample.id] = time.monotonic()
        try:
            expected = self.estimator.expect(row.raw_input)
            outcome = await self.client.call(row.body, expected, keep, patience_s=patience_s)
        except Draining:
            return None
        finally:
            del self.monitor.under_way[sample.id]
            self.placement.forget(row)
        if isinstance(outcome, Completion):
            self.breaker.success()
            self.estimator.learn(row.raw_input, outcome)
            self.monitor.replied += 1
            await self.panel.offer(row.row, outcome)
        else:
            self.monitor.failed += 1
            log.warning("no reply: %s", outcome.message, extra={"row": sample.id, "kind": outcome.kind.value})
        return outcome

    def _consider(self, failure: Failure) -> None:
        """Does this failure speak about more than its row?"""
        settings = self.client.settings
        if concerns_every_row(failure, settings, proven=self.breaker.proven):
            self.stop.request(EndpointError(explain(failure, settings)))
            return
        match self.breaker.failure(failure, time.monotonic()):
            case Step.PAUSE:
                log.warning("many rows failed alike; pausing %g s", self.breaker.pause_s)
                self.client.gate.pause(self.breaker.pause_s)
            case Step.STOP:
                self.stop.request(
                    EndpointDownError(
                        f"{settings.model} at {settings.host}: row after row fails alike "
                        f"({failure.message}); stopped, everything so far is kept."
                    )
                )
            case Step.GO_ON:
                pass

    async def broken(self, broken: BrokenRow) -> None:
        failure = Failure(kind=FailureKind.IMAGE, message=broken.message)
        attempt = Attempt(
            number=0, timing=Timing(started_at=time.time(), total_s=0.0), outcome=failure, cost_usd=0.0
        )
        self.monitor.failed += 1
        log.warning("image: %s", broken.message, extra={"row": broken.row.sample.id, "kind": "image"})
        await self.recorder.broken(broken.row, attempt)
