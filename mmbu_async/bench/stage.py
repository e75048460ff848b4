"""One stage: a load on one endpoint from its begin until the last request has its record.

The driver decides when requests are meant to start; nothing that the endpoint does moves those times. What
keeps a request from starting then, be it a cap of our own or a late event loop, is waiting that its record
shows. A stage ends by count, time, money, a median that is known well enough, an endpoint that is asked for
more than it serves, or a word from outside; requests under way are then waited for.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mmbu_async.bench.arrivals import starts
from mmbu_async.bench.ask import Ask, Work
from mmbu_async.bench.gaps import Gaps
from mmbu_async.bench.measured import EARLY_ENDS, End, Measured
from mmbu_async.bench.money import Money
from mmbu_async.bench.plan import Closed, Open, StagePlan
from mmbu_async.bench.record import Phase, Record, Sent
from mmbu_async.bench.saturation import oversaturated
from mmbu_async.bench.sender import Sender
from mmbu_async.bench.tightness import tight
from mmbu_async.bench.watching import Watcher
from mmbu_async.model import FATAL_KINDS

NAP_S = 0.25
"""Longest sleep before a start, so that an ended stage does not wait for it."""
EARLY_S = 0.0005
"""Timers of event loops have steps of a millisecond: this near, a request starts now."""
DEAD = 50
"""Requests in a row without any reply after which nothing is to be learnt."""
LOOK_EVERY = 4
"""Ticks between two looks at whether the stage should end early."""


def _nobody(ask: Ask, sent: Sent) -> None:
    return


@dataclass(slots=True, kw_only=True)
class Stage:
    """A stage that runs once. `keep` is handed each request that has ended, with what was asked."""

    plan: StagePlan
    sender: Sender
    work: Work
    money: Money
    random: Random
    clock: Callable[[], float] = time.perf_counter
    wall: Callable[[], float] = time.time
    cpu: Callable[[], float] = time.thread_time
    keep: Callable[[Ask, Sent], None] = _nobody
    ended: End | None = None
    records: list[Record] = field(default_factory=list)
    gaps: Gaps = field(default_factory=Gaps)
    began: float = 0.0
    """On the clock."""
    _began_at: float = 0.0
    _end_s: float = 0.0
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _issued: int = 0
    _issued_counted: int = 0
    _failing: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _waiting: set[asyncio.Task[Any] | None] = field(default_factory=set)
    _finished: array[float] = field(default_factory=lambda: array("d"))
    _latencies: array[float] = field(default_factory=lambda: array("d"))
    _firsts: array[float] = field(default_factory=lambda: array("d"))
    _watcher: Watcher | None = None

    @property
    def outstanding(self) -> int:
        """Requests that were due and have not ended."""
        return self._issued - len(self.records)

    async def run(self) -> Measured:
        """Until the last request has its record."""
        self.began, self._began_at = self.clock(), self.wall()
        self.sender.due = lambda: self.outstanding
        self._watcher = Watcher(
            lambda: (self.outstanding, self.sender.in_flight),
            clock=self.clock,
            cpu=self.cpu,
            each_tick=self._look,
        )
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watcher.run())
            timer = None
            if (seconds := self.plan.ends.seconds) is not None:
                timer = asyncio.get_running_loop().call_later(seconds, self.end, End.TIME)
            self._drive(group)
            await self._over.wait()
            if timer is not None:
                timer.cancel()
            await self._drain()
            watching.cancel()
        return self.measured()

    def end(self, why: End) -> None:
        """Start no further request; the first reason counts."""
        if self.ended is not None:
            return
        self.ended = why
        self._end_s = self.clock() - self.began
        if why is End.TIME and self.plan.ends.seconds is not None:
            self._end_s = self.plan.ends.seconds
        if why in EARLY_ENDS:
            for task in self._waiting:
                if task is not None:
                    task.cancel()
        self._over.set()

    def measured(self) -> Measured:
        """As it stands."""
        watcher = self._watcher
        return Measured(
            plan=self.plan,
            target=self.sender.target.label,
            began_at=self._began_at,
            begin_s=self._begin_s,
            end_s=self._end_s,
            ended=self.ended or End.INTERRUPTED,
            records=tuple(sorted(self.records, key=lambda record: record.number)),
            gaps=self.gaps,
            ticks=tuple(watcher.ticks) if watcher is not None else (),
            lags=watcher.lags if watcher is not None else Gaps().whole(),
            drained_s=max(0.0, self.clock() - self.began - self._end_s),
        )

    @property
    def _begin_s(self) -> float:
        return max(self.plan.warmup.seconds, self.plan.ramp_s)

    # ------------------------------------------------------------ driving

    def _drive(self, group: asyncio.TaskGroup) -> None:
        load = self.plan.load
        if isinstance(load, Closed):
            # All of them before the first one runs: a burst that starts one by one is none.
            for user in range(load.concurrency):
                at = self.began + self.plan.ramp_s * user / load.concurrency
                self._spawn(group, self._user(at))
        else:
            self._spawn(group, self._dispatch(load, group))

    def _spawn(self, group: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> None:
        task = group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _user(self, at: float) -> None:
        """One request after the other."""
        intended = at
        await self._until(intended)
        while (issued := self._issue(self.work.next(), intended)) is not None:
            await self._send(*issued, intended)
            intended = self.clock()

    async def _dispatch(self, load: Open, group: asyncio.TaskGroup) -> None:
        """Each request at its time, in a task of its own."""
        cap = asyncio.Semaphore(load.most_in_flight) if load.most_in_flight is not None else None
        seconds = self.plan.ends.seconds
        for offset in starts(load.rate, load.arrivals, self.random, ramp_s=self.plan.ramp_s):
            if seconds is not None and offset >= seconds:
                # The timer ends the stage; a start beyond it is none of this stage.
                await self._over.wait()
                return
            intended = self.began + offset
            # Made before its time has come, so that making it delays nothing.
            ask = self.work.next()
            await self._until(intended)
            if (issued := self._issue(ask, intended)) is None:
                return
            self._spawn(group, self._one(*issued, intended, cap))

    async def _one(
        self, ask: Ask, number: int, held: float, intended: float, cap: asyncio.Semaphore | None
    ) -> None:
        if cap is None:
            await self._send(ask, number, held, intended)
            return
        await self._turn(cap, ask, number, held, intended)
        try:
            await self._send(ask, number, held, intended)
        finally:
            cap.release()

    async def _turn(
        self, cap: asyncio.Semaphore, ask: Ask, number: int, held: float, intended: float
    ) -> None:
        """Wait under our own cap, which serves in order. Who must not start any more has a record all the
        same."""
        task = asyncio.current_task()
        self._waiting.add(task)
        try:
            await cap.acquire()
        except asyncio.CancelledError:
            waited = self.clock() - intended
            record = Record(
                number=number,
                intended_s=intended - self.began,
                delay_s=waited,
                phase=Phase.UNSENT,
                message="the stage ended before it could start",
                row=ask.row.sample.id if ask.row is not None else "",
            )
            self.money.give_back(held)
            self._lost(record)
            raise
        finally:
            self._waiting.discard(task)

    def _issue(self, ask: Ask, intended: float) -> tuple[Ask, int, float] | None:
        """The request, its number, and the money set aside for it; None: nothing is started any more."""
        if self.ended is not None:
            return None
        held = self.money.hold(self.sender.target, ask)
        if held is None:
            self.end(End.COST)
            return None
        number = self._issued
        self._issued += 1
        self._issued_counted += self._counts(number, intended - self.began)
        if self._issued == self.plan.ends.requests:
            self.end(End.COUNT)
        return ask, number, held

    def _counts(self, number: int, intended_s: float) -> bool:
        return number >= self.plan.warmup.requests and intended_s >= self._begin_s

    async def _until(self, moment: float) -> None:
        """Until then on the clock, or until the stage is over."""
        # A moment is waited for, not a change of anything: there is no event.
        while self.ended is None and (left := moment - self.clock()) > EARLY_S:  # noqa: ASYNC110
            await asyncio.sleep(min(left, NAP_S))

    # ------------------------------------------------------------ what comes back

    async def _send(self, ask: Ask, number: int, held: float, intended: float) -> None:
        sent = None
        try:
            sent = await self.sender.send(
                ask, number=number, intended=intended, stage_began=self.began, lost=self._lost
            )
        finally:
            self.money.settle(self.sender.target, held, ask, sent)
        self._keep(ask, sent)

    def _keep(self, ask: Ask, sent: Sent) -> None:
        record = sent.record
        self.records.append(record)
        self.keep(ask, sent)
        if record.ok:
            self._failing = 0
            if self._counts(record.number, record.intended_s):
                self._finished.append(record.ended_s)
                self._latencies.append(record.latency_s)
                self._firsts.append(record.first_token_s or record.latency_s)
                self.gaps.add(record.intended_s, sent.gaps_s)
            return
        if sent.failure_kind in FATAL_KINDS:
            self.end(End.REFUSED)
        # A 429 is an answer: the endpoint lives.
        self._failing += record.phase is not Phase.RATE_LIMIT
        if self._failing >= DEAD:
            self.end(End.DEAD)

    def _lost(self, record: Record) -> None:
        self.records.append(record)

    async def _drain(self) -> None:
        """Wait for what is under way, but not for ever."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.plan.drain_s)
        for task in self._tasks:
            task.cancel()

    def _look(self) -> None:
        """Once a second or so: is enough known, or nothing more to be learnt?"""
        watcher, plan = self._watcher, self.plan
        if self.ended is not None or watcher is None or len(watcher.ticks) % LOOK_EVERY:
            return
        if plan.ends.interval is not None and tight(self._latencies, plan.ends.interval):
            self.end(End.INTERVAL)
        elif isinstance(plan.load, Open) and plan.watch_saturation:
            ticks = [tick for tick in watcher.ticks if tick.at_s >= self._begin_s]
            outstanding = ([tick.at_s for tick in ticks], [float(tick.outstanding) for tick in ticks])
            if oversaturated(
                outstanding,
                (self._finished, self._firsts),
                arrived=self._issued_counted,
                arrival_variance=plan.load.arrivals.variance,
            ):
                self.end(End.SATURATED)
