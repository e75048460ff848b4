"""What one process asks of another through the store."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from mmbu_async.model import Json
from mmbu_async.store import Heeded, Reader, Store, Writer
from mmbu_async.store.control import NOTHING
from tests.conftest import StoreKit


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


def test_a_session_begins_with_nothing_asked(kit: StoreKit) -> None:
    """A pause was of the process before it; limits are in the run's settings."""
    store = kit.open()
    run, _ = kit.begin(store, 3)
    assert store.begin_control(run.id, now=5.0).asked == 0
    store.ask(run.id, paused=True, limits={"": {"rpm": 5}}, now=10.0)
    begun = store.begin_control(run.id, now=20.0)
    assert (begun.asked, begun.seen, begun.paused, begun.limits) == (1, 1, False, {})
    assert store.ask(run.id, paused=True, now=21.0) == 2


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
