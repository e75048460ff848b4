"""One session of a run: the stages, wired on one screen.

    open rows -> read -> prepare -> infer -> (reply on disk) -> each judge -> (verdict on disk)

Everything between two stages is bounded, every task lives in a task group, and whatever stops a session
(budget, Ctrl-C, a dead endpoint) does it by closing gates: calls under way finish and are stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from mmbu_async.config import CallSettings, RunConfig
from mmbu_async.endpoints.client import EndpointClient
from mmbu_async.endpoints.prices import Prices
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.errors import BudgetReachedError, ConfigError, MmbuError
from mmbu_async.images import ImageLimits
from mmbu_async.model import Benchmark, ImageRef, JudgeItem, Prompt
from mmbu_async.pipeline.breaker import Breaker
from mmbu_async.pipeline.budget import Budget, most_unpriced
from mmbu_async.pipeline.channel import Channel
from mmbu_async.pipeline.crew import Crew
from mmbu_async.pipeline.executor import Executor, executor
from mmbu_async.pipeline.hosting import Host
from mmbu_async.pipeline.inferring import PAGE, InferStage
from mmbu_async.pipeline.judges import Judge
from mmbu_async.pipeline.judging import LOOKUP, JudgeStage, Waiting
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.panel import Panel
from mmbu_async.pipeline.placement import Workshop
from mmbu_async.pipeline.preflight import preflight, preflight_of_judges
from mmbu_async.pipeline.records import Recorder
from mmbu_async.pipeline.stop import Stop
from mmbu_async.store import Reader, RunTotals, Unpriced, Writer
from mmbu_async.telemetry import RunState, current


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one session needs to know. Made by `opening.py`, from settings and store."""

    config: RunConfig
    store: Path
    run_id: int
    session_id: int
    judges: tuple[Judge, ...]
    benchmark: Benchmark
    read_image: Callable[[ImageRef], bytes]
    image_limits: ImageLimits
    fill: Callable[[JudgeItem], Prompt]
    read_verdict: Callable[[str], bool | None]
    before: RunTotals
    """What earlier sessions took."""
    proven: bool = False
    """Whether an earlier session got a reply with these settings."""
    reserved: float = 0.0
    """US dollars that batches which are out may cost, where this part of the session does not see to them."""
    data_stamp: str = ""
    """By which another machine knows whether it sees the same data."""
    infer: bool = True
    """False: only verdicts are bought."""
    judge: bool = True
    """False: no row of the selection needs a judge."""
    rejudge: bool = False
    """Look also at rows that have a verdict: it may answer another reading of the reply."""
    host: Host = field(default_factory=Host)
    """Who works on this run."""


Watch = Callable[[Monitor, "Stages"], Coroutine[Any, Any, None]]
"""Shows progress until it is cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The model under test, or a judge: who is called, and by whom."""

    label: str
    client: EndpointClient
    crew: Crew

    def limit(self, settings: CallSettings) -> None:
        """Take over the limits of these settings, at once."""
        self.client.limit(settings)
        self.crew.grow(_workers(settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The running parts, for displays, for whoever steers, and for tests."""

    infer: InferStage
    panel: Panel
    budget: Budget
    reader: Reader
    sides: tuple[Side, ...]
    """The model first, then the judges in their order."""


async def run_session(
    session: Session,
    monitor: Monitor,
    *,
    stop: Stop,
    watch: Watch,
    heartbeat: Callable[[Writer], Coroutine[Any, Any, None]],
    steer: Watch,
    random: Random,
) -> None:
    """Work until no row is open or `stop` is requested; then everything paid for is on disk.

    `heartbeat` keeps the run's lease alive, and `steer` does what others ask, until they are cancelled.
    """
    async with AsyncExitStack() as stack:
        stages = await build_stages(session, monitor, stop, random, stack)
        infer, panel = stages.infer, stages.panel
        tell_telemetry(monitor, stack)
        async with asyncio.TaskGroup() as beside:
            background = [
                beside.create_task(heartbeat(stages.infer.recorder.writer)),
                beside.create_task(watch(monitor, stages)),
                beside.create_task(steer(monitor, stages)),
            ]
            if session.config.preflight:
                if session.infer:
                    await preflight(infer)
                else:
                    await preflight_of_judges(
                        panel, session.run_id, before_session=session.session_id, judged=session.rejudge
                    )
            async with asyncio.TaskGroup() as work:
                if session.infer:
                    work.create_task(infer.read())
                    work.create_task(
                        _all((infer.prepare() for _ in range(infer.placement.width)), then=infer.ready.close)
                    )
                model, *judges = stages.sides
                asking = (model.crew.run(),) if session.infer else ()
                backlog = panel.backlog(
                    session.run_id,
                    # Replies of this very session come this way only where this part of it makes none.
                    before_session=session.session_id if session.infer else None,
                    judged=session.rejudge,
                )
                work.create_task(_all((*asking, backlog), then=panel.close))
                for stage, judge in zip(panel.stages, judges, strict=True):
                    work.create_task(stage.sort())
                    work.create_task(judge.crew.run())
            for task in background:
                task.cancel()


async def build_stages(
    session: Session, monitor: Monitor, stop: Stop, random: Random, stack: AsyncExitStack
) -> Stages:
    config = session.config
    budget = Budget(
        config.max_cost,
        _spent(session),
        lambda: stop.request(_budget_reached(config)),
        above=session.host.purse,
    )
    writer = await stack.enter_async_context(Writer.open(session.store, synchronous=config.synchronous))
    reader = await stack.enter_async_context(Reader.open(session.store))
    called = [
        *([config] if session.infer else []),
        *(judge.settings for judge in session.judges if session.judge and judge.needed),
    ]
    stamp, data = session.data_stamp, session.benchmark.data
    place = await stack.enter_async_context(executor(config, called, session.image_limits, data, stamp, stop))
    model_client = await _client(
        config, session.infer, budget, random, stack, place, session.host, role="model", run=monitor.run
    )
    recorder = Recorder(writer=writer, run_id=session.run_id, session_id=session.session_id)
    waiting = Waiting(monitor)
    judges = []
    for judge in session.judges:
        client = await _client(
            judge.settings,
            session.judge and judge.needed,
            budget,
            random,
            stack,
            place,
            session.host,
            role="judge",
            run=monitor.run,
        )
        judges.append(
            JudgeStage(
                judge_id=judge.id,
                client=client,
                reader=reader,
                recorder=replace(recorder, judge_id=judge.id),
                read_verdict=session.read_verdict,
                estimator=Estimator.of(judge.settings),
                monitor=monitor,
                waiting=waiting,
                stop=stop,
                queue=Channel(2 * LOOKUP),
                asks=Channel(judge.settings.concurrency),
                label=judge.settings.label,
                beside=session.host.beside,
            )
        )
    panel = Panel(
        stages=tuple(judges),
        waiting=waiting,
        reader=reader,
        benchmark=session.benchmark,
        fill=session.fill,
        stop=stop,
    )
    estimator = Estimator.of(config)
    workshop = Workshop(
        benchmark=session.benchmark,
        read_image=session.read_image,
        limits=session.image_limits,
        wire=model_client.wire,
        settings=config,
        estimator=estimator,
    )
    infer = InferStage(
        run_id=session.run_id,
        client=model_client,
        reader=reader,
        recorder=recorder,
        placement=stack.enter_context(place.placement(workshop)),
        estimator=estimator,
        breaker=Breaker(proven=session.proven),
        monitor=monitor,
        stop=stop,
        panel=panel,
        pages=Channel(PAGE),
        ready=Channel(PAGE // 2),
    )
    for gate in (model_client.gate, *(judge.client.gate for judge in judges)):
        stop.on_request(gate.close)
    for channel in (infer.pages, infer.ready, *(c for judge in judges for c in (judge.queue, judge.asks))):
        stop.on_request(lambda channel=channel: channel.close(discard=True))  # type: ignore[misc]
    model = Side(label="model", client=model_client, crew=Crew(infer.infer, _workers(config)))
    sides = (model, *map(_side, judges))
    return Stages(infer=infer, panel=panel, budget=budget, reader=reader, sides=sides)


def _side(stage: JudgeStage) -> Side:
    crew = Crew(stage.ask_all, _workers(stage.client.settings))
    return Side(label=f"judge {stage.label}", client=stage.client, crew=crew)


async def _client(
    settings: CallSettings,
    used: bool,
    budget: Budget,
    random: Random,
    stack: AsyncExitStack,
    place: Executor,
    host: Host,
    *,
    role: str,
    run: str,
) -> EndpointClient:
    """A client that is not used needs neither key nor price."""
    price = Prices().find(settings) if used else None
    if used and price is None and budget.capped:
        raise ConfigError(
            f"--max-cost needs prices, and none is known for {settings.model} at {settings.host}: "
            f"give {settings.flag('input_price')} and {settings.flag('output_price')}."
        )
    key = settings.api_key() if used else ""
    client = EndpointClient(
        settings,
        key=key,
        purse=budget,
        price=price,
        random=random,
        exchange=place.exchange(settings) if used else None,
        shared=host.shared(settings, key) if used and host.shared is not None else None,
        role=role,
        run=run,
    )
    return await stack.enter_async_context(client)


def tell_telemetry(monitor: Monitor, stack: AsyncExitStack) -> None:
    """Let whoever collects metrics know of the run, until the stack is left."""
    if (telemetry := current()) is not None:
        stack.enter_context(telemetry.run(monitor.run, lambda: _state(monitor)))


def _state(monitor: Monitor) -> RunState:
    return RunState(
        selected=monitor.total,
        done=monitor.done_before + monitor.done,
        failed=monitor.failed,
        unjudged=monitor.unjudged,
        judge_waiting=monitor.judge_waiting,
    )


def _spent(session: Session) -> float:
    """US dollars of earlier sessions; under a cap, calls of unknown cost are taken at their worst."""
    before, config = session.before, session.config
    spent = before.cost_usd + session.reserved
    if config.max_cost is not None:
        spent += _most(before.unpriced_infer, config)
        # Which judge made a call of unknown cost is not asked: none of them is dearer than the dearest.
        spent += max(_most(before.unpriced_judge, judge) for judge in config.judges)
    return spent


def _most(unpriced: Unpriced, settings: CallSettings) -> float:
    price = Prices().find(settings)
    return most_unpriced(unpriced, settings, price) if price is not None else 0.0


def _workers(settings: CallSettings) -> int:
    """Rows in hand at once: as many as calls, and some whose call waits for a retry without its slot."""
    return settings.concurrency + max(8, settings.concurrency // 2)


def _budget_reached(config: RunConfig) -> MmbuError:
    return BudgetReachedError(
        f"the money cap of {config.max_cost:g} US dollars is reached (a call of unknown cost counts at its "
        "worst); everything so far is kept: resume with a higher --max-cost."
    )


async def _all(workers: Any, *, then: Callable[[], None] = lambda: None) -> None:
    """Run the workers together, then close what they fill."""
    async with asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(worker)
    then()
