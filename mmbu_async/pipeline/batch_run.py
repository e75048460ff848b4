"""A part of a session in batches, wired on one screen.

open rows -> model's batches -> replies on disk -> each judge's batches -> verdicts on disk
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.batches.client import CLIENTS, endpoint_of
from mmbu_async.endpoints.batches.format import without_stream
from mmbu_async.endpoints.batches.prices import batch_price
from mmbu_async.endpoints.batches.transport import BatchAiohttp
from mmbu_async.endpoints.gate import Draining
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.endpoints.transport import Timeouts, environment_proxy
from mmbu_async.endpoints.wire import WireFormat
from mmbu_async.pipeline.batch_desk import BatchDesk
from mmbu_async.pipeline.batch_hand_in import HandIn
from mmbu_async.pipeline.batch_judge import JudgeSource, Unjudged
from mmbu_async.pipeline.batch_lane import Lane
from mmbu_async.pipeline.batch_model import ModelSource
from mmbu_async.pipeline.batch_source import Feed, Source
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.run import Session, Side, Stages, Watch, build_stages, tell_telemetry
from mmbu_async.pipeline.stop import Stop
from mmbu_async.store import Writer

TRANSFER_S = 3600.0
"""The longest that a file may take on its way up or down."""

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Clock:
    """What a lane knows of time."""

    now: Callable[[], float] = time.time
    """Unix seconds."""
    sleep: Sleep | None = None
    """None: really sleep, and wake when the run is to stop."""


async def run_batches(
    session: Session,
    monitor: Monitor,
    *,
    stop: Stop,
    watch: Watch,
    heartbeat: Callable[[Writer], Coroutine[Any, Any, None]],
    steer: Watch,
    random: Random,
    cancel: bool = False,
    clock: Clock | None = None,
) -> None:
    """As `run.run_session`, for the sides that ask in batches; `cancel` hands nothing in and calls back what
    is out. When `stop` is requested batches stay out, and whoever resumes the run fetches them."""
    time_of = clock or Clock()
    # Images are prepared here, whatever machines make calls: a file of requests is made in one place.
    config = without_stream(session.config).model_copy(update={"executor": "local"})
    session = replace(session, config=config)
    async with AsyncExitStack() as stack:
        stages = await build_stages(session, monitor, stop, random, stack)
        tell_telemetry(monitor, stack)
        feed = Feed()
        sources: list[tuple[Source, Side]] = []
        if session.infer:
            sources.append((ModelSource(infer=stages.infer, feed=feed), stages.sides[0]))
        else:
            feed.close()
        unjudged = Unjudged(waiting=stages.panel.waiting)
        if session.judge:
            for stage, side in zip(stages.panel.stages, stages.sides[1:], strict=True):
                judge = JudgeSource(
                    stage=stage,
                    panel=stages.panel,
                    feed=feed,
                    unjudged=unjudged,
                    run_id=session.run_id,
                    rejudge=session.rejudge,
                )
                sources.append((judge, side))
        lanes = [
            await _lane(source, side, session, stages, monitor, stop, random, time_of, cancel, stack)
            for source, side in sources
        ]
        stop.on_request(feed.close)
        async with asyncio.TaskGroup() as beside:
            background = [
                beside.create_task(heartbeat(stages.infer.recorder.writer)),
                beside.create_task(watch(monitor, stages)),
                beside.create_task(steer(monitor, stages)),
            ]
            async with asyncio.TaskGroup() as work:
                for lane in lanes:
                    work.create_task(_run(lane, feed))
            for task in background:
                task.cancel()


async def _run(lane: Lane, feed: Feed) -> None:
    await lane.run()
    if lane.desk.source.judge_id is None:
        feed.close()


async def _lane(
    source: Source,
    side: Side,
    session: Session,
    stages: Stages,
    monitor: Monitor,
    stop: Stop,
    random: Random,
    clock: Clock,
    cancel: bool,
    stack: AsyncExitStack,
) -> Lane:
    settings: CallSettings = without_stream(side.client.settings)
    wire: WireFormat = side.client.wire
    timeouts = Timeouts(total=TRANSFER_S, connect=settings.connect_timeout, idle=settings.idle_timeout)
    transport = await stack.enter_async_context(BatchAiohttp(timeouts, environment_proxy(settings.url)))

    async def rest(seconds: float) -> None:
        try:
            await side.client.gate.sleep(seconds)
        except Draining:
            return

    desk = BatchDesk(
        source=source,
        calls=CLIENTS[settings.endpoint](settings, wire, transport, key=settings.api_key(), clock=clock.now),
        settings=settings,
        price=batch_price(settings),
        estimator=_estimator(source, stages, settings),
        url=endpoint_of(settings, wire),
        run_id=session.run_id,
        session_id=session.session_id,
        reader=stages.reader,
        writer=stages.infer.recorder.writer,
        budget=stages.budget,
        monitor=monitor,
        stop=stop,
        poll_s=session.config.batch_poll,
        clock=clock.now,
        rest=clock.sleep or rest,
        random=random,
        cancel=cancel,
    )
    return Lane(desk=desk, hand_in=HandIn(desk=desk))


def _estimator(source: Source, stages: Stages, settings: CallSettings) -> Estimator:
    if source.judge_id is None:
        return stages.infer.estimator
    found = next(stage for stage in stages.panel.stages if stage.judge_id == source.judge_id)
    return found.estimator
