"""What one process asks of another through the store."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mmbu_async.errors import StoreLockedError
from mmbu_async.model import Json
from mmbu_async.store import Heeded, LeaseOwner, Reader, Store, Writer
from mmbu_async.store.control import NOTHING
from tests.conftest import OWNER, StoreKit


def raised(settings: Mapping[str, Json]) -> dict[str, Json]:
    return {**settings, "raised": int(settings.get("raised") or 0) + 1}


def test_nothing_is_asked_of_a_run_that_nobody_spoke_to(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store, 3)
    assert store.control(run.id) == NOTHING


def test_requests_are_numbered_and_join(kit: StoreKit) -> None:
    """Two that come between two looks are both done."""
    store = kit.open()
    run, _ = kit.begin(store, 3)
    assert store.ask(run.id, limits={"": {"rpm": 5}, "judge": {"tpm": 7}}, now=10.0) == 1
    assert store.ask(run.id, paused=True, now=11.0) == 2
    assert store.ask(run.id, limits={"": {"rpm": None, "concurrency": 3}}, now=12.0) == 3
    found = store.control(run.id)
    assert (found.asked, found.asked_at, found.seen, found.paused) == (3, 12.0, 0, True)
    assert found.limits == {"": {"rpm": None, "concurrency": 3}, "judge": {"tpm": 7}}
    assert store.ask(run.id, paused=False, now=13.0) == 4
    assert not store.control(run.id).paused
    assert store.control(run.id).limits == found.limits


async def test_the_process_at_work_reads_and_answers(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store, 3)
    async with Reader.open(kit.path) as reader, Writer.open(kit.path) as writer:
        assert await reader.control(run.id) == NOTHING
        store.ask(run.id, paused=True, limits={"judge": {"rpm": 1.5}}, now=10.0)
        assert await reader.control(run.id) == store.control(run.id)
        assert await writer.write(Heeded(run_id=run.id, asked=1))
        assert store.control(run.id).seen == 1
        # Nothing goes back.
        assert not await writer.write(Heeded(run_id=run.id, asked=1))
        assert not await writer.write(Heeded(run_id=run.id, asked=0))
        assert store.control(run.id).seen == 1


def test_who_takes_the_lease_is_asked_nothing_yet(kit: StoreKit) -> None:
    """A pause was of the process before it; limits are in the run's settings."""
    store = kit.open()
    run, _ = kit.begin(store, 3)
    store.acquire_lease(run.id, OWNER, 5.0)
    assert replace(store.control(run.id), asked_at=0.0) == NOTHING
    store.ask(run.id, paused=True, limits={"": {"rpm": 5}}, now=10.0)
    store.release_lease(run.id, OWNER)
    assert store.control(run.id).paused
    store.acquire_lease(run.id, LeaseOwner.current(), 20.0)
    begun = store.control(run.id)
    assert (begun.asked, begun.seen, begun.paused, begun.limits) == (1, 1, False, {})
    # Asked from here on it is asked of this process.
    assert store.ask(run.id, paused=True, now=21.0) == 2
    assert store.control(run.id).seen == 1


def test_who_does_not_get_the_lease_changes_nothing(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store, 3)
    store.acquire_lease(run.id, LeaseOwner.current(), 5.0)
    store.ask(run.id, paused=True, now=10.0)
    with pytest.raises(StoreLockedError):
        store.acquire_lease(run.id, OWNER, 11.0)
    assert (store.control(run.id).paused, store.control(run.id).seen) == (True, 0)


def test_limits_are_kept_with_the_settings_and_a_pause_is_not(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store, 3)
    store.ask(run.id, limits={"": {"rpm": 5}}, settle=raised, now=10.0)
    store.ask(run.id, paused=True, settle=raised, now=10.0)
    assert store.run("night").config == {"limit": None, "raised": 1}


def test_settings_that_cannot_be_leave_nothing_asked(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store, 3)

    def refuse(settings: Mapping[str, Json]) -> Mapping[str, Json]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.ask(run.id, limits={"": {"rpm": 5}}, settle=refuse, now=10.0)
    assert store.control(run.id) == NOTHING


def test_of_many_that_ask_at_once_none_undoes_another(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store, 3)

    def ask(number: int, path: Path) -> None:
        with Store.open(path) as own:
            for _ in range(10):
                own.ask(run.id, limits={str(number): {"rpm": number}}, settle=raised, now=10.0)

    threads = [threading.Thread(target=ask, args=(number, kit.path)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.control(run.id).asked == 40
    assert store.run("night").config["raised"] == 40
    assert store.control(run.id).limits == {str(number): {"rpm": number} for number in range(4)}
