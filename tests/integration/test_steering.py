"""Speaking to a run while it works: each judge's own limits, workers for more calls, what a rejudge keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.api import running
from mmbu_async.config import RunConfig
from mmbu_async.model import Status
from mmbu_async.pipeline import steering
from mmbu_async.pipeline.asking import Asked
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.progress import silent, summary
from mmbu_async.pipeline.run import Stages, Watch
from mmbu_async.simulator import Latency
from tests.whole_run import ROWS, calls, complete, config, simulated, statuses, stored

pytestmark = pytest.mark.usefixtures("keys", "short_waits")


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steering, "LOOK_S", 0.02)


def when(condition: Callable[[Monitor], bool], do: Callable[[Monitor, Stages], Awaitable[None]]) -> Watch:
    """Somebody who watches the run and speaks to it once."""

    async def watch(monitor: Monitor, stages: Stages) -> None:
        while not condition(monitor):  # noqa: ASYNC110 - the counters are what a display would poll
            await asyncio.sleep(0.005)
        await do(monitor, stages)
        await silent(monitor, stages)

    return watch


async def limit(store: Path, **limits: dict[str, Any]) -> Asked:
    """From another thread, over a connection of its own, as another process would."""
    named = {"" if side == "model" else side: values for side, values in limits.items()}
    return await asyncio.to_thread(api.limit, "r", store=store, limits=named)


async def test_more_calls_at_once_get_workers_and_slots(data: Path, store: Path) -> None:
    seen: list[int] = []

    async def more(monitor: Monitor, stages: Stages) -> None:
        assert (await limit(store, model={"concurrency": 30}, judge={"concurrency": 5})).heeded
        while max(seen, default=0) < 16 and monitor.replied < ROWS:
            seen.append(stages.infer.client.gate.concurrency.state.in_flight)
            await asyncio.sleep(0.01)

    async with simulated(latency=Latency("fixed", 0.3)) as simulator:
        settings = config(simulator, store, data, concurrency=1, judge={"concurrency": 1})
        result = await api.evaluate(settings, watch=when(lambda monitor: monitor.replied >= 1, more))
        await complete(result, store)
        assert len(await calls(simulator)) == ROWS
    assert max(seen) >= 16, "as at a start with 30"
    ((kept,),) = stored(
        store, "SELECT config ->> '$.concurrency' || ' ' || (config ->> '$.judge.concurrency') FROM run"
    )
    assert kept == "30 5"


async def test_pause_ends_new_calls_of_model_and_judge_and_shows(data: Path, store: Path) -> None:
    lines: list[str] = []

    async def rest(monitor: Monitor, stages: Stages) -> None:
        assert (await asyncio.to_thread(api.pause, "r", store=store)).heeded
        async with asyncio.timeout(20):
            while any(  # noqa: ASYNC110 - what is under way is what a display would poll
                side.client.gate.concurrency.state.in_flight for side in stages.sides
            ):
                await asyncio.sleep(0.01)
        before = len(simulator.log)
        lines.append(summary(monitor, stages, monitor.started + 1))
        (standing,) = api.status("r", store=store)
        assert standing.paused
        assert standing.process is not None
        # All could go at once if they might.
        await limit(store, model={"concurrency": 64}, judge={"concurrency": 64})
        assert len(simulator.log) == before < 2 * ROWS
        assert (await asyncio.to_thread(api.continue_run, "r", store=store)).heeded
        lines.append(summary(monitor, stages, monitor.started + 1))

    async with simulated(latency=Latency("fixed", 0.05)) as simulator:
        settings = config(simulator, store, data, concurrency=3, judge={"concurrency": 3})
        result = await api.evaluate(settings, watch=when(lambda monitor: monitor.done >= 3, rest))
        await complete(result, store)
        assert len(await calls(simulator)) == ROWS
    assert "paused" in lines[0]
    assert "paused" not in lines[1]
    (standing,) = api.status("r", store=store)
    assert (standing.process, standing.paused) == (None, False)


async def test_a_run_can_be_paused_in_its_preflight(data: Path, store: Path) -> None:
    async def rest(monitor: Monitor, stages: Stages) -> None:
        await asyncio.to_thread(api.pause, "r", store=store)
        await asyncio.to_thread(api.continue_run, "r", store=store)

    async with simulated(latency=Latency("fixed", 0.3)) as simulator:
        settings = config(simulator, store, data, preflight=True)
        await complete(await api.evaluate(settings, watch=when(lambda monitor: True, rest)), store)
        assert len(await calls(simulator)) == ROWS


async def test_each_judge_of_a_panel_has_limits_of_its_own(data: Path, store: Path) -> None:
    found: dict[str, tuple[int, float | None]] = {}

    async def speak(monitor: Monitor, stages: Stages) -> None:
        assert (await limit(store, b={"rpm": None, "concurrency": 9}, judge={"concurrency": 4})).heeded
        for side in stages.sides:
            settings = side.client.settings
            found[side.label] = (side.client.gate.concurrency.state.maximum, settings.rpm)

    async with simulated(latency=Latency("fixed", 0.1)) as simulator:
        judge = {"endpoint": "openai", "base_url": f"{simulator.url}/v1"}
        panel = [
            judge | {"name": "b", "model": "judge-b", "rpm": 60.0},
            judge | {"name": "c", "model": "judge-c", "rpm": 60_000.0},
        ]
        judges: dict[str, Any] = {"panel": panel, "verdict": "majority", "judge": {"model": "judge-a"}}
        settings = config(simulator, store, data, concurrency=3, **judges)
        result = await api.evaluate(settings, watch=when(lambda monitor: monitor.replied >= 5, speak))
        await complete(result, store)
    assert found == {
        "model": (3, None),
        "judge judge-a": (4, None),
        "judge b": (9, None),
        "judge c": (64, 60_000.0),
    }


async def test_a_rejudge_publishes_the_limits_that_it_was_told(data: Path, store: Path) -> None:
    """Its settings become the run's at its end: not those from before it was spoken to."""

    async def speak(monitor: Monitor, stages: Stages) -> None:
        told = await limit(store, judge={"concurrency": 7}, model={"rpm": 90.0}, other={"rpm": 80.0})
        assert told.heeded

    async with simulated(latency=Latency("fixed", 0.05)) as simulator:
        settings = config(simulator, store, data)
        assert statuses(await api.evaluate(settings)) == {Status.SCORED: ROWS}
        judge = {"model": "judge-z", "name": "other", "concurrency": 2, "rpm": 6000.0}
        result = await api.rejudge(
            "r", store=store, changes={"judge": judge}, watch=when(lambda monitor: monitor.calls >= 2, speak)
        )
        assert statuses(result) == {Status.SCORED: ROWS}
    (standing,) = api.status("r", store=store)
    kept = RunConfig.model_validate(dict(standing.run.config))
    assert (kept.judge.model, kept.judge.concurrency, kept.judge.rpm, kept.rpm) == ("judge-z", 7, 80.0, 90.0)


@pytest.mark.parametrize("kind", ["resume", "rejudge"])
async def test_limits_that_were_set_while_a_session_started_hold(
    data: Path, store: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = [{"model": "two", "name": "second"}]
    started = getattr(running, "lay_out" if kind == "resume" else "rules_of")

    def meanwhile(settings: RunConfig) -> Any:
        """Settings were read, and no lease is taken yet."""
        limits: dict[str, dict[str, Any]] = {"": {"rpm": 7000.0}, "judge": {"concurrency": 3}}
        assert api.limit("r", store=store, limits=limits | {"second": {"tpm": None}}).process is None
        return started(settings)

    async with simulated() as simulator:
        judges = [
            {**judge, "base_url": simulator.url + "/v1", "tpm": 9e6, "endpoint": "openai"} for judge in panel
        ]
        settings = config(simulator, store, data, panel=judges, limit=3)
        await complete(await api.evaluate(settings), store, 3)
        monkeypatch.setattr(running, "lay_out" if kind == "resume" else "rules_of", meanwhile)
        if kind == "resume":
            await complete(await api.resume("r", store=store, changes={"limit": 5, "rpm": 100.0}), store, 5)
        else:
            other = {"name": "third", "model": "three"}
            await complete(await api.rejudge("r", store=store, changes={"judge": other}), store, 3)
    ((kept,),) = stored(
        store,
        "SELECT json_array(config ->> '$.rpm', config ->> '$.judge.concurrency', "
        "config ->> '$.panel[0].tpm') FROM run",
    )
    assert kept == "[7000.0,3,null]"
