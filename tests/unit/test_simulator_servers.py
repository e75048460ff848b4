"""Servers behind one queue, against a plain simulation of the same and a clock that jumps."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.errors import ConfigError
from mmbu_async.simulator.command import configure, parser
from mmbu_async.simulator.config import Latency, SimulatorConfig
from mmbu_async.simulator.limits import QueueFullError
from mmbu_async.simulator.server import Simulator
from mmbu_async.simulator.servers import Servers
from tests.virtual_time import run_virtually


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def plain(servers: int, arrivals: list[tuple[float, float]]) -> list[float]:
    """When each is done, first in, first out, by looking at all servers each time."""
    free = [0.0] * servers
    ends = []
    for at, service in arrivals:
        server = min(range(servers), key=lambda number: free[number])
        free[server] = max(at, free[server]) + service
        ends.append(free[server])
    return ends


@given(
    servers=st.integers(1, 5),
    steps=st.lists(st.tuples(st.floats(0, 3), st.floats(0, 4)), min_size=1, max_size=60),
)
def test_each_is_taken_by_the_server_that_is_free_first(
    servers: int, steps: list[tuple[float, float]]
) -> None:
    clock = Clock()
    queue = Servers(servers, clock=clock)
    arrivals: list[tuple[float, float]] = []
    ends = []
    for gap, service in steps:
        clock.now += gap
        arrivals.append((clock.now, service))
        ends.append(queue.admit(service).ends)
    assert ends == pytest.approx(plain(servers, arrivals))


def test_capacity_is_servers_over_service_time() -> None:
    clock, random = Clock(), Random(1)
    queue = Servers(8, clock=clock)
    last = max(queue.admit(random.uniform(0.5, 1.5)).ends for _ in range(8000))
    assert 8000 / (last - 100) == pytest.approx(8.0, rel=0.01)


def test_one_more_than_may_wait_is_refused() -> None:
    clock = Clock()
    queue = Servers(1, clock=clock, queue=2)
    for _ in range(3):
        queue.admit(1.0)
    with pytest.raises(QueueFullError):
        queue.admit(1.0)
    clock.now += 1.0
    assert queue.admit(1.0).ends == 104.0


def test_a_freeze_delays_what_lies_in_it_and_counts_from_the_first_arrival() -> None:
    clock = Clock()
    queue = Servers(2, clock=clock, freezes=[(1.0, 3.0)])
    clock.now = 200.0
    ends = [queue.moment(queue.admit(service).ends) for service in (0.9, 1.5)]
    assert ends == pytest.approx([200.9, 203.5])
    clock.now = 202.0
    assert queue.moment(queue.admit(1.0).ends) == pytest.approx(204.0)
    clock.now = 210.0
    assert queue.moment(queue.admit(1.0).ends) == pytest.approx(211.0)


@given(
    freezes=st.lists(st.tuples(st.floats(0, 20), st.floats(0.1, 5)), max_size=5),
    at=st.floats(0, 60),
)
def test_work_and_moment_undo_each_other(freezes: list[tuple[float, float]], at: float) -> None:
    clock = Clock()
    queue = Servers(1, clock=clock, freezes=[(begin, begin + length) for begin, length in freezes])
    queue.admit(0.0)
    work = queue.work(100 + at)
    assert queue.work(queue.moment(work)) == pytest.approx(work)
    assert queue.moment(work) <= 100 + at + 1e-9


def test_a_freeze_lengthens_what_is_under_way() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        queue = Servers(1, clock=loop.time)
        done: list[float] = []

        async def one() -> None:
            await queue.until(queue.admit(1.0).ends)
            done.append(loop.time())

        async with asyncio.TaskGroup() as group:
            group.create_task(one())
            group.create_task(one())
            await asyncio.sleep(0.5)
            queue.freeze(2.0)
        return done

    assert run_virtually(main()) == pytest.approx([3.0, 4.0])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"servers": 2, "max_concurrent": 2}, "not both"),
        ({"freezes": ((1.0, 2.0),)}, "needs servers"),
        ({"servers": 1, "freezes": ((2.0, 2.0),)}, "end after it begins"),
        ({"servers": 0}, "at least 1"),
        ({"reply_tokens": 0}, "at least 1"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SimulatorConfig(**settings)  # type: ignore[arg-type]


async def test_a_port_that_is_taken_is_said_without_a_tuple() -> None:
    async with Simulator(SimulatorConfig()) as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(ConfigError, match=rf"127\.0\.0\.1:{port}: Address already in use; choose"):
            await Simulator(SimulatorConfig(port=port)).__aenter__()


def test_flags() -> None:
    given = parser().parse_args(
        ["--servers", "4", "--freeze", "5-7.5", "--even", "--reply-tokens", "50", "--latency", "0.2"]
    )
    config = configure(given)
    assert (config.servers, config.freezes, config.even_latency) == (4, ((5.0, 7.5),), True)
    assert (config.reply_tokens, config.latency) == (50, Latency("fixed", 0.2))
    with pytest.raises(ConfigError, match="BEGIN-END"):
        configure(parser().parse_args(["--servers", "4", "--freeze", "5"]))
