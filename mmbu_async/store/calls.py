"""What is written while a run runs: calls, verdicts, and signs of the process's life.

Each kind of record knows its statement and its values, made once when the record is posted. Calls and
verdicts go in many rows a statement: SQLite releases the interpreter's lock around each step, and taking it
back from a busy event loop can cost milliseconds a time. One step for 256 rows waits once, not 256 times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mmbu_async.model import Attempt, Verdict
from mmbu_async.store import codec
from mmbu_async.store.batch_jobs import BatchFact
from mmbu_async.store.lease import LeaseOwner

CALL_COLUMNS = (
    *("run_id", "session_id", "sample_id", "judge_id", "final", "prompt_sha", "image_scale"),
    *("image_sha256", "image_note", "attempt", "started_at", "total_s", "first_token_s", "ok", "kind"),
    *("words", "status", "retry_after_s", "request_id", "model", "input_tokens", "output_tokens"),
    *("reasoning_tokens", "cached_tokens", "cache_write_tokens", "usage_reported", "cost_usd", "text"),
    "reasoning",
)
VERDICT_COLUMNS = ("run_id", "sample_id", "judge_id", "correct", "reply", "prompt_sha", "shared")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One exchange with an endpoint, or an image that could not be sent."""

    run_id: int
    session_id: int
    sample_key: int
    attempt: Attempt
    judge_id: int | None = None
    """None: the model under test."""
    final: bool
    """No further attempt follows for this row and side in this session."""
    prompt_sha: bytes | None = None
    """SHA-256 of the filled prompt, for calls of a judge: identical prompts are bought once."""
    image_scale: float = 1.0
    image_sha256: str = ""
    """Of the original bytes, hexadecimal."""
    image_note: str = ""
    """Why the bytes sent are not the original ones; '' when they are."""

    def values(self) -> tuple[Any, ...]:
        return (
            self.run_id,
            self.session_id,
            self.sample_key,
            self.judge_id,
            int(self.final),
            self.prompt_sha,
            self.image_scale,
            bytes.fromhex(self.image_sha256) or None,
            self.image_note,
            *codec.attempt_values(self.attempt),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRecord:
    """A judge's word on a row, in its newest form."""

    run_id: int
    sample_key: int
    judge_id: int
    verdict: Verdict
    prompt_sha: bytes | None
    """Of the filled prompt that the verdict answers."""
    shared: bool = False
    """Taken from the reply to an identical prompt, not bought for this row."""

    def values(self) -> tuple[Any, ...]:
        correct = self.verdict.correct
        return (
            self.run_id,
            self.sample_key,
            self.judge_id,
            None if correct is None else int(correct),
            self.verdict.reply,
            self.prompt_sha,
            int(self.shared),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseBeat:
    """A sign of life. Acknowledged with False when another process has taken the run over."""

    statement: ClassVar[str] = "beat"

    run_id: int
    owner: LeaseOwner
    at: float

    def values(self) -> tuple[Any, ...]:
        return (self.at, self.run_id, *self.owner.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Heeded:
    """What was asked of the process is done, up to a request. False acknowledges what was known already."""

    statement: ClassVar[str] = "heed"

    run_id: int
    asked: int

    def values(self) -> tuple[Any, ...]:
        return (self.asked, self.run_id, self.asked)


Record = CallRecord | VerdictRecord | LeaseBeat | Heeded | BatchFact
