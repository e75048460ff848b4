"""What is told of runs: bounded, serialized once, and of the right run."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from mmbu_async.pipeline.logs import RUN
from mmbu_async.service.jobs import Event, Progress
from mmbu_async.service.listeners import Listeners
from mmbu_async.service.watching import History, Logbook

POINT = Progress(
    at=0.0,
    done=0,
    total=9,
    judged=0,
    failed=0,
    rows_per_s=0.0,
    eta_s=None,
    cost_usd=0.0,
    cost_unknown=0,
    in_flight=0,
    waiting="",
)


def test_a_history_is_as_long_as_the_run_and_as_large_as_ever() -> None:
    history = History(most=100)
    for second in range(100_000):
        history.add(replace(POINT, at=float(second)))
    times = [point.at for point in history.points]
    assert len(times) <= 100
    assert times == sorted(set(times))
    assert times[0] == 0.0
    assert times[-10:] == [float(second) for second in range(99_990, 100_000)]


async def test_who_listens_slowly_loses_the_oldest_and_is_told() -> None:
    listeners = Listeners(behind=3)
    async with listeners.subscribe(None) as slow, listeners.subscribe("b") as of_b:
        for number in range(10):
            listeners.tell("log", "a" if number % 2 else "b", {"line": str(number)})
        listeners.close()
        heard = [event async for event in slow]
        assert [(event.kind, event.data) for event in heard] == [
            ("dropped", {"missed": 7}),
            ("log", {"line": "7"}),
            ("log", {"line": "8"}),
            ("log", {"line": "9"}),
        ]
        assert {event.run async for event in of_b if event.kind == "log"} == {"b"}
    assert not listeners._open


async def test_an_event_is_made_once_for_all_who_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = Event.of

    def of(number: int, kind: str, run: str, data: object) -> Event:
        made.append(kind)
        return real(number, kind, run, data)  # type: ignore[arg-type]

    monkeypatch.setattr(Event, "of", of)
    listeners = Listeners()
    listeners.tell("log", "a", {})
    assert made == []
    subscriptions = [listeners.subscribe(None) for _ in range(1000)]
    for one in subscriptions:
        await one.__aenter__()
    listeners.tell("log", "a", {"line": "x"})
    assert made == ["log"]
    first = [await anext(aiter(one)) for one in subscriptions]
    assert len({id(event) for event in first}) == 1
    assert (first[0].payload, first[0].number) == (b'{"line":"x"}', 2)


async def test_a_logbook_keeps_the_latest_lines_of_each_run() -> None:
    told: list[tuple[str, str]] = []
    book = Logbook(lambda run, line: told.append((run, line)), lines=2)
    logger = logging.getLogger("mmbu_async.test_logbook")
    logger.setLevel(logging.INFO)
    logger.addHandler(book)
    try:
        logger.info("of nobody")

        async def say(run: str) -> None:
            RUN.set(run)
            for number in range(3):
                logger.info("line %d", number)
            await asyncio.to_thread(logger.warning, "from a thread")

        await asyncio.gather(asyncio.create_task(say("a")), asyncio.create_task(say("b")))
        await asyncio.sleep(0)
    finally:
        logger.removeHandler(book)
    assert [line.split("]")[0].split(" ", 2)[2].strip() for line in book.lines("a")] == [
        "line 2 [run=a",
        "from a thread [run=a",
    ]
    assert len(told) == 8
    assert book.lines("nobody") == []
    book.forget("a")
    assert book.lines("a") == []
