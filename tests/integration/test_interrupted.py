"""A signal to a run in which nothing is left to start."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from mmbu_async import api
from mmbu_async.errors import InterruptedRunError
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.progress import silent
from mmbu_async.pipeline.run import Stages
from mmbu_async.simulator import Latency
from tests.whole_run import complete, config, simulated

pytestmark = pytest.mark.usefixtures("keys", "short_waits")

ROWS = 3


async def signal_with_the_last_calls(monitor: Monitor, stages: Stages) -> None:
    judge = stages.sides[1].client.gate.concurrency.state
    while judge.in_flight < ROWS:  # noqa: ASYNC110 - the counters are what a display would poll
        await asyncio.sleep(0.005)
    os.kill(os.getpid(), signal.SIGTERM)
    await silent(monitor, stages)


async def test_a_signal_while_the_last_calls_are_under_way_is_no_failure(data: Path, store: Path) -> None:
    async with simulated(latency=Latency("fixed", 0.3)) as simulator:
        settings = config(simulator, store, data, limit=ROWS)
        result = await api.evaluate(settings, watch=signal_with_the_last_calls)
        await complete(result, store, ROWS)


async def test_a_rejudge_that_is_interrupted_has_not_put_its_verdicts_into_force(
    data: Path, store: Path
) -> None:
    async with simulated(latency=Latency("fixed", 0.3)) as simulator:
        await complete(await api.evaluate(config(simulator, store, data, limit=ROWS)), store, ROWS)
        changes = {"judge": {"model": "another"}}
        with pytest.raises(InterruptedRunError, match="the same `mmbu rejudge` continues"):
            await api.rejudge("r", store=store, changes=changes, watch=signal_with_the_last_calls)
        (standing,) = api.status("r", store=store)
        assert standing.run.judge is not None
        assert standing.run.judge.name == "claude-sonnet-5"
        again = await api.rejudge("r", store=store, changes=changes)
        await complete(again, store, ROWS)
        assert len([record for record in simulator.log if record.role == "judge"]) == 2 * ROWS
