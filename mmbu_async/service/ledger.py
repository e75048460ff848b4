"""The jobs of a service: those in the store, a copy of them at hand, and a word to whoever listens.

What is in the store is the truth: a change is a transaction there before it is told here. One thread does it,
so that changes come in the order in which they were asked for and none keeps the event loop waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from mmbu_async.errors import ConfigError, RunNotFoundError, RunStateError, StoreLockedError
from mmbu_async.model import Json
from mmbu_async.service.jobs import Job, JobKind, JobState, job_data
from mmbu_async.service.listeners import Listeners
from mmbu_async.store.jobs import Jobs
from mmbu_async.store.lease import LeaseOwner

T = TypeVar("T")

PRIORITIES = 2**31
"""More than anybody will count to, and less than the store can hold."""


class Ledger:
    """Use as an async context manager."""

    def __init__(
        self, store: Path, listeners: Listeners, owner: LeaseOwner, clock: Callable[[], float]
    ) -> None:
        self._path = store
        self._listeners = listeners
        self._owner = owner
        self._clock = clock
        self._stack = AsyncExitStack()
        self._all: dict[int, Job] = {}
        self._latest: dict[str, int] = {}
        self.held = False
        """Whether this is the service of the store."""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._thread = stack.enter_context(ThreadPoolExecutor(1, "jobs"))
            opened = await self._do(partial(Jobs.open, self._path))
            self._jobs = stack.enter_context(opened)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def _do(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    # ------------------------------------------------------------ being the service of the store

    async def take(self) -> bool:
        """Be the service of this store, and find its jobs. False: one of another machine was, and has left
        without a word; it is silent for a minute before anybody may follow. Raises StoreLockedError where a
        process of this machine is."""
        try:
            await self._do(partial(self._jobs.take, self._owner, self._clock()))
        except StoreLockedError:
            if await self._do(partial(self._jobs.holder_is_here, self._owner)):
                raise
            return False
        await self._do(partial(self._jobs.recover, "goes on after the service has started again"))
        for job in await self._do(self._jobs.all):
            self._note(job)
        self.held = True
        return True

    async def beat(self) -> bool:
        """A sign of life. False: another service has taken the store over, and nothing is noted any more."""
        self.held = await self._do(partial(self._jobs.beat, self._owner, self._clock())) and self.held
        return self.held

    async def leave(self) -> None:
        if self.held:
            self.held = False
            await self._do(partial(self._jobs.leave, self._owner))

    async def cost(self) -> float:
        """US dollars that the runs of all jobs have cost, as far as it is known."""
        return await self._do(self._jobs.cost)

    # ------------------------------------------------------------ looking

    def all(self) -> list[Job]:
        """The newest first."""
        return sorted(self._all.values(), key=lambda job: job.id, reverse=True)

    def get(self, job_id: int) -> Job:
        return self._all[job_id]

    def latest(self, run: str) -> Job | None:
        """Of the jobs of a run."""
        return self._all.get(self._latest.get(run, 0))

    def known(self, run: str) -> Job:
        """The same; raises RunNotFoundError where there is none."""
        job = self.latest(run)
        if job is None:
            raise RunNotFoundError(f"the service has had no job for a run '{run}'.")
        return job

    def open(self, run: str) -> Job:
        """The run's job that has not ended. Raises RunStateError where it has."""
        job = self.known(run)
        if job.state.ended:
            raise RunStateError(f"run '{run}' has ended ({job.state}); a resume makes another job of it.")
        return job

    def check_idle(self, run: str) -> None:
        """Raises RunStateError where the run has a job that has not ended."""
        job = self.latest(run)
        if job is not None and not job.state.ended:
            raise RunStateError(
                f"run '{run}' is {job.state} already (job {job.id}): wait for it, or cancel it first."
            )

    def running(self) -> int:
        return sum(job.state is JobState.RUNNING for job in self._all.values())

    # ------------------------------------------------------------ changing

    async def submit(
        self,
        run: str,
        kind: JobKind,
        settings: Mapping[str, Json],
        priority: int,
        *,
        failed_only: bool = False,
    ) -> Job:
        check_priority(priority)
        submit = partial(
            self._jobs.submit,
            run,
            kind=kind,
            settings=settings,
            priority=priority,
            failed_only=failed_only,
            now=self._clock(),
        )
        return self._note(await self._do(submit))

    async def claim(self, *, without: Collection[int]) -> Job | None:
        """Let the next job be at work."""
        job = await self._do(partial(self._jobs.claim, now=self._clock(), without=without))
        return None if job is None else self._note(job)

    async def move(
        self, job: Job, state: JobState, message: str = "", *, exit_code: int | None = None
    ) -> Job:
        """Another state, unless the job has got one meanwhile from which it does not go there. An end may
        correct a cancellation: its last calls may have been all that was left to do."""
        if not self.held:
            return job
        of = {job.state, JobState.CANCELLED} if state.ended else {job.state}
        move = partial(
            self._jobs.move, job.id, state, of=of, message=message, exit_code=exit_code, now=self._clock()
        )
        moved = await self._do(move)
        return self._note(moved) if moved is not None else self._all[job.id]

    async def change(self, job: Job, **values: Any) -> Job:
        """Another priority, or other settings."""
        return self._note(await self._do(partial(self._jobs.change, job.id, **values)))

    def _note(self, job: Job) -> Job:
        self._all[job.id] = job
        self._latest[job.run] = max(job.id, self._latest.get(job.run, 0))
        self._listeners.tell("job", job.run, job_data(job))
        return job


def check_priority(priority: int) -> None:
    """Raises ConfigError."""
    if not -PRIORITIES <= priority < PRIORITIES:
        raise ConfigError(f"priority = {priority}: is beyond all bounds; ten steps up or down are enough.")
