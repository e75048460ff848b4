"""One process at a run: who holds it, who may take it over, and how a loser learns of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from mmbu_async.errors import StoreLockedError
from mmbu_async.store import LeaseBeat, LeaseOwner, Store, Writer
from mmbu_async.store.lease import EXPIRY_S

if TYPE_CHECKING:
    from tests.conftest import StoreKit

HERE = LeaseOwner.current()
ELSEWHERE = LeaseOwner(host="cluster-7", boot="another boot/pid:[9]", pid=HERE.pid, process="1")

HOLD = """
import sys, time
from pathlib import Path
from mmbu_async.store import LeaseOwner, Store
with Store.open(Path(sys.argv[1])) as store:
    run = store.run("night")
    owner = LeaseOwner.current()
    store.acquire_lease(run.id, owner, time.time())
    store.begin_session(run.id, kind="run", owner=owner, package_version="0", config={}, now=time.time())
    print("held", flush=True)
    sys.stdin.read()
"""


def holder_of(kit: StoreKit) -> subprocess.Popen[str]:
    """Another process that holds the lease, until its standard input ends or it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(kit.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_kept_off_until_the_first_dies(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store)
    store.end_session(session, "done", now=4.0)
    with holder_of(kit) as process:
        # However long it has been silent: it can be seen to live.
        for now in (1e12, 0.0):
            with pytest.raises(StoreLockedError) as caught:
                store.acquire_lease(run.id, HERE, now)
        assert f"run 'night' is held by process {process.pid} on {HERE.host} since 20" in str(caught.value)
        assert "wait for it, or stop it" in str(caught.value)
        process.send_signal(signal.SIGKILL)
        process.wait()
        # At once, though its last sign of life is new.
        beat = store.sessions(run.id)[-1].started_at
        store.acquire_lease(run.id, HERE, beat + 0.1)
    died = store.sessions(run.id)[-1]
    assert died.ended == "died"
    assert died.ended_at == pytest.approx(beat, abs=1.0)
    store.release_lease(run.id, HERE)


async def test_a_session_that_died_before_its_first_beat_lasted_until_its_last_call(kit: StoreKit) -> None:
    store = kit.open()
    run, first = kit.begin(store)
    async with Writer.open(kit.path) as writer:
        await writer.write(kit.reply(run, first, 1), kit.reply(run, first, 4))
    store.acquire_lease(run.id, HERE, 2000.0)
    assert [(one.ended, one.ended_at) for one in store.sessions(run.id)] == [("died", 1004.0 + 1.5)]
    store.release_lease(run.id, HERE)


def test_a_process_number_used_again_is_another_process(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store)
    earlier = replace(HERE, process="12")
    store.acquire_lease(run.id, earlier, 100.0)
    store.acquire_lease(run.id, HERE, 100.1)
    assert not store.renew_lease(run.id, earlier, 101.0)


def test_the_same_process_can_not_hold_a_run_twice(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store)
    other, _ = kit.begin(store, name="other")
    store.acquire_lease(run.id, HERE, 100.0)
    with pytest.raises(StoreLockedError):
        store.acquire_lease(run.id, HERE, 100.0)
    store.acquire_lease(other.id, HERE, 100.0)


def test_another_machine_counts_as_long_as_it_gives_signs_of_life(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store)
    store.acquire_lease(run.id, ELSEWHERE, 100.0)
    assert store.renew_lease(run.id, ELSEWHERE, 150.0)
    with pytest.raises(StoreLockedError, match=r"on cluster-7 since 1970-01-01 00:01:40 UTC \(last sign of"):
        store.acquire_lease(run.id, HERE, 150.0 + EXPIRY_S - 0.1)
    store.acquire_lease(run.id, HERE, 150.0 + EXPIRY_S)
    assert not store.renew_lease(run.id, ELSEWHERE, 211.0)
    store.release_lease(run.id, ELSEWHERE)
    assert store.renew_lease(run.id, HERE, 212.0)


def test_a_container_of_the_same_host_name_is_not_looked_up_by_number(kit: StoreKit) -> None:
    """Its process numbers mean other processes, so that only its heartbeat tells."""
    store = kit.open()
    run, _ = kit.begin(store)
    store.acquire_lease(run.id, replace(HERE, boot="same kernel/pid:[77]", pid=2**22 + 1), 100.0)
    with pytest.raises(StoreLockedError):
        store.acquire_lease(run.id, HERE, 130.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="asks the system for a process by number")
def test_where_start_times_are_unknown_the_number_alone_decides(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store)
    bare = replace(HERE, boot="", process="")
    asker = replace(bare, pid=1)
    store.acquire_lease(run.id, bare, 100.0)
    with pytest.raises(StoreLockedError):
        store.acquire_lease(run.id, asker, 1000.0)
    store.release_lease(run.id, bare)
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    store.acquire_lease(run.id, replace(bare, pid=gone.pid), 100.0)
    store.acquire_lease(run.id, asker, 100.1)


def test_a_released_lease_is_free(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store)
    store.acquire_lease(run.id, ELSEWHERE, 100.0)
    session = kit.session(store, run, now=100.5)
    store.end_session(session, "done", now=101.0)
    store.release_lease(run.id, ELSEWHERE)
    store.acquire_lease(run.id, HERE, 100.0)
    assert store.sessions(run.id)[-1].ended == "done"


async def test_the_writer_carries_heartbeats_and_tells_of_a_lost_lease(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store)
    store.acquire_lease(run.id, ELSEWHERE, 100.0)
    async with Writer.open(kit.path) as writer:
        assert await writer.write(LeaseBeat(run_id=run.id, owner=ELSEWHERE, at=155.0))
        with pytest.raises(StoreLockedError):
            store.acquire_lease(run.id, HERE, 200.0)
        store.acquire_lease(run.id, HERE, 155.0 + EXPIRY_S)
        assert not await writer.write(LeaseBeat(run_id=run.id, owner=ELSEWHERE, at=216.0))
        assert await writer.write(LeaseBeat(run_id=run.id, owner=HERE, at=217.0))


def test_two_that_come_at_once_are_told_apart(kit: StoreKit) -> None:
    """The lease is read and taken in one transaction: a second connection can not come in between."""
    store = kit.open()
    run, _ = kit.begin(store)
    taken: list[str] = []
    for owner in (ELSEWHERE, replace(ELSEWHERE, host="cluster-8")):
        with Store.open(kit.path) as other:
            try:
                other.acquire_lease(run.id, owner, 100.0)
                taken.append(owner.host)
            except StoreLockedError:
                pass
    assert taken == ["cluster-7"]
