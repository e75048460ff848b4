"""Streams of events over a real socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from mmbu_async.service.events import Hub
from mmbu_async.service.jobs import JobState
from tests.service_kit import FakeDesk, Seen, Site, api, served


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    desk = FakeDesk()
    desk.add("a", JobState.RUNNING)
    desk.add("b", JobState.QUEUED)
    desk.move("a", 1)
    with served(tmp_path / "store.sqlite", desk=desk) as found:
        yield found


def take(events: Iterator[Seen], count: int) -> list[tuple[str, str]]:
    return [(one.kind, one.run) for one in (next(events) for _ in range(count))]


def test_a_stream_begins_with_the_state_and_goes_on(site: Site) -> None:
    with site.events(api(path="/events")) as events:
        assert take(events, 3) == [("job", "b"), ("job", "a"), ("progress", "a")]
        site.do(lambda: site.desk.move("a", 2))
        site.do(lambda: site.desk.log("b", "two\nlines"))
        moved, line = next(events), next(events)
        assert (moved.kind, moved.run, moved.data["done"]) == ("progress", "a", 2)
        # A line end inside of a text ends no event.
        assert (line.kind, line.run, line.data) == ("log", "b", {"line": "two\nlines"})


def test_a_stream_of_one_run_has_no_other(site: Site) -> None:
    with site.events(api("b", "/events")) as events:
        assert take(events, 1) == [("job", "b")]
        site.do(lambda: site.desk.move("a", 2))
        site.do(lambda: site.desk.move("b", 3))
        assert take(events, 1) == [("progress", "b")]
    answer = site.fetch(api("none", "/events"))
    assert answer.status == 404


def test_who_comes_back_gets_what_was_missed_and_nothing_twice(site: Site) -> None:
    with site.events(api(path="/events")) as events:
        take(events, 3)
        site.do(lambda: site.desk.move("a", 2))
        last = next(events).id
    for done in (3, 4):
        site.do(lambda done=done: site.desk.move("a", done))
    with site.events(api(path="/events"), Last_Event_ID=last) as events:
        assert [next(events).data["done"] for _ in range(2)] == [3, 4]
        site.do(lambda: site.desk.move("a", 5))
        assert next(events).data["done"] == 5
    with site.events(api("b", "/events"), Last_Event_ID=last) as events:
        site.do(lambda: site.desk.move("b", 1))
        assert next(events).run == "b"


@pytest.mark.parametrize("last", ["", "x", "0-1", "deadbeef-0", "{}-999999", "{}--1", "{}-" + "9" * 30])
def test_an_id_that_means_nothing_gets_the_state(site: Site, last: str) -> None:
    with site.events(api(path="/events")) as events:
        start = next(events).id.split("-")[0]
    with site.events(api(path="/events"), Last_Event_ID=last.format(start)) as events:
        assert take(events, 3) == [("job", "b"), ("job", "a"), ("progress", "a")]


def test_comments_keep_a_quiet_stream_alive(tmp_path: Path) -> None:
    with (
        served(tmp_path / "store.sqlite", heartbeat_s=0.05) as site,
        site.events(api(path="/events")) as events,
    ):
        assert [next(events).kind for _ in range(2)] == ["", ""]


def test_streams_end_with_the_service(tmp_path: Path) -> None:
    with served(tmp_path / "store.sqlite") as site:
        stack = site.events(api(path="/events"))
        events = stack.__enter__()
    assert list(events) == []
    with pytest.raises(OSError):
        site.fetch("/healthz")


def test_a_listener_that_does_not_read_holds_up_nobody(site: Site) -> None:
    address = urlsplit(site.url)
    deaf = socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=30)
    try:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert deaf.recv(16).startswith(b"HTTP/1.1 200")
        with site.events(api(path="/events")) as events:
            take(events, 3)

            def burst() -> None:
                for _ in range(100):
                    site.desk.log("a", "x" * 10_000)

            for _ in range(40):
                site.do(burst)
                assert {kind for kind, _ in take(events, 100)} == {"log"}
        assert site.fetch("/healthz").status == 200
    finally:
        deaf.close()


async def test_a_slow_stream_loses_the_oldest_and_is_told(monkeypatch: Any) -> None:
    desk = FakeDesk()
    hub = Hub(desk, queue=3)
    context = hub.context(None)  # type: ignore[arg-type]
    await anext(context)
    from mmbu_async.service.events import _Stream

    stream = _Stream(None, 3)
    hub._streams.add(stream)
    for number in range(10):
        desk.log("a", str(number))
    for _ in range(20):
        await asyncio.sleep(0)
    content = await stream.next()
    assert content is not None
    text = content.decode()
    assert text.startswith('event: dropped\ndata: {"run":"","data":{"missed":7}}\n\n')
    assert [f'"line":"{number}"' in text for number in (6, 7, 8, 9)] == [False, True, True, True]
    hub._streams.discard(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(context)
