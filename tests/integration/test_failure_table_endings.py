"""The failure table over whole runs: the judge, ends that are wanted, and what is refused before any call."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from mmbu_async import api
from mmbu_async.errors import (
    BudgetReachedError,
    ConfigError,
    EndpointDownError,
    InterruptedRunError,
    RunChangedError,
    StoreLockedError,
)
from mmbu_async.model import Status
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.progress import silent
from mmbu_async.pipeline.run import Stages
from mmbu_async.simulator import Latency
from tests.whole_run import (
    ENDPOINTS,
    ROWS,
    addresses,
    calls,
    complete,
    config,
    replies,
    simulated,
    statuses,
    stops,
    stored,
)

pytestmark = pytest.mark.usefixtures("keys", "short_waits")


# ---------------------------------------------------------------- the judge


@ENDPOINTS
async def test_a_judge_unusable_twice_leaves_the_row_unjudged(data: Path, store: Path, endpoint: str) -> None:
    async with simulated("no_verdict@judge=text:number 7?") as simulator:
        result = await api.evaluate(config(simulator, store, data, endpoint))
        assert result.exit_code == 3
        assert statuses(result) == {Status.SCORED: ROWS - 1, Status.UNJUDGED: 1}
        assert len([record for record in await calls(simulator, "judge") if record.fault]) == 2
        report = result.report()
        assert report.overall.worst.accuracy.value is not None
    async with simulated() as simulator:
        healed = await api.resume("r", store=store, changes=addresses(simulator, endpoint))
        await complete(healed, store)
        assert len(await calls(simulator)) == 0
        assert len(await calls(simulator, "judge")) == 1


async def test_a_judge_outage_is_not_a_wrong_answer(data: Path, store: Path) -> None:
    async with simulated("server_error@judge=1.0") as simulator:
        settings = config(simulator, store, data, judge={"max_attempts": 2})
        await stops(settings, EndpointDownError, 5)
        assert not stored(store, "SELECT 1 FROM score WHERE correct = 0")
        kept = len(replies(store))
    async with simulated() as simulator:
        result = await api.resume("r", store=store, changes=addresses(simulator))
        await complete(result, store)
        assert len(await calls(simulator)) == ROWS - kept


# ---------------------------------------------------------------- ends that are wanted

PRICES = {"input_price": 1000.0, "output_price": 1000.0}


@ENDPOINTS
async def test_the_money_cap(data: Path, store: Path, endpoint: str) -> None:
    async with simulated() as simulator:
        settings = config(
            simulator, store, data, endpoint, max_cost=30.0, max_tokens=200, judge=PRICES, **PRICES
        )
        await stops(settings, BudgetReachedError, 6)
        await simulator.settled()
        charged = sum(r.input_tokens + r.output_tokens for r in simulator.log if r.charged) * 1e-3
        ((booked,),) = stored(store, "SELECT sum(cost_usd) FROM call")
        assert booked == pytest.approx(charged)
        assert 15.0 < charged <= 30.0
        result = await api.resume("r", store=store, changes={"max_cost": 1000.0})
        await complete(result, store)
        assert len(await calls(simulator)) == ROWS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_drains(data: Path, store: Path, number: signal.Signals) -> None:
    async def watch(monitor: Monitor, stages: Stages) -> None:
        while monitor.replied < 5:  # noqa: ASYNC110 - the counter is what a display would poll
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), number)
        await silent(monitor, stages)

    async with simulated(latency=Latency("fixed", 0.1)) as simulator:
        settings = config(simulator, store, data, concurrency=4)
        with pytest.raises(InterruptedRunError) as caught:
            await api.evaluate(settings, watch=watch)
        assert caught.value.exit_code == 130
        assert "mmbu resume r" in str(caught.value)
        asked = await calls(simulator)
        assert not any(record.aborted for record in simulator.log), "calls under way finish"
        assert len(replies(store)) == len(asked) < ROWS
        result = await api.resume("r", store=store)
        await complete(result, store)
        assert len(await calls(simulator)) == ROWS


async def test_a_second_signal_aborts_calls_that_hang(data: Path, store: Path) -> None:
    """The first waits for calls under way, which may be as long as their time limit; the second does not."""

    async def watch(monitor: Monitor, stages: Stages) -> None:
        # Rows go out in order: when the others have their replies, the one that hangs is under way.
        while monitor.replied < ROWS - 1:  # noqa: ASYNC110 - the counter is what a display would poll
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        await silent(monitor, stages)

    async with simulated("timeout@model=text:number 3?") as simulator:
        work = asyncio.create_task(api.evaluate(config(simulator, store, data, concurrency=4), watch=watch))
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(work, 20)
        assert stored(store, "SELECT ended FROM session") == [("aborted",)]
        assert replies(store).total() == ROWS - 1
    async with simulated() as simulator:
        result = await api.resume("r", store=store, changes=addresses(simulator))
        await complete(result, store)
        assert len(await calls(simulator)) == 1


# ---------------------------------------------------------------- refused before any call


async def test_other_settings_are_refused_with_what_changed(data: Path, store: Path) -> None:
    async with simulated() as simulator:
        await api.evaluate(config(simulator, store, data, limit=2))
        before = len(simulator.log)
        for changes, words in (
            ({"temperature": 0.5}, "temperature: none -> 0.5"),
            ({"params": {"max_tokens": None}}, "params.max_tokens: not set -> none"),
            ({"max_tokens": 7}, "max_tokens: 2048 -> 7"),
        ):
            with pytest.raises(RunChangedError, match=words) as caught:
                await api.evaluate(config(simulator, store, data, limit=2, **changes))
            assert "--new-run" in str(caught.value)
        text = (data / "metadata.jsonl").read_text()
        (data / "metadata.jsonl").write_text(text.replace("number 3?", "number three?"))
        with pytest.raises(RunChangedError, match="row-3"):
            await api.evaluate(config(simulator, store, data, limit=2))
        assert len(simulator.log) == before


async def test_a_run_without_a_name_that_can_be_told_is_refused(data: Path, store: Path) -> None:
    async with simulated() as simulator:
        for name in ("", " ", "a\nb", ".."):
            with pytest.raises(ConfigError, match="give the run another name"):
                await api.evaluate(config(simulator, store, data, limit=2, name=name))
        assert not simulator.log
        assert not api.status(store=store)


async def test_a_second_process_is_kept_off_a_run(data: Path, store: Path) -> None:
    begun = asyncio.Event()

    async def watch(monitor: Monitor, stages: Stages) -> None:
        begun.set()
        await silent(monitor, stages)

    async with simulated(latency=Latency("fixed", 0.2)) as simulator:
        settings = config(simulator, store, data, concurrency=4, limit=8)
        first = asyncio.create_task(api.evaluate(settings, watch=watch))
        await begun.wait()
        with pytest.raises(StoreLockedError):
            await api.evaluate(settings)
        await complete(await first, store, 8)
        assert len(await calls(simulator)) == 8
