"""One job at work: a run of the engine on the service's terms, and what its end means for the job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from mmbu_async import api
from mmbu_async.api import RunResult
from mmbu_async.endpoints.shared import Party
from mmbu_async.errors import (
    BudgetReachedError,
    InterruptedRunError,
    MmbuError,
    RunNotFoundError,
    StoreLockedError,
)
from mmbu_async.pipeline.hosting import Host
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.opening import open_existing
from mmbu_async.pipeline.run import Stages, Watch
from mmbu_async.service.admission import Admission
from mmbu_async.service.jobs import Job, JobState

Ending = Literal["cancelled", "stopping", "money"]
"""Why the service itself ends a job: by hand, since it stops, since its money is used up."""

WORDS: dict[Ending, str] = {
    "cancelled": "cancelled; everything paid for is kept, and a resume goes on",
    "stopping": "the service stopped; goes on when it starts again",
    "money": "the money cap of the service is reached; goes on when it is higher",
}

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class AtWork:
    """A job that has a task."""

    job_id: int
    run: str
    store: Path
    party: Party
    host: Host
    ending: Ending | None = None
    wanted: bool | None = None
    """Asked to be paused, or not to be, and not yet so; None: it is as it was asked."""
    monitor: Monitor | None = None
    """None: it is still being laid out."""
    stages: Stages | None = None
    cost_before: float = 0.0
    """US dollars of earlier sessions."""
    unpriced_before: int = 0
    """Calls of earlier sessions whose cost was never learnt."""
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    def end(self, why: Ending) -> None:
        """Start no further call; calls under way finish and are kept."""
        if self.ending is None:
            self.ending = why
        self.host.stop.request(InterruptedRunError(f"{WORDS[why]}."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What has become of a job."""

    state: JobState
    message: str = ""
    exit_code: int | None = None
    again_s: float | None = None
    """Seconds after which a job that could not begin tries again."""


LOCKED_S = 5.0
"""Between two tries at a run that another process holds."""


async def work(job: Job, at: AtWork, admission: Admission, watch: Watch) -> Outcome:
    """Work on a job until it ends, whatever comes; an error of our own is told in the log."""
    try:
        result = await _session(job, at, admission, watch)
    except StoreLockedError as error:
        return Outcome(state=JobState.QUEUED, message=f"waits: {error}", again_s=LOCKED_S)
    except MmbuError as error:
        return _ended(at, error)
    except Exception as error:
        # One run's fault, or one of ours that it met, is not the end of the others.
        log.exception("run '%s' met an error of the program", job.run)
        what = f"an error of the program, told in the log: {type(error).__name__}: {error}"
        return Outcome(state=JobState.FAILED, message=what, exit_code=1)
    if result.stopped is not None:
        return _ended(at, result.stopped)
    if result.exit_code == 0:
        return Outcome(state=JobState.DONE, exit_code=0)
    return Outcome(state=JobState.INCOMPLETE, message=_lacks(result), exit_code=result.exit_code)


def _ended(at: AtWork, reason: MmbuError) -> Outcome:
    ours = at.ending if isinstance(reason, InterruptedRunError) else None
    if ours == "cancelled":
        return Outcome(state=JobState.CANCELLED, message=WORDS[ours], exit_code=reason.exit_code)
    if ours is not None:
        return Outcome(state=JobState.QUEUED, message=WORDS[ours])
    short = isinstance(reason, BudgetReachedError)
    return Outcome(
        state=JobState.INCOMPLETE if short else JobState.FAILED,
        message=str(reason),
        exit_code=reason.exit_code,
    )


def _lacks(result: RunResult) -> str:
    counts = result.counts
    parts = (
        (counts.failed, "failed"),
        (counts.pending, "without a reply"),
        (counts.completed - counts.scored, "without a verdict"),
    )
    return "rows " + ", ".join(f"{what}: {number:,}" for number, what in parts if number)


async def _session(job: Job, at: AtWork, admission: Admission, watch: Watch) -> RunResult:
    run, store, host, names = job.run, admission.store, at.host, admission.names
    if job.kind == "rejudge":
        changes = names.changes(job.settings)
        return await api.rejudge(
            run, store=store, changes=changes, failed=job.failed_only, watch=watch, check=False, host=host
        )
    begun = await host.apart(partial(_begun, store, job))
    if begun or job.kind == "resume":
        # What the job changes has been kept with the run since it first began, and limits may have been
        # changed after that.
        if not begun:
            changes = names.changes(job.settings)
        else:
            changes = names.addresses(job.settings) if job.kind == "run" else {}
        return await api.resume(run, store=store, changes=changes, watch=watch, check=False, host=host)
    return await api.evaluate(admission.config(job.settings), watch=watch, check=False, host=host)


def _begun(store: Path, job: Job) -> bool:
    """Whether a session was begun for this job, in this process or one before."""
    try:
        with open_existing(store) as opened:
            sessions = opened.sessions(opened.run(job.run).id)
    except RunNotFoundError:
        return False
    return any(session.started_at >= job.created_at for session in sessions)


def watching(
    at: AtWork,
    *,
    every_s: float,
    see: Callable[[AtWork], None],
    follow: Callable[[AtWork], Coroutine[None, None, None]],
) -> Watch:
    """Let `see` measure the run at once, every so often, and when its session ends; `follow` does after each
    look what must be done."""

    def before() -> None:
        with open_existing(at.store) as opened:
            totals = opened.totals(opened.run(at.run).id)
        at.cost_before = totals.cost_usd
        at.unpriced_before = totals.unpriced_infer.unseen + totals.unpriced_judge.unseen

    async def watch(monitor: Monitor, stages: Stages) -> None:
        if at.monitor is None:
            await at.host.apart(before)
        at.monitor, at.stages = monitor, stages
        try:
            while True:
                see(at)
                await follow(at)
                await asyncio.sleep(every_s)
        finally:
            see(at)
            at.stages = None

    return watch
