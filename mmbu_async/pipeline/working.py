"""A session from beginning to end: lease, signals, engine, scores, and a word on how it ended."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random

from mmbu_async.config import JudgeConfig, RunConfig
from mmbu_async.endpoints.safety import warnings
from mmbu_async.errors import (
    BudgetReachedError,
    ClusterError,
    ConfigError,
    EndpointDownError,
    EndpointError,
    InterruptedRunError,
    MmbuError,
    StoreLockedError,
)
from mmbu_async.images import ImageLimits
from mmbu_async.makers import same_makers, warning
from mmbu_async.model import ImageRef, Json
from mmbu_async.pipeline.batch_plan import Part, call_back, parts
from mmbu_async.pipeline.batch_run import run_batches
from mmbu_async.pipeline.hosting import Host
from mmbu_async.pipeline.judges import Judge, Judges, find_judges
from mmbu_async.pipeline.logs import RUN
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.opening import Rules, leased, needs_judge, stored_config
from mmbu_async.pipeline.run import Session, Watch, run_session
from mmbu_async.pipeline.scoring import any_to_ask, score_run
from mmbu_async.pipeline.steering import Steering, changed_limits, with_limits
from mmbu_async.pipeline.stop import Stop
from mmbu_async.store import LeaseBeat, LeaseOwner, RunRecord, Store, Writer
from mmbu_async.store.lease import BEAT_S
from mmbu_async.version import VERSION

log = logging.getLogger(__name__)

_ENDINGS: tuple[tuple[type[MmbuError], str], ...] = (
    (BudgetReachedError, "budget"),
    (InterruptedRunError, "interrupted"),
    (EndpointError, "refused"),
    (EndpointDownError, "endpoint down"),
    (ClusterError, "cluster"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a session is to do."""

    kind: str
    """`run`, `resume`, `rejudge` or `cancel`."""
    infer: bool = True
    judge_anew: bool = False
    """Look also at rows that have a verdict, and publish these judges' verdicts when all are asked."""
    call_back: bool = False
    """Only cancel the batches that are out, and take what they have done."""
    failed_only: bool = False
    """Of a rejudge: leave rows alone that have a verdict, whatever reading of the reply it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One session's work on one run."""

    store: Store
    run: RunRecord
    config: RunConfig
    rules: Rules
    work: Work
    watch: Watch
    random: Random
    read_image: Callable[[ImageRef], bytes]
    limits: ImageLimits
    kept: Mapping[str, Json]
    """The run's settings as they were in the store when `config` was made of them."""
    stamp: str = ""
    """Of the data, by which another machine knows whether it sees the same; '': it reads none."""
    owner: LeaseOwner = field(default_factory=LeaseOwner.current)
    host: Host = field(default_factory=Host)

    async def work_on(self) -> MmbuError | None:
        """Work until nothing is open or something stops it; returns what stopped it.

        Raises MissingKeyError before anything is done, and StoreLockedError where another process is at work.
        """
        RUN.set(self.run.name)
        judged = await self.host.apart(partial(needs_judge, self.store, self.run, self.rules))
        if self.work.infer:
            for side in (self.config, *(self.config.judges if judged else ())):
                side.api_key()
        judges = await self.host.apart(
            partial(find_judges, self.store, self.config, self.rules.judge_prompt_sha256)
        )
        if self.work.judge_anew:
            judges = await self.host.apart(partial(self._with_need, judges))
        self._warn([judge.settings for judge in judges.asked if judged and judge.needed])
        lease = ExitStack()
        try:
            await self.host.apart(lambda: lease.enter_context(leased(self.store, self.run, self.owner)))
            config = await self.host.apart(self._settled)
            return await replace(self, config=config)._work_on(judges, judged)
        finally:
            await self.host.apart(lease.close)

    def _with_need(self, judges: Judges) -> Judges:
        """A judge whose verdicts are all there is not asked by a rejudge, and needs no key."""
        benchmark, fill = self.rules.benchmark, self.rules.fill

        def needed(judge: Judge) -> bool:
            anew = not self.work.failed_only
            return any_to_ask(self.store, self.run, benchmark, fill, judge.id, judged=anew)

        return replace(judges, asked=tuple(replace(judge, needed=needed(judge)) for judge in judges.asked))

    def _settled(self) -> RunConfig:
        """The session's settings, kept with the run unless it is only judged anew.

        `mmbu limit` may have changed limits after they were read and before the lease was taken, while rows
        were validated, say. Those win: whoever asked was told that they hold.
        """
        config = self.config

        def settle(now: Mapping[str, Json]) -> Mapping[str, Json]:
            nonlocal config
            config = with_limits(config, changed_limits(self.kept, now, config))
            return now if self.work.judge_anew else stored_config(config)

        self.store.settle_run_config(self.run.id, settle)
        return config

    async def _work_on(self, judges: Judges, judged: bool) -> MmbuError | None:
        # What has been asked since the lease was taken is not done yet.
        control = await self.host.apart(partial(self.store.control, self.run.id))
        steering = Steering(run_id=self.run.id, config=self.config, seen=control.seen)
        reason = await self._session(judges, judged, steering)
        published = self.work.judge_anew and reason is None
        own = self.run.judge.id if self.run.judge is not None else None
        score = partial(
            score_run,
            self.store,
            self.run,
            self.rules.benchmark,
            self.rules.fill,
            judge_id=judges.deciding if published else own,
            only_stale=True,
            package_version=VERSION,
            # With the limits that were asked for meanwhile.
            publish=stored_config(steering.config) if published else None,
        )
        await self.host.apart(score)
        if isinstance(reason, InterruptedRunError) and await self.host.apart(self._complete):
            log.info("nothing was left to do when the last calls had finished")
            return None
        return reason

    def _complete(self) -> bool:
        """Whether every row has its score. A rejudge that is interrupted has not put its own into force."""
        counts = self.store.counts(self.run.id)
        return not self.work.judge_anew and counts.scored == counts.selected

    def _warn(self, judges: Sequence[JudgeConfig]) -> None:
        """Before a key goes out and money is spent. Raises MissingKeyError where one is missing."""
        sides = (*([self.config] if self.work.infer else []), *judges)
        for text in dict.fromkeys(text for side in sides for text in warnings(side, side.api_key())):
            log.warning("%s", text)
        # The report will say this too.
        for judge, maker in same_makers(self.config.model, (judge.model for judge in judges)):
            log.warning("%s", warning(self.config.model, judge, maker))

    async def _session(self, judges: Judges, judged: bool, steering: Steering) -> MmbuError | None:
        begin = partial(
            self.store.begin_session,
            self.run.id,
            kind=self.work.kind,
            owner=self.owner,
            package_version=VERSION,
            config=stored_config(self.config),
            now=time.time(),
        )
        session_id = await self.host.apart(begin)
        stop = self.host.stop
        ended = "aborted"
        try:
            again = "the same `mmbu rejudge`" if self.work.judge_anew else f"`mmbu resume {self.run.name}`"
            with self.host.signals(again):
                await self._engine(session_id, judges, judged, stop, steering)
            ended = _ending(stop.reason)
        except BaseExceptionGroup as group:
            ended = "error"
            raise _only_error(group) from group
        finally:
            end = partial(self.store.end_session, session_id, ended, now=time.time())
            await self.host.apart(end)
        return stop.reason

    async def _engine(
        self, session_id: int, judges: Judges, judged: bool, stop: Stop, steering: Steering
    ) -> None:
        counts = await self.host.apart(partial(self.store.counts, self.run.id))
        monitor = Monitor(run=self.run.name, total=counts.selected, done_before=counts.completed)
        batches = await self.host.apart(partial(self.store.batches, self.run.id, only_open=True))
        out = {batch.judge_id for batch in batches}
        planned = (
            call_back([judge.id for judge in judges.asked], out)
            if self.work.call_back
            else parts(
                model=bool(self.config.batch) if self.work.infer else None,
                judges=[(judge.id, judged and bool(judge.settings.batch)) for judge in judges.asked],
                out=out,
            )
        )
        for part in planned:
            await self._part(part, session_id, judges, judged, stop, steering, monitor)
            if stop:
                return

    async def _part(
        self,
        part: Part,
        session_id: int,
        judges: Judges,
        judged: bool,
        stop: Stop,
        steering: Steering,
        monitor: Monitor,
    ) -> None:
        session = await self.host.apart(partial(self._session_of, part, session_id, judges, judged))

        async def heartbeat(writer: Writer) -> None:
            while True:
                await asyncio.sleep(BEAT_S)
                beat = LeaseBeat(run_id=self.run.id, owner=self.owner, at=time.time())
                if not await writer.write(beat):
                    text = f"run '{self.run.name}' was taken over by another process; stopped here."
                    stop.request(StoreLockedError(text))

        run_part = partial(run_batches, cancel=part.cancel) if part.batched else run_session
        await run_part(
            session,
            monitor,
            stop=stop,
            watch=self.watch,
            heartbeat=heartbeat,
            steer=steering.follow,
            random=self.random,
        )

    def _session_of(self, part: Part, session_id: int, judges: Judges, judged: bool) -> Session:
        asked = tuple(judge for judge in judges.asked if judge.id in part.judges)
        sides = {judge.id for judge in asked} | ({None} if part.model else set())
        elsewhere = (
            batch.worst_usd or 0.0
            for batch in self.store.batches(self.run.id, only_open=True)
            if not (part.batched and batch.judge_id in sides)
        )
        return Session(
            config=self.config,
            store=self.store.path,
            run_id=self.run.id,
            session_id=session_id,
            judges=asked,
            reserved=sum(elsewhere),
            benchmark=self.rules.benchmark,
            read_image=self.read_image,
            image_limits=self.limits,
            data_stamp=self.stamp,
            fill=self.rules.fill,
            read_verdict=self.rules.read_verdict,
            before=self.store.totals(self.run.id),
            proven=self.store.counts(self.run.id).completed > 0,
            infer=part.model,
            judge=judged,
            rejudge=self.work.judge_anew and not self.work.failed_only,
            host=self.host,
        )


def _ending(reason: MmbuError | None) -> str:
    if reason is None:
        return "done"
    return next((word for kind, word in _ENDINGS if isinstance(reason, kind)), "stopped")


def _only_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error behind a task group's bundle: ours where there is one, so that users see a sentence."""
    leaves: list[BaseException] = []
    queue: list[BaseException] = [group]
    while queue:
        error = queue.pop()
        if isinstance(error, BaseExceptionGroup):
            queue.extend(error.exceptions)
        else:
            leaves.append(error)
    for leaf in leaves:
        if isinstance(leaf, OSError) and leaf.errno in (errno.EMFILE, errno.ENFILE):
            what = f" for {leaf.filename}" if leaf.filename else ""
            return ConfigError(
                f"there was no file descriptor left{what}; everything so far is kept: raise the limit "
                "(`ulimit -n`) or lower --concurrency, then resume."
            )
    return next((leaf for leaf in leaves if isinstance(leaf, MmbuError)), leaves[0])
