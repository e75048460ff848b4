"""The model under test, asked in batches."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from mmbu_async.model import Attempt, Completion
from mmbu_async.pipeline.batch_source import Draft, Feed, Kept
from mmbu_async.pipeline.inferring import InferStage
from mmbu_async.pipeline.placement import BrokenRow
from mmbu_async.store import BatchItem, CallRecord, Fate

PAGE = 32
"""Rows prepared at once: they are in memory together, with their images."""

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class ModelSource:
    """See `batch_source.Source`."""

    infer: InferStage
    feed: Feed
    label: str = "model"
    judge_id: int | None = None
    _news: bool = True
    _tried: dict[int, int] = field(default_factory=dict)
    """Attempts of this session on rows that came to nothing so far."""

    def news(self) -> bool:
        return self._news

    async def drafts(self) -> AsyncGenerator[Draft, None]:
        self._news = False
        infer, position = self.infer, -1
        session = infer.recorder.session_id
        while page := await infer.reader.pending(
            infer.run_id, position, PAGE, skip_failed_since_session=session
        ):
            position = page[-1].sample.position
            for row in await infer.placement.prepare(page):
                if isinstance(row, BrokenRow):
                    await infer.broken(row)
                    continue
                if not isinstance(row.body, bytes):
                    raise TypeError("rows for a batch are prepared on this machine")
                yield Draft(
                    key=row.row.key,
                    row_id=row.row.sample.id,
                    body=row.body,
                    raw_input=row.raw_input,
                    attempt=self._tried.get(row.row.key, 0) + 1,
                    image_scale=row.image_scale,
                    image_sha256=row.image_sha256,
                    image_note=row.image_note,
                )

    async def more(self) -> bool:
        return self._news

    def keep(self, item: BatchItem, attempt: Attempt, *, final: bool) -> Kept:
        infer, outcome = self.infer, attempt.outcome
        record = CallRecord(
            run_id=infer.run_id,
            session_id=infer.recorder.session_id,
            sample_key=item.sample_key,
            attempt=attempt,
            final=final,
            image_scale=item.image_scale,
            image_sha256=item.image_sha256,
            image_note=item.image_note,
        )
        if isinstance(outcome, Completion):
            self._tried.pop(item.sample_key, None)
            infer.estimator.learn(item.raw_input, outcome)
            infer.monitor.replied += 1
            # Done as far as the model goes; a judge that must be asked takes that back.
            infer.monitor.done += 1
            return Kept(records=(record,), fate=Fate.REPLY, useful=True)
        if final:
            infer.monitor.failed += 1
            log.warning("no reply: %s", outcome.message, extra={"kind": outcome.kind.value})
        return Kept(records=(record,), fate=Fate.FAILED if final else Fate.AGAIN, useful=False)

    def again(self, item: BatchItem, *, tried: bool) -> None:
        self._news = True
        if tried:
            self._tried[item.sample_key] = item.attempt

    def turned_over(self) -> None:
        self.feed.tell()
