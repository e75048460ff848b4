"""What the pages read from: made once for all who wait, replaced behind their backs, closed when idle."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.errors import StoreError
from mmbu_async.store import Browser, RowFilter, Store
from mmbu_async.viewer import desk as desks
from mmbu_async.viewer.desk import BROWSERS, Desk
from tests.stored_run import RunMaker

NAMES = ("one", "two", "three")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Three runs over the same row."""
    with ExitStack() as stack:
        make = RunMaker(tmp_path / "store.sqlite", stack)
        for name in NAMES:
            store, _ = make([{"id": "only", "reply": "x", "correct": name != "two"}], name=name)
        yield store


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Browser]:
    """Every browser that was opened."""
    browsers: list[Browser] = []
    opening = Browser.open

    def note(*given: Any, **named: Any) -> Browser:
        browsers.append(opening(*given, **named))
        return browsers[-1]

    monkeypatch.setattr(Browser, "open", note)
    return browsers


def is_open(browser: Browser) -> bool:
    try:
        browser.row(1)
    except StoreError:
        return False
    return True


def rows(browser: Browser) -> int:
    return browser.tally(RowFilter()).total()


def touch(store: Store) -> None:
    """What another program writes."""
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE run SET host = host || 'x'")


async def until(condition: Any) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited in vain")


async def test_all_who_wait_get_the_same_browser(store: Store, made: list[Browser]) -> None:
    desk = Desk(store.path, store.runs())
    found = await asyncio.gather(*(desk.read(("one", "two"), rows) for _ in range(8)))
    assert found == [1] * 8
    assert len(made) == 1
    desk.close()


async def test_a_newer_browser_is_made_behind_the_back_of_the_readers(
    store: Store, made: list[Browser], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desks, "REST", 0)
    now = [1000.0]
    desk = Desk(store.path, store.runs(), refresh_s=5.0, clock=lambda: now[0])
    pair = ("one", None)
    assert await desk.read(pair, lambda browser: browser) is made[0]
    touch(store)
    assert await desk.read(pair, lambda browser: browser) is made[0]
    assert len(made) == 1, "too soon"
    now[0] += 60
    held = asyncio.create_task(desk.read(pair, lambda browser: (browser, rows(browser))))
    assert (await held)[0] is made[0], "nobody waits for a newer one"
    await until(lambda: len(made) == 2)
    await until(lambda: not is_open(made[0]))
    assert await desk.read(pair, lambda browser: browser) is made[1]
    desk.close()
    await until(lambda: not is_open(made[1]))


async def test_without_a_change_nothing_is_read_anew(store: Store, made: list[Browser]) -> None:
    desk = Desk(store.path, store.runs(), refresh_s=0.0, clock=lambda: 1e12)
    for _ in range(5):
        await desk.read(("one", None), rows)
    assert len(made) == 1
    desk.close()


async def test_a_browser_in_use_is_closed_by_its_last_user(store: Store, made: list[Browser]) -> None:
    desk = Desk(store.path, store.runs())
    begun, go_on = threading.Event(), threading.Event()

    def slow(browser: Browser) -> bool:
        begun.set()
        go_on.wait(10)
        return is_open(browser)

    await desk.read(("one", None), rows)
    reading = asyncio.create_task(desk.read(("one", None), slow))
    await asyncio.to_thread(begun.wait, 10)
    for pair in (("one", "two"), ("one", "three"), ("two", "one"), ("two", "three")):
        await desk.read(pair, rows)
    assert len(made) == BROWSERS + 1
    go_on.set()
    assert await reading, "it was open as long as it was read from"
    await until(lambda: not is_open(made[0]))
    assert all(map(is_open, made[1:]))
    desk.close()


async def test_what_fails_behind_the_back_is_said_and_the_earlier_is_shown(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desks, "REST", 0)
    desk = Desk(store.path, store.runs(), refresh_s=0.0)
    pair = ("one", None)
    assert await desk.read(pair, rows) == 1
    assert desk.problem(pair) == ""

    def fail(*_: Any) -> Any:
        raise StoreError("the disk is gone.")

    monkeypatch.setattr(desks, "_made", fail)
    touch(store)
    await desk.read(pair, rows)
    await until(lambda: desk.problem(pair))
    assert desk.problem(pair) == "the disk is gone."
    assert await desk.read(pair, rows) == 1
    desk.close()


async def test_a_store_that_cannot_be_written_to_is_shown_with_a_word(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scores are behind, and stay so."""
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("DELETE FROM score WHERE run_id = 1")

    def refuse(*_: Any, **__: Any) -> None:
        raise StoreError("it may only be read.")

    monkeypatch.setattr(desks, "_score", refuse)
    monkeypatch.setattr(desks, "config_of", lambda *_: None)
    monkeypatch.setattr(desks, "rules_of", lambda *_: None)
    desk = Desk(store.path, store.runs())
    pair = ("one", "two")
    assert await desk.read(pair, rows) == 1
    assert desk.problem(pair) == ("Scores of run “one” could not be brought up to date: it may only be read.")
    desk.close()
