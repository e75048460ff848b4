"""The scheduler: takes jobs, lets the next ones work, and brings all of them home when the service stops.

async with Scheduler(config) as desk:
    job = await desk.submit({"model": "gpt-4o-mini", "data": "mmbu"})

It is a `jobs.Desk`. One process, one event loop, one scheduler a store: `ledger.py` keeps the jobs,
`turns.py` the runs at work, `admission.py` the door.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Self

from mmbu_async import api
from mmbu_async.endpoints.shared import SharedLimits
from mmbu_async.errors import RunStateError, ServiceStoppingError, StoreError
from mmbu_async.model import Json
from mmbu_async.pipeline.dryrun import DryRun
from mmbu_async.service.admission import Admission
from mmbu_async.service.jobs import Job, JobKind, JobState, Progress
from mmbu_async.service.ledger import Ledger, check_priority
from mmbu_async.service.listeners import Listener, Listeners
from mmbu_async.service.naming import Names, limits_of
from mmbu_async.service.settings import ServiceConfig
from mmbu_async.service.turns import Turns
from mmbu_async.service.watching import Logbook
from mmbu_async.service.work import WORDS
from mmbu_async.store.lease import BEAT_S, LeaseOwner

LOOK_S = 1.0
"""Seconds between two looks at a run."""
TAKE_S = 2.0
"""Seconds between two tries at a store that another machine's service has left without a word."""

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
        self._admission = Admission(names=Names(config), store=config.store)
        self._listeners = Listeners()
        self._ledger = Ledger(config.store, self._listeners, owner or LeaseOwner.current(), clock)
        self._door = asyncio.Lock()
        """One admission at a time: two requests must not get one name."""
        self._stack = contextlib.AsyncExitStack()
        self._stopping = False

    # ------------------------------------------------------------ life

    async def __aenter__(self) -> Self:
        """Raises StoreLockedError where another service of this machine is at work on the store; one of
        another machine is waited for in the background, as long as it gives no sign of life."""
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._ledger)
            taken = await self._ledger.take()
            self._book = Logbook(lambda run, line: self._listeners.tell("log", run, {"line": line}))
            stack.enter_context(_heard(self._book))
            shared = await stack.enter_async_context(SharedLimits())
            self._turns = Turns(
                most=self.config.max_runs,
                max_cost=self.config.max_cost,
                look_s=self._look_s,
                clock=self._clock,
                ledger=self._ledger,
                listeners=self._listeners,
                book=self._book,
                admission=self._admission,
                shared=shared,
            )
            if taken:
                self._turns.open(await self._ledger.cost())
            keeper = asyncio.create_task(self._keep(taken=taken), name="keeper of the jobs")
            keeper.add_done_callback(self._keeper_ended)
            stack.push_async_callback(_ended, keeper)
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
        await self._turns.close()
        self._listeners.close()
        await self._ledger.leave()

    def abort(self) -> None:
        """Do not wait for calls under way: what they would bring is lost."""
        self._stopping = True
        self._turns.abort()

    async def _keep(self, *, taken: bool) -> None:
        """Find the jobs of before, then give signs of life and look for jobs that may begin, for ever."""
        while not taken:
            await asyncio.sleep(TAKE_S)
            if taken := await self._ledger.take():
                self._turns.open(await self._ledger.cost())
        beaten = self._clock()
        while True:
            try:
                await self._turns.fill()
                if self._clock() - beaten >= BEAT_S:
                    beaten = self._clock()
                    await self._beat()
            except StoreError as error:
                log.error("the store of the jobs cannot be used now: %s", error)
            await asyncio.sleep(self._look_s)

    async def _beat(self) -> None:
        if not await self._ledger.beat() and not self._stopping:
            log.error("another service has taken over %s: this one stops", self.config.store)
            self._stopping = True
            self._turns.closed = True
            self._turns.end_all("stopping")

    def _keeper_ended(self, keeper: asyncio.Task[None]) -> None:
        if not keeper.cancelled() and (error := keeper.exception()) is not None:
            log.critical("the service met an error of the program and takes nothing new", exc_info=error)
            self._stopping = True

    def ready(self) -> bool:
        return self._ledger.held and not self._stopping

    def _check_ready(self) -> None:
        if not self.ready():
            doing = "stops" if self._stopping else "is starting"
            raise ServiceStoppingError(f"the service {doing} and takes nothing now; try again in a minute.")

    # ------------------------------------------------------------ asking for work

    async def submit(self, settings: Mapping[str, Json], *, priority: int = 0, new_run: bool = False) -> Job:
        self._check_ready()
        async with self._door:
            open_runs = {job.run for job in self.jobs() if not job.state.ended}
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
            self._ledger.check_idle(run)
            await asyncio.to_thread(partial(self._admission.rejudge, run, changes, failed=failed))
            return await self._queue(run, "rejudge", changes, priority, failed_only=failed)

    async def resume(self, run: str, changes: Mapping[str, Json] | None = None, *, priority: int = 0) -> Job:
        self._check_ready()
        job = self._ledger.latest(run)
        if job is not None and job.state is JobState.PAUSED:
            if changes:
                raise RunStateError(f"run '{run}' is paused: let it go on first, or use `limit` for limits.")
            return await self._unpause(job)
        async with self._door:
            self._ledger.check_idle(run)
            if job is not None and job.kind == "rejudge" and job.state is not JobState.DONE and not changes:
                # What was asked for last is what goes on.
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
        job = await self._ledger.submit(run, kind, settings, priority, failed_only=failed_only)
        if self._turns.out_of_money:
            await self._ledger.move(job, JobState.QUEUED, WORDS["money"])
        await self._turns.fill()
        return self._ledger.get(job.id)

    # ------------------------------------------------------------ steering

    async def pause(self, run: str) -> Job:
        job = self._ledger.open(run)
        if job.state is JobState.PAUSED:
            return job
        at = self._turns.at(job)
        if at is not None:
            at.wanted = True
        message = "by hand; calls under way finish" if at is not None else "by hand"
        moved = await self._ledger.move(job, JobState.PAUSED, message)
        if at is not None:
            await self._turns.follow(at)
        await self._turns.fill()
        return moved

    async def _unpause(self, job: Job) -> Job:
        """To the queue, where it has its turn again."""
        await self._ledger.move(job, JobState.QUEUED)
        await self._turns.fill()
        return self._ledger.get(job.id)

    async def cancel(self, run: str) -> Job:
        job = self._ledger.open(run)
        at = self._turns.at(job)
        if at is not None:
            at.end("cancelled")
        # Told at once, also to the store: a service that is killed meanwhile does not go on with it.
        message = "cancelled; calls under way finish and are kept" if at else "cancelled before it began"
        moved = await self._ledger.move(job, JobState.CANCELLED, message, exit_code=130)
        await self._turns.fill()
        return moved

    async def limit(self, run: str, changes: Mapping[str, Json]) -> Sequence[str]:
        limits = limits_of(changes)
        job = self._ledger.latest(run)
        asked = await asyncio.to_thread(partial(api.limit, run, store=self.config.store, limits=limits))
        if job is not None and job.state is JobState.QUEUED and job.kind == "run":
            # It may begin with its own settings.
            await self._ledger.change(job, settings=_with_limits(job.settings, changes))
        return asked.limits

    async def prioritize(self, run: str, priority: int) -> Job:
        check_priority(priority)
        job = self._ledger.open(run)
        self._turns.weigh(job, priority)
        return await self._ledger.change(job, priority=priority)

    # ------------------------------------------------------------ looking

    def jobs(self) -> list[Job]:
        return self._ledger.all()

    def job(self, run: str) -> Job:
        return self._ledger.known(run)

    def progress(self, run: str) -> Progress | None:
        return self._turns.progress(run)

    def history(self, run: str) -> Sequence[Progress]:
        return self._turns.history(run)

    def logs(self, run: str) -> Sequence[str]:
        return self._book.lines(run)

    def subscribe(self, run: str | None = None) -> Listener:
        return self._listeners.subscribe(run)


def _with_limits(settings: Mapping[str, Json], changes: Mapping[str, Json]) -> dict[str, Json]:
    """A job's settings with other limits, which are known to fit; those of a panel stand in its list."""
    found = dict(settings)
    for name, value in changes.items():
        if not isinstance(value, Mapping):
            found[name] = value
            continue
        judge = found.get("judge") or {}
        if name in ("judge", judge.get("name") or judge.get("model")):
            found["judge"] = {**judge, **value}
        if "panel" in found:
            found["panel"] = [
                {**one, **value} if name == (one.get("name") or one.get("model")) else one
                for one in found["panel"]
            ]
    return found


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancelled, and gone; raises what ended it before."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@contextlib.contextmanager
def _heard(book: Logbook) -> Iterator[None]:
    """Let a logbook hear what the package has to say."""
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
