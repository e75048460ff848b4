"""What the pages and the HTTP API know of the scheduler: its nouns, and the `Desk` at which it is asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Literal, Protocol, Self

import orjson

from mmbu_async.model import Json
from mmbu_async.pipeline.dryrun import DryRun
from mmbu_async.store.jobs import Job, JobKind, JobState

EventKind = Literal["job", "progress", "log", "dropped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A run at one moment. Rows count over all sessions; calls, errors and seconds are of the present one."""

    at: float
    """Seconds since 1970."""
    done: int
    """Rows replied to and, where a judge is needed, asked about."""
    total: int
    judged: int
    failed: int
    rows_per_s: float
    eta_s: float | None
    """None: not known yet, or paused."""
    cost_usd: float
    cost_unknown: int
    """Calls whose cost was never learnt, and which may have cost something."""
    in_flight: int
    """Calls under way, of the model and of all judges."""
    waiting: str
    """What a run that hardly moves waits for; '' where it moves."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """Failed attempts by kind."""
    latency_p50_s: float | None = None
    latency_p95_s: float | None = None
    """Of the latest calls that were answered."""
    calls: int = 0
    """Attempts so far."""
    queue: int = 0
    """Rows with a reply that wait for a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that whoever watches is told. `data` is a job, a progress or a line of a log as JSON."""

    number: int
    """Rises by one from event to event of this process."""
    kind: EventKind
    run: str
    """'' for `dropped`, whose data say how many events this subscriber has missed."""
    data: Json
    payload: bytes
    """The data as JSON text, made once for all who listen."""

    @classmethod
    def of(cls, number: int, kind: EventKind, run: str, data: Json) -> Event:
        return cls(number=number, kind=kind, run=run, data=data, payload=json_bytes(data))


class Subscription(Protocol):
    """A bounded queue of events: a slow listener loses the oldest, and is told how many."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __aiter__(self) -> AsyncIterator[Event]:
        """Ends when the service stops."""


class Desk(Protocol):
    """Where the service is asked for something. All methods belong to the event loop of the service.

    A run that nobody knows is RunNotFoundError; what its state forbids is RunStateError; settings that cannot
    be are ConfigError, DataError or RunChangedError; while it stops, everything new is ServiceStoppingError.
    """

    async def submit(self, settings: Mapping[str, Json], *, priority: int = 0, new_run: bool = False) -> Job:
        """Queue a run, or go on with the one of that name. `settings` as in a settings file, but `endpoint`
        (of the model and of each judge) is the name of an endpoint of the service, `data` that of a data set
        and `benchmark` may be that of a description; nothing that names a path, an address or a variable is
        taken."""

    async def estimate(self, settings: Mapping[str, Json]) -> DryRun:
        """What `mmbu run --dry-run` would find."""

    async def rejudge(
        self, run: str, changes: Mapping[str, Json], *, failed: bool = False, priority: int = 0
    ) -> Job:
        """Queue a rejudge; see `api.rejudge`."""

    async def pause(self, run: str) -> Job:
        """Start no further call; calls under way finish. A queued job stays where it is."""

    async def resume(self, run: str, changes: Mapping[str, Json] | None = None, *, priority: int = 0) -> Job:
        """Let a paused job go on, or queue another job for a run that has ended. `changes` only for the
        latter; see `api.resume`."""

    async def cancel(self, run: str) -> Job:
        """Start no further call and end; calls under way finish and are kept."""

    async def limit(self, run: str, changes: Mapping[str, Json]) -> Sequence[str]:
        """Other limits, at once and for later sessions: `concurrency`, `rpm` and `tpm` of the model, and
        tables of the same under `judge` or a judge's name. Returns those that hold now, in words."""

    async def prioritize(self, run: str, priority: int) -> Job: ...

    def jobs(self) -> list[Job]:
        """All jobs, the newest first."""

    def job(self, run: str) -> Job:
        """The latest job of that run."""

    def progress(self, run: str) -> Progress | None:
        """None: it has not begun in this process."""

    def history(self, run: str) -> Sequence[Progress]:
        """Oldest first; the further back, the coarser."""

    def logs(self, run: str) -> Sequence[str]:
        """The latest lines, oldest first."""

    def subscribe(self, run: str | None = None) -> Subscription:
        """Events from now on, of all runs or of one. Use as an async context manager and iterate."""

    def ready(self) -> bool:
        """Whether jobs are taken: not before earlier ones are found again, nor while the service stops."""


def json_bytes(data: Json) -> bytes:
    """As JSON. Half a character, which a file name in a message can hold, becomes a question mark."""
    try:
        return orjson.dumps(data)
    except TypeError:
        return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")


def job_data(job: Job) -> dict[str, Json]:
    """A job as JSON."""
    return asdict(job) | {"settings": dict(job.settings)}


def progress_data(progress: Progress) -> dict[str, Json]:
    """A progress as JSON."""
    return asdict(progress) | {"errors": dict(progress.errors)}


__all__ = [
    "Desk",
    "Event",
    "EventKind",
    "Job",
    "JobKind",
    "JobState",
    "Progress",
    "Subscription",
    "job_data",
    "json_bytes",
    "progress_data",
]
