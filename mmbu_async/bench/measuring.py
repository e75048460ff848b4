"""Stages one after the other, each stored as soon as it has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from mmbu_async.bench.ask import Ask, Work
from mmbu_async.bench.found import Found
from mmbu_async.bench.measured import End, Measured
from mmbu_async.bench.money import Money
from mmbu_async.bench.plan import Closed, Ends, Load, StagePlan, Warmup
from mmbu_async.bench.preflight import FIRST_WAIT_S, TRIES, WORTH_ANOTHER, complaint, remarks
from mmbu_async.bench.quiet import no_long_collections
from mmbu_async.bench.record import Sent
from mmbu_async.bench.scoring import Scorer
from mmbu_async.bench.search import Search, SearchPlan, SpentError, warmup_of
from mmbu_async.bench.sender import Sender
from mmbu_async.bench.stage import Stage
from mmbu_async.bench.storing import PREFLIGHT, PROBE, STAGE, Kept, keep
from mmbu_async.errors import BudgetReachedError, EndpointDownError, EndpointError, MmbuError
from mmbu_async.model import FATAL_KINDS, Failure, FailureKind
from mmbu_async.pipeline.explain import explain
from mmbu_async.pipeline.stop import Stop
from mmbu_async.store.benches import Benches


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """An endpoint, and the requests it is sent."""

    sender: Sender
    work: Work

    @property
    def label(self) -> str:
        return self.sender.target.label


Tell = Callable[[str], None]
"""Says how far it got, in one line."""


def silent(line: str) -> None:
    """Says nothing."""


@dataclass(slots=True, kw_only=True)
class Measuring:
    """The running bench: what stages have in common."""

    lanes: tuple[Lane, ...]
    benches: Benches
    bench_id: int
    money: Money
    stop: Stop
    seed: int
    scorer: Scorer | None = None
    tell: Tell = silent
    clock: Callable[[], float] = time.perf_counter
    wall: Callable[[], float] = time.time
    cpu: Callable[[], float] = time.thread_time
    kept: list[Kept] = field(default_factory=list)
    _stage: Stage | None = None

    def __post_init__(self) -> None:
        self.stop.on_request(self._interrupt)

    async def preflight(self, lane: Lane) -> None:
        """One request. Raises the named error of an endpoint that cannot be measured."""
        plan = StagePlan(
            load=Closed(concurrency=1), ends=Ends(requests=1), warmup=Warmup(requests=1), drain_s=600.0
        )
        for number in range(TRIES):
            seen: list[Sent] = []
            measured = await self.stage(lane, plan, part=-1, role=PREFLIGHT, watch=seen.append)
            if self.stop:
                return
            if not measured.records:
                raise BudgetReachedError(
                    "the money cap does not pay for a single request at its worst: raise --max-cost."
                )
            record, kind = measured.records[0], seen[0].failure_kind if seen else None
            trouble = complaint(record, kind, lane.sender.target.settings)
            if trouble is None:
                for remark in remarks(record):
                    self.tell(f"{lane.label} {remark}")
                return
            if record.phase not in WORTH_ANOTHER or kind in FATAL_KINDS or number == TRIES - 1:
                raise trouble
            await asyncio.sleep(FIRST_WAIT_S * 2**number)

    async def parts(self, plans: Sequence[StagePlan], blocks: int) -> None:
        """Each load on each endpoint; where there are two, they take turns within it."""
        for place, plan in enumerate(plans):
            for lane_number, number in _turns(len(self.lanes), blocks):
                if self.stop:
                    return
                lane = self.lanes[lane_number]
                part = place * len(self.lanes) + lane_number
                measured = await self.stage(lane, plan, part=part, role=STAGE, turn=number)
                self.told(lane, measured)

    async def search(self, lane: Lane, plan: SearchPlan, drain_s: float) -> Found:
        """The highest load at which the objectives hold."""
        parts: dict[Load, int] = {}

        async def probe(load: Load, requests: int) -> Measured:
            if self.stop:
                raise SpentError
            stage = StagePlan(
                load=load,
                ends=Ends(requests=requests),
                warmup=warmup_of(load, requests),
                drain_s=drain_s,
            )
            part = parts.setdefault(load, len(parts))
            measured = await self.stage(lane, stage, part=part, role=PROBE, turn=len(self.kept))
            self.told(lane, measured)
            return measured

        return await Search(plan, probe).find()

    async def stage(
        self,
        lane: Lane,
        plan: StagePlan,
        *,
        part: int,
        role: str,
        turn: int = 0,
        watch: Callable[[Sent], None] | None = None,
    ) -> Measured:
        """One block, stored when it has ended. What ends the bench asks `stop`; who watches the requests sees
        to refusals too."""
        number = len(self.kept)
        scorer = self.scorer if role != PREFLIGHT else None

        def see(ask: Ask, sent: Sent) -> None:
            if scorer is not None:
                scorer.keep(ask, sent)
            if watch is not None:
                watch(sent)
            elif sent.failure_kind in FATAL_KINDS:
                self._refused(lane, sent)

        # The same load has the same schedule on either endpoint.
        stage = Stage(
            plan=plan,
            sender=lane.sender,
            work=lane.work,
            money=self.money,
            random=Random(f"{self.seed} {part // len(self.lanes)} {turn}"),
            clock=self.clock,
            wall=self.wall,
            cpu=self.cpu,
            keep=see,
        )
        self._stage = stage
        if self.stop:
            stage.end(End.INTERRUPTED)
        try:
            with no_long_collections():
                measured = await stage.run()
        except asyncio.CancelledError:
            self._keep(number, part, role, stage.measured())
            raise
        finally:
            self._stage = None
        if scorer is not None:
            measured = replace(measured, records=scorer.score(measured.records))
        await asyncio.to_thread(self._keep, number, part, role, measured)
        self._consider(lane, measured)
        return measured

    def told(self, lane: Lane, measured: Measured) -> None:
        """A line about a block that has ended."""
        ok = sum(record.ok for record in measured.records)
        seconds = measured.end_s + measured.drained_s
        who = f"{lane.label}, " if len(self.lanes) > 1 else ""
        of = f"{ok:,} of {len(measured.records):,} replies"
        self.tell(f"{who}{measured.plan.load.name}: {of} in {seconds:.1f} s, ended by {measured.ended.value}")

    def _keep(self, number: int, part: int, role: str, measured: Measured) -> None:
        kept = Kept(number=number, part=part, role=role, measured=measured)
        self.kept.append(kept)
        keep(self.benches, self.bench_id, kept)

    def _interrupt(self) -> None:
        if self._stage is not None:
            self._stage.end(End.INTERRUPTED)

    def _refused(self, lane: Lane, sent: Sent) -> None:
        kind = sent.failure_kind or FailureKind.AUTH
        failure = Failure(kind=kind, message=sent.record.message, status=sent.record.status)
        self.stop.request(EndpointError(explain(failure, lane.sender.target.settings)))

    def _consider(self, lane: Lane, measured: Measured) -> None:
        """Does the end of this block end the bench?"""
        reason: MmbuError | None = None
        if measured.ended is End.COST:
            reason = BudgetReachedError(
                f"the money cap of {self.money.cap or 0:g} US dollars is reached (a request of unknown cost "
                "counts at its worst); what was measured is kept."
            )
        elif measured.ended is End.DEAD:
            last = measured.records[-1].message if measured.records else ""
            reason = EndpointDownError(
                f"{lane.label} at {lane.sender.target.settings.host}: request after request fails ({last}); "
                "stopped, what was measured is kept."
            )
        if reason is not None:
            self.stop.request(reason)


def _turns(lanes: int, blocks: int) -> list[tuple[int, int]]:
    """(endpoint, number of its block): alone one block; two as one, other, other, one, and so on, so that a
    slow drift of the network meets both alike."""
    if lanes == 1:
        return [(0, 0)]
    return [
        (lane, number)
        for number in range(max(2, blocks) // 2)
        for lane in ((0, 1) if number % 2 == 0 else (1, 0))
    ]
