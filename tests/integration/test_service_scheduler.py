"""The scheduler beside the simulator: turns, steering, ends, recovery, money, and what is told of it all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.errors import (
    ConfigError,
    MissingKeyError,
    RunChangedError,
    RunNotFoundError,
    RunStateError,
    ServiceStoppingError,
    StoreLockedError,
)
from mmbu_async.pipeline import steering
from mmbu_async.service.jobs import Event, JobState
from mmbu_async.service.scheduler import Scheduler
from mmbu_async.simulator import Latency
from tests.scheduler_kit import asked, becomes, ends, service_config, states, until
from tests.whole_run import ROWS, calls, replies, simulated, stored

pytestmark = pytest.mark.usefixtures("keys", "short_waits")

SLOW = Latency("fixed", 0.15)


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steering, "LOOK_S", 0.02)


def service(*args: Any, **changes: Any) -> Scheduler:
    return Scheduler(service_config(*args, **changes), look_s=0.05)


async def test_a_run_is_done_and_everything_is_told(data: Path, store: Path) -> None:
    async with simulated() as simulator, service(simulator, store, data) as desk:
        heard: list[Event] = []

        async def listen() -> None:
            async with desk.subscribe() as events:
                heard.extend([event async for event in events])

        listener = asyncio.create_task(listen())
        await asyncio.sleep(0)
        made = await desk.submit(asked(), priority=2)
        assert (made.run, made.kind, made.priority, made.settings["endpoint"]) == ("r", "run", 2, "sim")
        (job,) = await ends(desk, "r")
        assert (job.state, job.exit_code, job.message) == (JobState.DONE, 0, "")
        assert job.started_at is not None
        assert job.ended_at is not None
        progress = desk.progress("r")
        assert progress is not None
        assert (progress.done, progress.total, progress.judged, progress.failed) == (ROWS, ROWS, ROWS, 0)
        assert progress.latency_p50_s is not None
        assert desk.history("r")[-1] == progress
        assert any("is done" in line for line in desk.logs("r"))
        await desk.drain()
        await listener
    assert [event.data["state"] for event in heard if event.kind == "job"] == ["queued", "running", "done"]
    assert {event.kind for event in heard} == {"job", "progress", "log"}
    assert [event.number for event in heard] == sorted({event.number for event in heard})
    (status,) = api.status(store=store)
    assert (status.counts.scored, status.process) == (ROWS, None)


async def test_what_cannot_be_is_said_before_it_is_queued(
    data: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with simulated() as simulator, service(simulator, store, data) as desk:
        for wrong, error, what in (
            ({"max_tokns": 5}, ConfigError, "did you mean 'max_tokens'"),
            ({"store": "other.sqlite"}, ConfigError, "store: is for who starts the service"),
            ({"base_url": "http://mine.example"}, ConfigError, "base_url: is for who starts"),
            ({"dask_scheduler": "tcp://1.2.3.4:5"}, ConfigError, "dask_scheduler: is for who starts"),
            ({"judge": {"api_key_env": "HOME"}}, ConfigError, "judge.api_key_env: is for who starts"),
            ({"panel": "/etc/passwd"}, ConfigError, "panel: must be a list"),
            ({"data": str(tmp_path)}, ConfigError, "is no data set of this service; it has 'mini'"),
            ({"benchmark": "/etc/x.toml"}, ConfigError, "there is no benchmark '/etc/x.toml'"),
            ({"endpoint": "openai"}, ConfigError, "it has 'sim', 'judge'"),
            ({"endpoint": "judge"}, ConfigError, "endpoint 'judge' is not for 'm'; it is for 'j'"),
            ({"task": "no such task"}, ConfigError, "no row of"),
            ({"name": "a\nb"}, ConfigError, "control character"),
        ):
            with pytest.raises(error, match=what):
                await desk.submit(asked(**wrong))
        monkeypatch.delenv("OPENAI_API_KEY")
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        await desk.submit(asked())
        await ends(desk, "r")
        with pytest.raises(RunChangedError, match="made with other settings"):
            await desk.submit(asked(temperature=0.5))
        assert [job.run for job in desk.jobs()] == ["r"]


async def test_a_key_that_is_missing_is_said_at_once(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with simulated() as simulator:
        limits = {"api_key_env": "SIM_KEY"}
        async with service(simulator, store, data, limits=limits) as desk:
            with pytest.raises(MissingKeyError, match="SIM_KEY"):
                await desk.submit(asked())
            monkeypatch.setenv("SIM_KEY", "sk-canary-1")
            await desk.submit(asked())
            (job,) = await ends(desk, "r")
            assert job.state is JobState.DONE


async def test_the_queue_goes_by_priority_and_age_and_a_paused_run_takes_nobodys_turn(
    data: Path, store: Path
) -> None:
    async with simulated(latency=SLOW) as simulator, service(simulator, store, data, max_runs=1) as desk:
        await desk.submit(asked("first", concurrency=4))
        for name, priority in (("low", -1), ("high", 1), ("plain", 0)):
            await desk.submit(asked(name, concurrency=8), priority=priority)
        assert list(states(desk).values()) == ["running", "queued", "queued", "queued"]
        with pytest.raises(RunStateError, match="is running already"):
            await desk.submit(asked("first", concurrency=4))
        await until(lambda: desk.progress("first") is not None)
        await desk.pause("first")
        await becomes(desk, "high", "running")
        assert states(desk)["first"] == "paused"
        assert (await desk.resume("first")).state is JobState.QUEUED
        await desk.prioritize("plain", 5)
        await ends(desk, "first", "low", "high", "plain")
        assert set(states(desk).values()) == {JobState.DONE}
        started = sorted(desk.jobs(), key=lambda job: job.started_at or 0.0)
        assert [job.run for job in started] == ["first", "high", "plain", "low"]
    assert set(replies(store).values()) == {4}


async def test_a_paused_run_starts_no_call_until_it_is_resumed(data: Path, store: Path) -> None:
    async with simulated(latency=SLOW) as simulator, service(simulator, store, data) as desk:
        await desk.submit(asked(concurrency=2))
        await until(lambda: (now := desk.progress("r")) is not None and now.done > 0)
        await desk.pause("r")
        await until(lambda: (now := desk.progress("r")) is not None and now.in_flight == 0 and now.done > 0)
        begun = len(simulator.log)
        await asyncio.sleep(0.5)
        assert len(simulator.log) == begun
        (status,) = api.status(store=store)
        assert status.paused
        assert (await desk.resume("r")).state is JobState.RUNNING
        (job,) = await ends(desk, "r")
        assert job.state is JobState.DONE


async def test_a_terminal_steers_a_run_of_the_service(data: Path, store: Path) -> None:
    async with simulated(latency=SLOW) as simulator, service(simulator, store, data) as desk:
        await desk.submit(asked(concurrency=2))
        await until(lambda: desk.progress("r") is not None)
        assert (await asyncio.to_thread(api.pause, "r", store=store)).heeded
        assert "terminal" in (await becomes(desk, "r", "paused")).message
        words = await desk.limit("r", {"concurrency": 7, "judge": {"rpm": 6000}})
        assert "at most 7 calls at once" in words[0]
        assert "6,000 requests a minute" in words[1]
        assert (await asyncio.to_thread(api.continue_run, "r", store=store)).heeded
        await becomes(desk, "r", "running")
        await ends(desk, "r")
        assert api.limit("r", store=store).limits[0] == words[0]
        with pytest.raises(ConfigError, match="is no limit"):
            await desk.limit("r", {"model": "other"})


async def test_limits_of_a_queued_job_are_those_it_begins_with(data: Path, store: Path) -> None:
    async with simulated(latency=SLOW) as simulator:
        async with service(simulator, store, data, max_runs=1) as desk:
            await desk.submit(asked("first"))
            await desk.submit(asked("second", concurrency=1))
            await desk.limit("second", {"concurrency": 33, "judge": {"concurrency": 3}})
            await ends(desk, "first", "second")
        words = api.limit("second", store=store).limits
        assert ("at most 33 calls" in words[0], "at most 3 calls" in words[1]) == (True, True)


async def test_a_cancelled_run_keeps_what_was_paid_and_a_resume_goes_on(data: Path, store: Path) -> None:
    async with simulated(latency=SLOW) as simulator, service(simulator, store, data, max_runs=1) as desk:
        await desk.submit(asked(concurrency=4))
        await desk.submit(asked("never"))
        assert (await desk.cancel("never")).message == "cancelled before it began"
        await until(lambda: (now := desk.progress("r")) is not None and now.done > 0)
        assert (await desk.cancel("r")).state is JobState.CANCELLED
        await until(lambda: not desk._turns._at_work)
        job = desk.job("r")
        assert (job.state, job.exit_code) == (JobState.CANCELLED, 130)
        kept = len(replies(store))
        assert 0 < kept < ROWS
        with pytest.raises(RunStateError, match="has ended"):
            await desk.cancel("r")
        again = await desk.resume("r", {"concurrency": 16})
        assert (again.id, again.kind) == (3, "resume")
        (job,) = await ends(desk, "r")
        assert job.state is JobState.DONE
        assert len(await calls(simulator)) == ROWS
        with pytest.raises(RunNotFoundError):
            await desk.pause("nobody")
        with pytest.raises(RunNotFoundError):
            await desk.resume("nobody")


async def test_a_rejudge_buys_verdicts_alone(data: Path, store: Path) -> None:
    async with simulated() as simulator, service(simulator, store, data) as desk:
        await desk.submit(asked())
        await ends(desk, "r")
        with pytest.raises(ConfigError, match="max_tokens would mean nothing"):
            await desk.rejudge("r", {"max_tokens": 5})
        with pytest.raises(ConfigError, match="--failed asks the judge"):
            await desk.rejudge("r", {"judge": {"model": "other", "endpoint": "sim"}}, failed=True)
        before = len(await calls(simulator))
        job = await desk.rejudge("r", {"judge": {"model": "other", "endpoint": "sim"}})
        assert job.kind == "rejudge"
        (job,) = await ends(desk, "r")
        assert job.state is JobState.DONE
        assert len(await calls(simulator)) == before
    found = stored(store, "SELECT judge.name FROM run JOIN judge ON judge.id = run.judge_id")
    assert found == [("other",)]


async def test_runs_of_one_process_continue_after_a_stop_and_a_paused_one_stays(
    data: Path, store: Path
) -> None:
    async with simulated(latency=SLOW) as simulator:
        async with service(simulator, store, data, max_runs=2) as desk:
            await desk.submit(asked("one", concurrency=3))
            await desk.submit(asked("two", concurrency=3))
            await desk.submit(asked("waits", concurrency=40))
            for run in ("one", "two"):
                await until(lambda run=run: (now := desk.progress(run)) is not None and now.done > 0)  # type: ignore[misc]
            await desk.pause("two")
            await becomes(desk, "waits", "running")
            await desk.drain()
            with pytest.raises(ServiceStoppingError):
                await desk.submit(asked("late"))
            assert not desk.ready()
        assert not stored(store, "SELECT 1 FROM service")
        before = len(await calls(simulator))
        async with service(simulator, store, data, max_runs=2) as desk:
            assert states(desk)["two"] == "paused"
            await ends(desk, "one", "waits")
            assert len(await calls(simulator)) - before < 2 * ROWS
            assert (await desk.resume("two")).state in ("queued", "running")
            await ends(desk, "two")
            assert set(states(desk).values()) == {JobState.DONE}
    assert set(replies(store).values()) == {3}


async def test_a_store_has_one_service_and_a_run_of_a_terminal_is_waited_for(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmbu_async.service.work.LOCKED_S", 0.2)
    async with simulated(latency=SLOW) as simulator, service(simulator, store, data) as desk:
        with pytest.raises(StoreLockedError, match="serves this store"):
            async with service(simulator, store, data):
                pass
        settings = desk._admission.config(asked(concurrency=4))
        terminal = asyncio.create_task(api.evaluate(settings))
        await until(lambda: bool(simulator.log))
        await desk.submit(asked(concurrency=4))
        await until(lambda: "is held by process" in desk.job("r").message)
        assert desk.job("r").state is JobState.QUEUED
        assert (await terminal).complete
        (job,) = await ends(desk, "r")
        assert job.state is JobState.DONE
        assert len(await calls(simulator)) == ROWS


async def test_an_error_of_one_run_ends_that_run_alone(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = api.evaluate

    async def evaluate(config: Any, **options: Any) -> Any:
        if config.name == "bad":
            raise ZeroDivisionError("ours")
        return await real(config, **options)

    monkeypatch.setattr(api, "evaluate", evaluate)
    async with simulated() as simulator, service(simulator, store, data) as desk:
        await desk.submit(asked("bad"))
        await desk.submit(asked("good"))
        bad, good = await ends(desk, "bad", "good")
        assert (bad.state, good.state) == (JobState.FAILED, JobState.DONE)
        assert "ZeroDivisionError: ours" in bad.message
        assert any("Traceback" in line for line in desk.logs("bad"))


async def test_the_money_of_the_service_is_one_cap_over_all_its_runs(data: Path, store: Path) -> None:
    prices = {"input_price": 1000.0, "output_price": 1000.0, "max_tokens": 100}
    one = asked("one", **prices, judge={"model": "j", "endpoint": "judge", **prices})
    two = one | {"name": "two"}
    async with simulated() as simulator:
        async with service(simulator, store, data) as desk:
            await desk.submit(one)
            await ends(desk, "one")
        (cost,) = stored(store, "SELECT sum(cost_usd) FROM call")[0]
        before = len(await calls(simulator))
        async with service(simulator, store, data, max_cost=cost * 1.5) as desk:
            await desk.submit(two)
            await until(lambda: "money cap" in desk.job("two").message)
            assert desk.job("two").state is JobState.QUEUED
            await desk.submit(one | {"name": "three"})
            assert "money cap" in desk.job("three").message
            await until(lambda: not desk._turns._at_work)
            await desk.cancel("three")
        (spent,) = stored(store, "SELECT sum(cost_usd) FROM call")[0]
        assert cost < spent <= cost * 1.5
        assert before < len(await calls(simulator)) < 2 * ROWS
        async with service(simulator, store, data, max_cost=cost * 9) as desk:
            (job,) = await ends(desk, "two")
            assert job.state is JobState.DONE


async def test_rows_that_fail_leave_a_job_incomplete(data: Path, store: Path) -> None:
    async with simulated("content_policy@model=0.2") as simulator, service(simulator, store, data) as desk:
        await desk.submit(asked())
        (job,) = await ends(desk, "r")
        assert (job.state, job.exit_code) == (JobState.INCOMPLETE, 3)
        failed = sum(row.failure is not None for row in api.rows("r", store=store))
        assert job.message == f"rows failed: {failed}"
        progress = desk.progress("r")
        assert progress is not None
        assert progress.errors == {"bad_request": failed}


async def test_an_estimate_names_rows_and_calls(data: Path, store: Path) -> None:
    async with simulated() as simulator, service(simulator, store, data) as desk:
        found = await desk.estimate(asked())
        assert found.rows == ROWS
        assert found.model is not None
        assert found.model.calls == ROWS
        assert desk.jobs() == []


async def test_an_abort_waits_for_no_call_and_the_next_start_goes_on(data: Path, store: Path) -> None:
    async with simulated(latency=Latency("fixed", 0.3)) as simulator:
        async with service(simulator, store, data) as desk:
            await desk.submit(asked(concurrency=4))
            await until(lambda: len(simulator.log) >= 6)
            draining = asyncio.create_task(desk.drain())
            await asyncio.sleep(0)
            desk.abort()
            await draining
            assert not desk._turns._at_work
        assert stored(store, "SELECT state FROM job") == [("running",)]
        assert stored(store, "SELECT ended FROM session") == [("aborted",)]
        assert not stored(store, "SELECT 1 FROM run WHERE lease_pid IS NOT NULL")
        async with service(simulator, store, data) as desk:
            (job,) = await ends(desk, "r")
            assert job.state is JobState.DONE
    assert set(replies(store).values()) == {1}
    assert len(replies(store)) == ROWS


async def test_a_rejudge_that_was_cancelled_is_what_a_resume_goes_on_with(data: Path, store: Path) -> None:
    async with simulated(latency=SLOW) as simulator, service(simulator, store, data) as desk:
        await desk.submit(
            asked(concurrency=ROWS, judge={"model": "j", "endpoint": "judge", "concurrency": 40})
        )
        await ends(desk, "r")
        await desk.rejudge("r", {"judge": {"model": "other", "endpoint": "sim", "concurrency": 1}})
        await until(lambda: any(record.model == "other" for record in simulator.log))
        await desk.cancel("r")
        await until(lambda: not desk._turns._at_work)
        again = await desk.resume("r")
        assert (again.kind, again.settings["judge"]["model"]) == ("rejudge", "other")
        await desk.limit("r", {"judge": {"concurrency": 40}})
        await ends(desk, "r")
    found = stored(store, "SELECT judge.name FROM run JOIN judge ON judge.id = run.judge_id")
    assert found == [("other",)]
