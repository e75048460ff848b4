"""The service's jobs in the store: one open job a run, the next by priority and age, one service a store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mmbu_async.errors import RunStateError, StoreLockedError
from mmbu_async.store.jobs import Job, Jobs, JobState
from mmbu_async.store.lease import EXPIRY_S, LeaseOwner

ME = LeaseOwner.current()
ELSEWHERE = LeaseOwner(host="other", boot="b", pid=1, process="2")
DEAD = replace(ME, pid=2**22 + 1)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with Jobs.open(tmp_path / "s.sqlite") as opened:
        yield opened


def submit(jobs: Jobs, run: str, priority: int = 0, now: float = 1.0) -> Job:
    return jobs.submit(run, kind="run", settings={"model": "m"}, priority=priority, now=now)


def test_a_job_is_queued_with_what_was_asked(jobs: Jobs) -> None:
    made = jobs.submit(
        "a", kind="rejudge", settings={"judge": {"model": "j"}}, priority=2, now=5.0, failed_only=True
    )
    assert made == Job(
        id=1,
        run="a",
        kind="rejudge",
        state=JobState.QUEUED,
        priority=2,
        created_at=5.0,
        settings={"judge": {"model": "j"}},
        failed_only=True,
    )
    assert jobs.all() == [made]


def test_a_run_has_one_job_that_has_not_ended(jobs: Jobs) -> None:
    first = submit(jobs, "a")
    for state in (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED):
        jobs.move(first.id, state, now=2.0)
        with pytest.raises(RunStateError, match=f"run 'a' is {state} already"):
            submit(jobs, "a")
    jobs.move(first.id, JobState.DONE, exit_code=0, now=3.0)
    assert submit(jobs, "a").id == 2


def test_the_next_is_of_the_highest_priority_and_the_oldest_of_these(jobs: Jobs) -> None:
    for run, priority in (("low", -1), ("first", 1), ("second", 1), ("late", 0)):
        submit(jobs, run, priority)
    jobs.change(4, priority=3)
    order = []
    while (job := jobs.claim(now=9.0, without={2})) is not None:
        order.append(job.run)
        assert (job.state, job.started_at) == (JobState.RUNNING, 9.0)
    assert order == ["late", "second", "low"]
    assert [job.state for job in jobs.all()].count(JobState.QUEUED) == 1


def test_it_keeps_when_it_first_began_over_further_turns(jobs: Jobs) -> None:
    submit(jobs, "a")
    jobs.claim(now=2.0)
    jobs.move(1, JobState.QUEUED, message="waits", now=3.0)
    again = jobs.claim(now=4.0)
    assert again is not None
    assert (again.started_at, again.ended_at, again.message) == (2.0, None, "")


def test_of_two_moves_that_come_at_once_the_second_finds_it_gone(jobs: Jobs) -> None:
    submit(jobs, "a")
    ended = jobs.move(1, JobState.CANCELLED, of={JobState.QUEUED}, message="by hand", exit_code=130, now=2.0)
    assert ended is not None
    assert (ended.state, ended.ended_at, ended.exit_code, ended.message) == ("cancelled", 2.0, 130, "by hand")
    assert jobs.move(1, JobState.RUNNING, now=3.0) is None
    assert jobs.claim(now=3.0) is None
    assert jobs.change(1, priority=7).priority == 0


def test_what_a_dead_service_worked_on_is_queued_and_what_was_paused_stays(tmp_path: Path) -> None:
    with Jobs.open(tmp_path / "s.sqlite") as jobs:
        jobs.take(DEAD, 1.0)
        for run in ("working", "paused", "queued", "done"):
            submit(jobs, run)
        jobs.move(1, JobState.RUNNING, now=2.0)
        jobs.move(2, JobState.PAUSED, now=2.0)
        jobs.move(4, JobState.DONE, now=2.0)
    with Jobs.open(tmp_path / "s.sqlite") as jobs:
        jobs.take(ME, 2.0)
        jobs.recover("goes on")
        assert [(job.state.value, job.message) for job in jobs.all()] == [
            ("queued", "goes on"),
            ("paused", ""),
            ("queued", ""),
            ("done", ""),
        ]


def test_a_store_has_one_service_until_it_is_silent(jobs: Jobs) -> None:
    jobs.take(ELSEWHERE, 100.0)
    with pytest.raises(StoreLockedError, match="process 1 on other serves this store"):
        jobs.take(ME, 100.0 + EXPIRY_S - 1)
    assert jobs.beat(ELSEWHERE, 110.0)
    with pytest.raises(StoreLockedError):
        jobs.take(ME, 110.0 + EXPIRY_S - 1)
    jobs.take(ME, 110.0 + EXPIRY_S + 1)
    assert not jobs.beat(ELSEWHERE, 200.0)
    assert jobs.beat(ME, 200.0)
    with pytest.raises(StoreLockedError):
        jobs.take(ELSEWHERE, 201.0)
    jobs.leave(ME)
    jobs.take(ELSEWHERE, 201.0)


def test_without_calls_nothing_has_been_spent(jobs: Jobs) -> None:
    submit(jobs, "a")
    assert jobs.cost() == 0.0
