"""Jobs of the service: what it was asked to run, and what became of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from mmbu_async.model import Json

JobKind = Literal["run", "resume", "rejudge"]


class JobState(StrEnum):
    """Where a job stands. The last four are ends: `resume` makes another job of the run."""

    QUEUED = "queued"
    """Waits for its turn; after a restart of the service too."""
    RUNNING = "running"
    PAUSED = "paused"
    """Starts no call until somebody resumes it, and takes nobody's turn."""
    DONE = "done"
    INCOMPLETE = "incomplete"
    """Ended, and rows are failed, open or without a verdict: `Job.message` says why."""
    CANCELLED = "cancelled"
    FAILED = "failed"
    """Ended by an error that is none of its rows': `Job.message` is its sentence."""

    @property
    def ended(self) -> bool:
        return self not in (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One piece of work on one run. Times are seconds since 1970."""

    id: int
    run: str
    kind: JobKind
    state: JobState
    priority: int
    """A higher one goes first, and has a larger share of a key's limits."""
    created_at: float
    started_at: float | None = None
    """When it first began to work."""
    ended_at: float | None = None
    message: str = ""
    """Why it ended or waits; '' where there is nothing to say."""
    exit_code: int | None = None
    """That of `mmbu run` for such an end."""
    settings: Mapping[str, Json]
    """As they were submitted; of a resume or a rejudge, the changes. Never a key."""
    failed_only: bool = False
    """Of a rejudge: only rows that have no usable verdict."""
