"""The scheduler: takes jobs, lets the next ones work, and brings all of them home when the service stops.

async with Scheduler(config) as desk:
    job = await desk.submit({"model": "gpt-4o-mini", "data": "mmbu"})

It is a `jobs.Desk`. One process, one event loop, one scheduler a store. What is in the store is the truth:
each change of a job is a transaction there before it is told here.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from mmbu_async import api
from mmbu_async.config import CallSettings
from mmbu_async.endpoints.shared import Party, SharedLimits, SharedLine, weight_of
from mmbu_async.errors import (
    ConfigError,
    RunNotFoundError,
    RunStateError,
    ServiceStoppingError,
    StoreError,
    StoreLockedError,
)
from mmbu_async.model import Json
from mmbu_async.pipeline.budget import Budget
from mmbu_async.pipeline.dryrun import DryRun
from mmbu_async.pipeline.hosting import Host
from mmbu_async.pipeline.logs import RUN
from mmbu_async.pipeline.opening import open_existing
from mmbu_async.service.admission import Admission
from mmbu_async.service.jobs import Job, JobKind, JobState, Progress, job_data, progress_data
from mmbu_async.service.listeners import Listener, Listeners
from mmbu_async.service.naming import Names, limits_of
from mmbu_async.service.settings import ServiceConfig
from mmbu_async.service.watching import History, Logbook, measure
from mmbu_async.service.work import WORDS, AtWork, Outcome, watching, work
from mmbu_async.store.jobs import Jobs
from mmbu_async.store.lease import BEAT_S, LeaseOwner

T = TypeVar("T")

LOOK_S = 1.0
"""Seconds between two looks at a run."""
TAKE_S = 2.0
"""Seconds between two tries at a store that another machine's service has left without a word."""
REMEMBERED = 200
"""Runs whose progress and log are kept in memory after they have ended."""

log = logging.getLogger(__name__)


class Scheduler:
    """See the module. Use as an async context manager; leaving it drains all runs."""

    def __init__(
        self,
        config: ServiceConfig,
        *,
        look_s: float = LOOK_S,
        clock: Callable[[], float] = time.time,
        owner: LeaseOwner | None = None,
    ) -> None:
        self.config = config
        self._look_s = look_s
        self._clock = clock
        self._owner = owner or LeaseOwner.current()
        self._names = Names(config)
        self._admission = Admission(names=self._names, store=config.store)
        self._listeners = Listeners()
        self._all: dict[int, Job] = {}
        self._latest: dict[str, int] = {}
        self._at_work: dict[int, AtWork] = {}
        self._later: dict[int, float] = {}
        """Job -> when it may be tried again."""
        self._histories: dict[str, History] = {}
        self._door = asyncio.Lock()
        """One admission at a time: two requests must not get one name."""
        self._turn = asyncio.Lock()
        self._stack = contextlib.AsyncExitStack()
        self._has_store = False
        self._stopping = False
        self._broke = False

    # ------------------------------------------------------------ life

    async def __aenter__(self) -> Self:
        """Raises StoreLockedError where another service of this machine is at work on the store; one of
        another machine is waited for in the background, as long as it gives no sign of life."""
        async with contextlib.AsyncExitStack() as stack:
            self._book = Logbook(lambda run, line: self._listeners.tell("log", run, {"line": line}))
            self._db_thread = stack.enter_context(ThreadPoolExecutor(1, "jobs"))
            opened = await self._in_thread(partial(Jobs.open, self.config.store))
            self._jobs = stack.enter_context(opened)
            taken = await self._take()
            stack.enter_context(_heard(self._book))
            self._shared = await stack.enter_async_context(SharedLimits())
            # A run's context is that in which the service began, not that of who asked for it.
            self._context = contextvars.copy_context()
            if taken:
                await self._recover()
            keeper = asyncio.create_task(self._keep(taken=taken), name="keeper of the jobs")
            keeper.add_done_callback(self._keeper_ended)
            stack.push_async_callback(_ended_task, keeper)
            stack.push_async_callback(self.drain)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def drain(self) -> None:
        """Take nothing new, let every run finish its calls under way, and wait for that. What was at work
        is queued again, for the next start."""
        self._stopping = True
        async with self._turn:
            # Whoever was about to begin has begun by now.
            for at in self._at_work.values():
                at.end("stopping")
        tasks = [at.task for at in self._at_work.values() if at.task is not None]
        await asyncio.gather(*tasks)
        self._listeners.close()
        if self._has_store:
            self._has_store = False
            await self._in_thread(partial(self._jobs.leave, self._owner))

    def abort(self) -> None:
        """Do not wait for calls under way: what they would bring is lost."""
        for at in self._at_work.values():
            if at.task is not None:
                at.end("stopping")
                at.task.cancel()

    async def _take(self) -> bool:
        try:
            await self._in_thread(partial(self._jobs.take, self._owner, self._clock()))
        except StoreLockedError:
            if await self._in_thread(partial(self._jobs.holder_is_here, self._owner)):
                raise
            return False
        return True

    async def _keep(self, *, taken: bool) -> None:
        """Find the jobs of before, then give signs of life and look for jobs that may begin, for ever."""
        while not taken:
            await asyncio.sleep(TAKE_S)
            if taken := await self._take():
                await self._recover()
        beaten = self._clock()
        while True:
            try:
                await self._fill()
            except StoreError as error:
                log.error("no job can begin now: %s", error)
            await asyncio.sleep(self._look_s)
            if self._clock() - beaten >= BEAT_S:
                beaten = self._clock()
                await self._beat()

    async def _recover(self) -> None:
        await self._in_thread(partial(self._jobs.recover, "goes on after the service has started again"))
        for job in await self._in_thread(self._jobs.all):
            self._note(job)
        spent = await self._in_thread(self._jobs.cost)
        self._purse = Budget(self.config.max_cost, spent, self._money_is_used_up)
        self._broke = self.config.max_cost is not None and spent >= self.config.max_cost
        self._has_store = True

    async def _beat(self) -> None:
        try:
            alive = await self._in_thread(partial(self._jobs.beat, self._owner, self._clock()))
        except StoreError as error:
            log.warning("no sign of life could be given: %s", error)
            return
        if not alive and self._has_store:
            log.error("another service has taken over %s: this one stops", self.config.store)
            self._has_store = False
            self._stopping = True
            for at in self._at_work.values():
                at.end("stopping")

    def _keeper_ended(self, keeper: asyncio.Task[None]) -> None:
        if not keeper.cancelled() and (error := keeper.exception()) is not None:
            log.critical("the service met an error of the program and takes nothing new", exc_info=error)
            self._stopping = True

    def ready(self) -> bool:
        return self._has_store and not self._stopping

    def _check_ready(self) -> None:
        if not self.ready():
            doing = "stops" if self._stopping else "is starting"
            raise ServiceStoppingError(f"the service {doing} and takes nothing now; try again in a minute.")

    # ------------------------------------------------------------ asking for work

    async def submit(self, settings: Mapping[str, Json], *, priority: int = 0, new_run: bool = False) -> Job:
        self._check_ready()
        async with self._door:
            open_runs = {job.run for job in self._all.values() if not job.state.ended}
            admit = partial(self._admission.run, settings, new_run=new_run, taken=open_runs)
            run = await asyncio.to_thread(admit)
            return await self._queue(run, "run", {**settings, "name": run}, priority)

    async def estimate(self, settings: Mapping[str, Json]) -> DryRun:
        return await asyncio.to_thread(lambda: api.dry_run(self._admission.config(settings)))

    async def rejudge(
        self, run: str, changes: Mapping[str, Json], *, failed: bool = False, priority: int = 0
    ) -> Job:
        self._check_ready()
        async with self._door:
            self._check_idle(run)
            await asyncio.to_thread(partial(self._admission.rejudge, run, changes, failed=failed))
            return await self._queue(run, "rejudge", changes, priority, failed_only=failed)

    async def resume(self, run: str, changes: Mapping[str, Json] | None = None, *, priority: int = 0) -> Job:
        self._check_ready()
        job = self._all.get(self._latest.get(run, 0))
        if job is not None and job.state is JobState.PAUSED:
            if changes:
                raise RunStateError(f"run '{run}' is paused: let it go on first, or use `limit` for limits.")
            return await self._unpause(job)
        async with self._door:
            self._check_idle(run)
            if job is not None and job.kind == "rejudge" and job.state is not JobState.DONE and not changes:
                return await self._queue(run, "rejudge", job.settings, priority, failed_only=job.failed_only)
            await asyncio.to_thread(partial(self._admission.resume, run, changes or {}))
            return await self._queue(run, "resume", changes or {}, priority)

    async def _queue(
        self,
        run: str,
        kind: JobKind,
        settings: Mapping[str, Json],
        priority: int,
        *,
        failed_only: bool = False,
    ) -> Job:
        self._check_ready()
        if not -(2**31) <= priority < 2**31:
            raise ConfigError(f"priority = {priority}: is beyond all bounds; ten steps are enough.")
        submit = partial(
            self._jobs.submit,
            run,
            kind=kind,
            settings=settings,
            priority=priority,
            failed_only=failed_only,
            now=self._clock(),
        )
        job = self._note(await self._in_thread(submit))
        if self._broke:
            await self._move(job, JobState.QUEUED, WORDS["money"])
        await self._fill()
        return self._all[job.id]

    def _check_idle(self, run: str) -> None:
        job = self._all.get(self._latest.get(run, 0))
        if job is not None and not job.state.ended:
            raise RunStateError(
                f"run '{run}' is {job.state} already (job {job.id}): wait, or cancel it first."
            )

    # ------------------------------------------------------------ steering

    async def pause(self, run: str) -> Job:
        job = self._open_job(run)
        if job.state is JobState.PAUSED:
            return job
        at = self._at_work.get(job.id)
        if at is not None:
            at.wanted = True
        moved = await self._move(job, JobState.PAUSED, "by hand; calls under way finish" if at else "by hand")
        if at is not None:
            await self._follow(at)
        await self._fill()
        return moved

    async def _unpause(self, job: Job) -> Job:
        """To the queue, where it has its turn again; the next one it is, unless others have a higher
        priority."""
        await self._move(job, JobState.QUEUED, "")
        await self._fill()
        return self._all[job.id]

    async def cancel(self, run: str) -> Job:
        job = self._open_job(run)
        at = self._at_work.get(job.id)
        if at is not None:
            at.end("cancelled")
        # Told at once, also to the store: a service that is killed meanwhile does not go on with it.
        message = "cancelled; calls under way finish and are kept" if at else "cancelled before it began"
        moved = await self._move(job, JobState.CANCELLED, message, exit_code=130)
        await self._fill()
        return moved

    async def limit(self, run: str, changes: Mapping[str, Json]) -> Sequence[str]:
        limits = limits_of(changes)
        job = self._all.get(self._latest.get(run, 0))
        if job is not None and job.state is JobState.QUEUED and job.kind == "run":
            # It may begin with its own settings.
            await self._change(job, settings=_with_limits(job.settings, changes))
        asked = await asyncio.to_thread(partial(api.limit, run, store=self.config.store, limits=limits))
        return asked.limits

    async def prioritize(self, run: str, priority: int) -> Job:
        job = self._open_job(run)
        at = self._at_work.get(job.id)
        if at is not None:
            self._shared.weigh(at.party, weight_of(priority))
        return await self._change(job, priority=priority)

    def _open_job(self, run: str) -> Job:
        job = self.job(run)
        if job.state.ended:
            raise RunStateError(f"run '{run}' has ended ({job.state}); a resume makes another job of it.")
        return job

    # ------------------------------------------------------------ looking

    def jobs(self) -> list[Job]:
        return sorted(self._all.values(), key=lambda job: job.id, reverse=True)

    def job(self, run: str) -> Job:
        if run not in self._latest:
            raise RunNotFoundError(f"the service has had no job for a run '{run}'.")
        return self._all[self._latest[run]]

    def progress(self, run: str) -> Progress | None:
        history = self._histories.get(run)
        return history.points[-1] if history is not None and history.points else None

    def history(self, run: str) -> Sequence[Progress]:
        history = self._histories.get(run)
        return list(history.points) if history is not None else []

    def logs(self, run: str) -> Sequence[str]:
        return self._book.lines(run)

    def subscribe(self, run: str | None = None) -> Listener:
        return self._listeners.subscribe(run)

    # ------------------------------------------------------------ turns

    async def _fill(self) -> None:
        """Let jobs begin while there is room, those of the highest priority first, then the oldest."""
        async with self._turn:
            while self.ready() and not self._broke and self._working() < self.config.max_runs:
                now = self._clock()
                self._later = {job: when for job, when in self._later.items() if when > now}
                claim = partial(self._jobs.claim, now=now, without=[*self._later, *self._leaving()])
                job = await self._in_thread(claim)
                if job is None:
                    return
                self._note(job)
                at = self._at_work.get(job.id)
                if at is None:
                    self._begin(job)
                else:
                    at.wanted = False
                    await self._follow(at)

    def _working(self) -> int:
        return sum(job.state is JobState.RUNNING for job in self._all.values())

    def _leaving(self) -> list[int]:
        """Jobs whose task is about to end."""
        return [at.job_id for at in self._at_work.values() if at.ending is not None]

    def _begin(self, job: Job) -> None:
        party = Party(weight=weight_of(job.priority))

        def shared(settings: CallSettings, key: str) -> tuple[SharedLine, Party]:
            # The last door before a key goes out, whoever made the run.
            if self._names.endpoint_of(settings) is None:
                raise ConfigError(
                    f"{settings.model} has no endpoint of this service: set `endpoint` to the name of one."
                )
            line = self._shared.line(settings.url, key, self._names.key_limits(settings))
            return line, party

        host = Host(shared=shared, purse=self._purse, threads=True)
        at = AtWork(job_id=job.id, run=job.run, store=self.config.store, party=party, host=host)
        self._at_work[job.id] = at
        # To the end: who worked last is forgotten last.
        history = self._histories.pop(job.run) if job.run in self._histories else History()
        self._histories[job.run] = history
        self._forget_old()
        at.task = asyncio.create_task(
            self._work(job, at), name=f"run {job.run}", context=self._context.copy()
        )

    async def _work(self, job: Job, at: AtWork) -> None:
        RUN.set(job.run)
        watch = watching(at, every_s=self._look_s, see=self._see, follow=self._follow)
        try:
            outcome = await work(job, at, self._admission, watch)
        except asyncio.CancelledError:
            # Aborted: found again, as after a kill.
            del self._at_work[job.id]
            if not self._stopping:
                raise
            return
        del self._at_work[job.id]
        try:
            await self._settle(self._all[job.id], outcome)
            await self._fill()
        except StoreError as error:
            log.error("what has become of run '%s' cannot be noted: %s", job.run, error)

    async def _settle(self, job: Job, outcome: Outcome) -> None:
        if outcome.again_s is not None:
            self._later[job.id] = self._clock() + outcome.again_s
        state = outcome.state
        if state is JobState.QUEUED and job.state in (JobState.PAUSED, JobState.CANCELLED):
            # It was paused, or cancelled in the moment in which the service stopped.
            return
        log.info(
            "job %d of run '%s' is %s%s", job.id, job.run, state, outcome.message and f": {outcome.message}"
        )
        await self._move(job, state, outcome.message, exit_code=outcome.exit_code)

    async def _follow(self, at: AtWork) -> None:
        """Ask a run for the pause that is wanted, as another process would; and let the job's state be what
        the run does, whoever asked for it."""
        job = self._all[at.job_id]
        if at.monitor is None or at.ending is not None:
            return
        if at.wanted is not None and at.wanted == at.monitor.paused:
            at.wanted = None
        elif at.wanted is not None:
            await asyncio.to_thread(partial(_ask_pause, at, paused=at.wanted))
        elif at.monitor.paused and job.state is JobState.RUNNING:
            await self._move(job, JobState.PAUSED, "from a terminal; calls under way finish")
        elif not at.monitor.paused and job.state in (JobState.PAUSED, JobState.QUEUED):
            await self._move(job, JobState.RUNNING, "")

    def _see(self, at: AtWork) -> None:
        if at.monitor is None or at.stages is None:
            return
        progress = measure(
            at.monitor,
            at.stages,
            cost_before=at.cost_before,
            unpriced_before=at.unpriced_before,
            at=self._clock(),
            now=time.monotonic(),
        )
        self._histories[at.run].add(progress)
        self._listeners.tell("progress", at.run, progress_data(progress))

    def _money_is_used_up(self) -> None:
        log.error("the money cap of the service, %g US dollars, is reached", self.config.max_cost)
        self._broke = True
        for at in self._at_work.values():
            at.end("money")

    # ------------------------------------------------------------ the store and what is told of it

    async def _move(self, job: Job, state: JobState, message: str, *, exit_code: int | None = None) -> Job:
        """Another state, unless the job has got one meanwhile from which it does not go there."""
        if self._stopping and not self._has_store:
            return job
        of = {job.state, JobState.CANCELLED} if state.ended else {job.state}
        move = partial(
            self._jobs.move, job.id, state, of=of, message=message, exit_code=exit_code, now=self._clock()
        )
        moved = await self._in_thread(move)
        return self._note(moved) if moved is not None else self._all[job.id]

    async def _change(self, job: Job, **values: Any) -> Job:
        return self._note(await self._in_thread(partial(self._jobs.change, job.id, **values)))

    def _note(self, job: Job) -> Job:
        """A job as the store has it now."""
        self._all[job.id] = job
        self._latest[job.run] = max(job.id, self._latest.get(job.run, 0))
        self._listeners.tell("job", job.run, job_data(job))
        return job

    def _forget_old(self) -> None:
        busy = {at.run for at in self._at_work.values()}
        idle = [run for run in self._histories if run not in busy]
        for run in idle[: max(0, len(self._histories) - REMEMBERED)]:
            del self._histories[run]
            self._book.forget(run)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        """On the one thread of the job table, in the order of the calls."""
        return await asyncio.get_running_loop().run_in_executor(self._db_thread, call)


def _ask_pause(at: AtWork, *, paused: bool) -> None:
    """Leave it in the store, where the run looks once a second."""
    with open_existing(at.store) as store:
        store.ask(store.run(at.run).id, paused=paused, now=time.time())


def _with_limits(settings: Mapping[str, Json], changes: Mapping[str, Json]) -> dict[str, Json]:
    found = dict(settings)
    for name, value in changes.items():
        if isinstance(value, Mapping):
            found[name] = {**(found.get(name) or {}), **value}
        else:
            found[name] = value
    return found


async def _ended_task(task: asyncio.Task[None]) -> None:
    """Cancelled, and gone; raises what ended it before."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@contextlib.contextmanager
def _heard(book: Logbook) -> Iterator[None]:
    logger = logging.getLogger("mmbu_async")
    level = logger.level
    logger.addHandler(book)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(book)
        logger.setLevel(level)
