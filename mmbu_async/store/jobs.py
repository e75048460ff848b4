"""Jobs of the service: what it was asked to run, and what became of that.

They lie beside the runs, so that a service that is killed finds them again. Each change is one transaction,
which names the states that it may leave: of two that come at once one finds the job moved.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from mmbu_async.errors import RunStateError, StoreLockedError
from mmbu_async.model import Json
from mmbu_async.store import codec, lease
from mmbu_async.store.connect import connect, named_errors
from mmbu_async.store.lease import Lease, LeaseOwner
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import transaction

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
        return self not in OPEN


OPEN = frozenset({JobState.QUEUED, JobState.RUNNING, JobState.PAUSED})
"""At most one job of a run is in one of these."""


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


class Jobs:
    """The jobs in one store, over a connection of its own; for one thread at a time. Every method raises
    StoreError or one of its kinds, never SQLite's."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @classmethod
    def open(cls, path: Path, *, create: bool = True) -> Self:
        """See `Store.open`. A context manager."""
        return cls(connect(path, create=create), path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with named_errors(self.path):
            self._connection.close()

    # ------------------------------------------------------------ jobs

    def submit(
        self,
        run: str,
        *,
        kind: JobKind,
        settings: Mapping[str, Json],
        priority: int,
        now: float,
        failed_only: bool = False,
    ) -> Job:
        """Queue a job. Raises RunStateError where the run has one that has not ended."""
        values = {
            "run": codec.clean(run),
            "kind": kind,
            "priority": priority,
            "settings": codec.dump(dict(settings)),
            "failed_only": failed_only,
            "now": now,
        }
        with named_errors(self.path), transaction(self._connection):
            found = self._connection.execute(query("open_job"), {"run": values["run"]}).fetchone()
            if found is not None:
                raise RunStateError(
                    f"run '{run}' is {found[1]} already (job {found[0]}): wait for it, or cancel it first."
                )
            number = self._connection.execute(query("insert_job"), values).lastrowid
            return self._job(number)

    def claim(self, *, now: float, without: Collection[int] = ()) -> Job | None:
        """Let the job whose turn it is be at work; None where none waits. `without`: passed over."""
        with named_errors(self.path), transaction(self._connection):
            found = self._connection.execute(
                query("next_job"), {"without": codec.dump(sorted(without))}
            ).fetchone()
            if found is None:
                return None
            self._move(found[0], JobState.RUNNING, OPEN, started_at=now)
            return self._job(found[0])

    def move(
        self,
        job_id: int,
        state: JobState,
        *,
        of: Collection[JobState] = OPEN,
        message: str = "",
        exit_code: int | None = None,
        now: float,
    ) -> Job | None:
        """Another state; None where the job is in none of the states `of` any more."""
        ended_at = now if state.ended else None
        with named_errors(self.path), transaction(self._connection):
            moved = self._move(
                job_id, state, of, message=codec.clean(message), exit_code=exit_code, ended_at=ended_at
            )
            return self._job(job_id) if moved else None

    def change(
        self, job_id: int, *, priority: int | None = None, settings: Mapping[str, Json] | None = None
    ) -> Job:
        """Another priority, or other settings, of a job that has not ended."""
        values = {
            "job": job_id,
            "priority": priority,
            "settings": None if settings is None else codec.dump(dict(settings)),
        }
        with named_errors(self.path), transaction(self._connection):
            self._connection.execute(query("change_job"), values)
            return self._job(job_id)

    def all(self) -> list[Job]:
        """Oldest first."""
        with named_errors(self.path):
            return [_job(values) for values in self._connection.execute(query("jobs"), {"job": None})]

    def recover(self, message: str) -> None:
        """Queue what a dead service was at work on. Hold the store as `take` does first."""
        with named_errors(self.path):
            self._connection.execute(query("recover_jobs"), {"message": message})

    def cost(self) -> float:
        """US dollars that the runs of all jobs have cost so far, as far as it is known."""
        with named_errors(self.path):
            return float(self._connection.execute(query("jobs_cost")).fetchone()[0])

    def _move(self, job_id: int | None, state: JobState, of: Collection[JobState], **values: Any) -> bool:
        parameters = {"message": "", "exit_code": None, "ended_at": None, "started_at": None, **values}
        parameters |= {"job": job_id, "state": state, "from": codec.dump(sorted(of))}
        return self._connection.execute(query("move_job"), parameters).rowcount == 1

    def _job(self, job_id: int | None) -> Job:
        return _job(self._connection.execute(query("jobs"), {"job": job_id}).fetchone())

    # ------------------------------------------------------------ one service a store

    def take(self, owner: LeaseOwner, now: float) -> None:
        """Be the service of this store. Raises StoreLockedError where another one lives."""
        with named_errors(self.path), transaction(self._connection):
            holder = self._holder(owner, now)
            if holder is not None and holder.alive:
                raise StoreLockedError(
                    f"{self.path}: process {holder.owner.pid} on {holder.owner.host} serves this store (last "
                    f"sign of life {max(now - holder.beat, 0):.0f} s ago); stop it, or name another store."
                )
            values = dict(zip(("host", "boot", "pid", "process"), owner.values(), strict=True))
            self._connection.execute(query("take_service"), {**values, "now": now})

    def holder_is_here(self, owner: LeaseOwner) -> bool:
        """Whether the service of this store can be looked at from here, so that waiting for it to be silent
        is no use."""
        with named_errors(self.path):
            found = self._holder(owner, 0.0)
        return found is not None and (found.owner.host, found.owner.boot) == (owner.host, owner.boot)

    def beat(self, owner: LeaseOwner, now: float) -> bool:
        """A sign of life, every `lease.BEAT_S` seconds. False: another service has taken the store over."""
        with named_errors(self.path):
            return self._connection.execute(query("beat_service"), (now, *owner.values())).rowcount == 1

    def leave(self, owner: LeaseOwner) -> None:
        """Another service may take the store."""
        with named_errors(self.path):
            self._connection.execute(query("leave_service"), owner.values())

    def _holder(self, asker: LeaseOwner, now: float) -> Lease | None:
        found = self._connection.execute(query("service")).fetchone()
        if found is None:
            return None
        host, boot, pid, process, since, beat = found
        owner = LeaseOwner(host=host, boot=boot, pid=pid, process=process)
        alive = lease.holds(owner, asker, silent_s=now - beat)
        return Lease(run_id=0, run="", owner=owner, since=since, beat=beat, alive=alive)


def _job(values: Sequence[Any]) -> Job:
    number, run, kind, state, priority, created_at, started_at, ended_at, message, exit_code = values[:10]
    return Job(
        id=number,
        run=run,
        kind=kind,
        state=JobState(state),
        priority=priority,
        created_at=created_at,
        started_at=started_at,
        ended_at=ended_at,
        message=message,
        exit_code=exit_code,
        settings=codec.load(values[10]),
        failed_only=bool(values[11]),
    )
