"""From what a stage knows to what the store keeps."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from mmbu_async.model import Attempt, Verdict
from mmbu_async.pipeline.placement import ReadyRow
from mmbu_async.store import CallRecord, StoredSample, VerdictRecord, Writer

Stored = asyncio.Future[bool]
"""Done once the fact is on disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Writes one session's facts."""

    writer: Writer
    run_id: int
    session_id: int
    judge_id: int = 0
    """Whose exchanges and verdicts these are; 0, which is no judge's, for the model under test."""

    def reply(self, row: ReadyRow, attempt: Attempt, *, final: bool) -> Stored:
        """An exchange with the model under test."""
        return self.writer.post(
            CallRecord(
                run_id=self.run_id,
                session_id=self.session_id,
                sample_key=row.row.key,
                attempt=attempt,
                final=final,
                image_scale=row.image_scale,
                image_sha256=row.image_sha256,
                image_note=row.image_note,
            )
        )

    def broken(self, row: StoredSample, attempt: Attempt) -> Stored:
        """A row that could not be sent."""
        return self.writer.post(
            CallRecord(
                run_id=self.run_id,
                session_id=self.session_id,
                sample_key=row.key,
                attempt=attempt,
                final=True,
            )
        )

    def judging(self, key: int, prompt_sha: bytes, attempt: Attempt, *, final: bool) -> Stored:
        """An exchange with the judge."""
        return self.writer.post(
            CallRecord(
                run_id=self.run_id,
                session_id=self.session_id,
                sample_key=key,
                judge_id=self.judge_id,
                attempt=attempt,
                final=final,
                prompt_sha=prompt_sha,
            )
        )

    def verdict(self, key: int, verdict: Verdict, prompt_sha: bytes, *, shared: bool) -> Stored:
        """The judge's word on a row."""
        return self.writer.post(
            VerdictRecord(
                run_id=self.run_id,
                sample_key=key,
                judge_id=self.judge_id,
                verdict=verdict,
                prompt_sha=prompt_sha,
                shared=shared,
            )
        )
