"""Whose turn it is: up to so many runs at work, the next by priority and age, each with what it needs of the
process, and what their ends mean for their jobs."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.shared import Party, SharedLimits, SharedLine, weight_of
from mmbu_async.errors import ConfigError, StoreError
from mmbu_async.pipeline.beside import Beside
from mmbu_async.pipeline.budget import Budget
from mmbu_async.pipeline.hosting import Host
from mmbu_async.pipeline.logs import RUN
from mmbu_async.pipeline.opening import open_existing
from mmbu_async.service.admission import Admission
from mmbu_async.service.jobs import Job, JobState, Progress, progress_data
from mmbu_async.service.ledger import Ledger
from mmbu_async.service.listeners import Listeners
from mmbu_async.service.watching import History, Logbook, measure
from mmbu_async.service.work import AtWork, Ending, Outcome, watching, work

REMEMBERED = 200
"""Runs whose progress and log are kept in memory after they have ended."""

log = logging.getLogger(__name__)


class Turns:
    """The runs of a service that are at work."""

    def __init__(
        self,
        *,
        most: int,
        max_cost: float | None,
        look_s: float,
        clock: Callable[[], float],
        ledger: Ledger,
        listeners: Listeners,
        book: Logbook,
        admission: Admission,
        shared: SharedLimits,
    ) -> None:
        """`most`: runs at work at once; `max_cost`: US dollars that all of them may cost."""
        self._most = most
        self._look_s = look_s
        self._clock = clock
        self._ledger = ledger
        self._listeners = listeners
        self._book = book
        self._admission = admission
        self._shared = shared
        self._purse = Budget(max_cost, 0.0, self._money_is_used_up)
        self._beside = Beside()
        self._at_work: dict[int, AtWork] = {}
        self._later: dict[int, float] = {}
        """Job -> when it may be tried again."""
        self._histories: dict[str, History] = {}
        self._turn = asyncio.Lock()
        # A run's context is that in which the service began, not that of who asked for it.
        self._context = contextvars.copy_context()
        self.closed = True
        """Nothing begins."""
        self.out_of_money = False

    def open(self, spent: float) -> None:
        """Let jobs begin. `spent`: US dollars that the service's runs have cost before."""
        self._purse.spent = spent
        self.out_of_money = self._purse.cap is not None and spent >= self._purse.cap
        self.closed = False

    def at(self, job: Job) -> AtWork | None:
        return self._at_work.get(job.id)

    def history(self, run: str) -> Sequence[Progress]:
        history = self._histories.get(run)
        return list(history.points) if history is not None else []

    def progress(self, run: str) -> Progress | None:
        history = self._histories.get(run)
        return history.points[-1] if history is not None and history.points else None

    def weigh(self, job: Job, priority: int) -> None:
        """Another share of the limits for a run that is at work."""
        at = self._at_work.get(job.id)
        if at is not None:
            self._shared.weigh(at.party, weight_of(priority))

    # ------------------------------------------------------------ beginning and ending

    async def fill(self) -> None:
        """Let jobs begin, or go on where they were paused, while there is room."""
        async with self._turn:
            while not (self.closed or self.out_of_money) and self._ledger.running() < self._most:
                now = self._clock()
                self._later = {job: when for job, when in self._later.items() if when > now}
                leaving = [at.job_id for at in self._at_work.values() if at.ending is not None]
                job = await self._ledger.claim(without=[*self._later, *leaving])
                if job is None:
                    return
                at = self._at_work.get(job.id)
                if at is None:
                    self._begin(job)
                else:
                    at.wanted = False
                    await self.follow(at)

    def end_all(self, why: Ending) -> None:
        for at in self._at_work.values():
            at.end(why)

    async def close(self) -> None:
        """Let nothing begin, and wait for the ends of all that has begun."""
        self.closed = True
        async with self._turn:
            # Whoever was about to begin has begun by now.
            self.end_all("stopping")
        await asyncio.gather(*(at.task for at in self._at_work.values() if at.task is not None))

    def abort(self) -> None:
        """Do not wait for calls under way: what they would bring is lost."""
        self.closed = True
        for at in self._at_work.values():
            if at.task is not None:
                at.end("stopping")
                at.task.cancel()

    def _begin(self, job: Job) -> None:
        party = Party(weight=weight_of(job.priority))
        names = self._admission.names

        def shared(settings: CallSettings, key: str) -> tuple[SharedLine, Party]:
            # The last door before a key goes out, whoever made the run.
            if names.endpoint_of(settings) is None:
                raise ConfigError(
                    f"{settings.model} has no endpoint of this service: set `endpoint` to the name of one."
                )
            return self._shared.line(settings.url, key, names.key_limits(settings)), party

        host = Host(shared=shared, purse=self._purse, beside=self._beside, threads=True)
        at = AtWork(job_id=job.id, run=job.run, store=self._admission.store, party=party, host=host)
        self._at_work[job.id] = at
        # To the end: who worked last is forgotten last.
        self._histories[job.run] = self._histories.pop(job.run) if job.run in self._histories else History()
        self._forget_old()
        at.task = asyncio.create_task(
            self._work(job, at), name=f"run {job.run}", context=self._context.copy()
        )

    async def _work(self, job: Job, at: AtWork) -> None:
        RUN.set(job.run)
        watch = watching(at, every_s=self._look_s, see=self._see, follow=self.follow)
        try:
            outcome = await work(job, at, self._admission, watch)
        except asyncio.CancelledError:
            # Aborted: the job is found again, as after a kill.
            if not self.closed:
                raise
            return
        finally:
            del self._at_work[job.id]
        try:
            await self._settle(self._ledger.get(job.id), outcome)
            await self.fill()
        except StoreError as error:
            log.error("what has become of run '%s' cannot be noted: %s", job.run, error)

    async def _settle(self, job: Job, outcome: Outcome) -> None:
        if outcome.again_s is not None:
            self._later[job.id] = self._clock() + outcome.again_s
        state = outcome.state
        if state is JobState.QUEUED and job.state is not JobState.RUNNING:
            # It was paused, and stays so, or was cancelled when the service stopped already.
            return
        why = f": {outcome.message}" if outcome.message else ""
        log.info("job %d of run '%s' is %s%s", job.id, job.run, state, why)
        await self._ledger.move(job, state, outcome.message, exit_code=outcome.exit_code)

    def _money_is_used_up(self) -> None:
        log.error("the money cap of the service, %g US dollars, is reached", self._purse.cap)
        self.out_of_money = True
        self.end_all("money")

    def _forget_old(self) -> None:
        busy = {at.run for at in self._at_work.values()}
        idle = [run for run in self._histories if run not in busy]
        for run in idle[: max(0, len(self._histories) - REMEMBERED)]:
            del self._histories[run]
            self._book.forget(run)

    # ------------------------------------------------------------ beside a run at work

    async def follow(self, at: AtWork) -> None:
        """Ask a run for the pause that is wanted, as another process would; and let the job's state be what
        the run does, whoever asked for it."""
        job = self._ledger.get(at.job_id)
        if at.monitor is None or at.ending is not None:
            return
        if at.wanted is not None and at.wanted == at.monitor.paused:
            at.wanted = None
        elif at.wanted is not None:
            await asyncio.to_thread(partial(_ask_pause, at, paused=at.wanted))
        elif at.monitor.paused and job.state is JobState.RUNNING:
            await self._ledger.move(job, JobState.PAUSED, "from a terminal; calls under way finish")
        elif not at.monitor.paused and job.state in (JobState.PAUSED, JobState.QUEUED):
            await self._ledger.move(job, JobState.RUNNING)

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


def _ask_pause(at: AtWork, *, paused: bool) -> None:
    """Leave it in the store, where the run looks once a second."""
    with open_existing(at.store) as store:
        store.ask(store.run(at.run).id, paused=paused, now=time.time())
