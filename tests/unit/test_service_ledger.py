"""One service a store, found again after another machine's fell silent; and what a cap above a cap does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from mmbu_async.endpoints.gate import Draining
from mmbu_async.errors import ConfigError, RunNotFoundError, RunStateError, StoreLockedError
from mmbu_async.pipeline.budget import Budget
from mmbu_async.service import scheduler
from mmbu_async.service.jobs import JobState
from mmbu_async.service.ledger import Ledger
from mmbu_async.service.listeners import Listeners
from mmbu_async.service.scheduler import Scheduler
from mmbu_async.service.settings import ServiceConfig
from mmbu_async.store.jobs import Jobs
from mmbu_async.store.lease import EXPIRY_S, LeaseOwner

ME = LeaseOwner.current()
ELSEWHERE = replace(ME, host="elsewhere", boot="another")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def ledger(store: Path, clock: Clock, owner: LeaseOwner = ME) -> Ledger:
    return Ledger(store, Listeners(), owner, clock)


async def test_the_jobs_of_before_are_found_and_each_change_is_in_the_store(tmp_path: Path) -> None:
    store, clock = tmp_path / "s.sqlite", Clock()
    async with ledger(store, clock) as first:
        assert await first.take()
        job = await first.submit("a", "run", {"model": "m"}, 3)
        assert await first.claim(without=[job.id]) is None
        assert await first.claim(without=[]) is not None
        assert first.running() == 1
        with pytest.raises(RunStateError, match="is running already"):
            first.check_idle("a")
        # As if it were killed here.
    async with ledger(store, clock, replace(ME, pid=2**22 + 1)) as second:
        with pytest.raises(StoreLockedError):
            await second.take()
    with Jobs.open(store) as jobs:
        jobs.leave(ME)
    async with ledger(store, clock) as second:
        assert await second.take()
        found = second.open("a")
        assert (found.state, found.priority, second.latest("b")) == (JobState.QUEUED, 3, None)
        ended = await second.move(found, JobState.CANCELLED, "by hand", exit_code=130)
        # Its last calls were all that was left to do.
        assert (await second.move(found, JobState.DONE, exit_code=0)).state is JobState.DONE
        assert (await second.move(ended, JobState.RUNNING)).state is JobState.DONE
        with pytest.raises(RunStateError, match="has ended"):
            second.open("a")
        with pytest.raises(RunNotFoundError):
            second.known("b")
        with pytest.raises(ConfigError, match="beyond all bounds"):
            await second.submit("c", "run", {}, 2**40)
        await second.leave()
        # Nothing is noted by who is not the service any more.
        assert await second.move(second.known("a"), JobState.QUEUED) == second.known("a")


async def test_a_service_of_another_machine_is_followed_when_it_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "TAKE_S", 0.01)
    store, clock = tmp_path / "s.sqlite", Clock()
    with Jobs.open(store) as jobs:
        jobs.take(ELSEWHERE, clock())
        jobs.submit("a", kind="run", settings={}, priority=0, now=1.0)
        jobs.move(1, JobState.PAUSED, now=2.0)
    async with Scheduler(ServiceConfig(store=store), look_s=0.01, clock=clock) as desk:
        await asyncio.sleep(0.1)
        assert not desk.ready()
        clock.now += EXPIRY_S + 1
        async with asyncio.timeout(10):
            while not desk.ready():  # noqa: ASYNC110 - what a health check would poll
                await asyncio.sleep(0.01)
        assert [job.run for job in desk.jobs()] == ["a"]
        # The other one wakes up and takes it back: this one stops, and leaves the jobs alone.
        clock.now += EXPIRY_S + 1
        with Jobs.open(store) as jobs:
            jobs.take(replace(ELSEWHERE, boot="third"), clock())
        async with asyncio.timeout(10):
            while desk.ready():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    with Jobs.open(store) as jobs, pytest.raises(StoreLockedError):
        jobs.take(ME, clock())


async def test_a_call_is_paid_from_the_purse_of_its_run_and_that_of_all_runs() -> None:
    reached: list[str] = []
    above = Budget(10.0, 4.0, lambda: reached.append("above"))
    one, two = (Budget(cap, 0.0, lambda: reached.append("own"), above=above) for cap in (None, 3.0))
    assert one.capped
    await one.hold(2.0)
    await two.hold(2.0)
    waiting = asyncio.create_task(one.hold(3.0))
    await asyncio.sleep(0)
    assert not waiting.done()
    two.settle(2.0, 1.0)
    await waiting
    with pytest.raises(Draining):
        await two.hold(2.5)
    assert reached == ["own"]
    one.settle(2.0, 2.0)
    one.settle(3.0, 3.0)
    assert (above.spent, one.spent, two.spent) == (10.0, 5.0, 1.0)
    with pytest.raises(Draining):
        await one.hold(0.5)
    assert reached == ["own", "above"]


def test_batches_are_set_aside_in_both_purses_and_given_back() -> None:
    reached: list[str] = []
    above = Budget(10.0, 0.0, lambda: reached.append("above"))
    one, two = (Budget(8.0, 0.0, lambda: reached.append("own"), above=above) for _ in range(2))
    assert one.reserve(6.0)
    assert not one.reserve(3.0), "beyond its own"
    assert not two.reserve(5.0), "beyond what is left to all"
    assert not two.give_up(5.0), "the other's may be given back"
    one.release(6.0, 6.0)
    assert two.give_up(5.0)
    assert reached == ["above"]
    two.take_over(3.0)
    assert not one.reserve(1.5)
    assert one.reserve(None)
