"""Known wounds of load generators, against the simulator on real sockets."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest

from mmbu_async.bench.measured import End
from mmbu_async.bench.plan import Closed, Ends, Load, Open, Warmup
from mmbu_async.bench.record import Phase, Record
from mmbu_async.bench.report import Part, read_report
from mmbu_async.simulator import Latency, Simulator, SimulatorConfig
from tests.bench_runs import bench
from tests.misbehaving import Misbehaving, Request, response


@pytest.fixture(autouse=True)
def _keys(keys: None) -> None:
    """No test needs its own."""


async def part(url: str, store: Path, load: Load, ends: Ends, **changes: object) -> Part:
    ended, _ = await bench(url, store, loads=(load,), ends=ends, warmup=Warmup(), **changes)
    (found,) = read_report(ended.name, store).parts
    return found


def records(found: Part) -> list[Record]:
    return [record for block in found.blocks for record in block.records]


async def test_waiting_under_our_own_cap_is_counted_from_the_schedule(store: Path) -> None:
    """8 requests at 10/s into 500 ms with one at a time; reported elsewhere as 506 ms, truly 1,932."""
    config = SimulatorConfig(latency=Latency("fixed", 0.5), vision=False)
    async with Simulator(config) as simulator:
        found = await part(simulator.url, store, Open(rate=10, most_in_flight=1), Ends(requests=8))
    latency, service = found.figures.times.latency, found.figures.times.service
    assert latency is not None
    assert service is not None
    assert latency.mean.value == pytest.approx(1.93, abs=0.25)
    assert service.mean.value == pytest.approx(0.51, abs=0.1)


async def test_a_stall_of_two_seconds_is_in_the_p99_of_an_open_loop(store: Path) -> None:
    config = SimulatorConfig(
        servers=1000, latency=Latency("fixed", 0.02), freezes=((2.0, 4.0),), vision=False, reply_tokens=5
    )
    async with Simulator(config) as simulator:
        found = await part(simulator.url, store, Open(rate=50), Ends(seconds=6.0), idle_timeout=30.0)
    latency = found.figures.times.latency
    assert latency is not None
    assert latency.percentile("p50") < 0.5
    assert latency.percentile("p99") > 1.5
    assert found.figures.ended is End.TIME


async def test_hundreds_are_really_under_way_and_not_a_hundred(store: Path) -> None:
    config = SimulatorConfig(latency=Latency("fixed", 1.0), vision=False, reply_tokens=5)
    async with Simulator(config) as simulator:
        most = 0

        async def count() -> None:
            nonlocal most
            while True:
                most = max(most, simulator._arrived.count - simulator._log.ended.count)
                await asyncio.sleep(0.02)

        watching = asyncio.create_task(count())
        found = await part(simulator.url, store, Closed(concurrency=300), Ends(requests=600))
        watching.cancel()
    assert most >= 250
    assert max(record.in_flight for record in records(found)) == 300


async def test_a_connection_is_used_again(store: Path) -> None:
    async with Simulator(SimulatorConfig(vision=False)) as simulator:
        found = await part(simulator.url, store, Closed(concurrency=3), Ends(requests=60))
    new = [record for record in records(found) if record.connect_s is not None]
    assert len(new) <= 3


async def test_a_large_reply_is_read_at_once_and_not_64_kb_a_time(store: Path) -> None:
    """A client that reads in pieces of 64 KB needs hundreds of turns of its loop for this one."""
    body = b'{"choices":[{"message":{"content":"%b"},"finish_reason":"stop"}]}' % (b"x" * 20_000_000)

    async def large(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(response(body))

    async with Misbehaving(large) as server:
        began = time.perf_counter()
        found = await part(server.url, store, Closed(concurrency=1), Ends(requests=5), base_url=server.url)
        took = time.perf_counter() - began
    assert [record.bytes_down for record in records(found)] == [len(body)] * 5
    assert took < 20.0


async def test_more_than_is_served_ends_early_and_says_so(store: Path) -> None:
    # So few a second that a machine which is busy with other things still asks and serves in time.
    config = SimulatorConfig(servers=4, latency=Latency("fixed", 0.2), vision=False, reply_tokens=5)
    async with Simulator(config) as simulator:
        found = await part(simulator.url, store, Open(rate=50), Ends(seconds=60.0))
    assert found.figures.ended is End.SATURATED
    assert found.blocks[0].end_s < 30.0
    assert any("over-saturated" in remark for remark in found.verdict.remarks)


async def test_every_percentile_is_that_of_the_servers_own_log(store: Path) -> None:
    """Known distribution, known queue: what was waited for is what the servers say it took."""
    config = SimulatorConfig(
        servers=6, latency=Latency("lognormal", 0.1, 0.5), even_latency=True, vision=False, reply_tokens=5
    )
    async with Simulator(config) as simulator:
        found = await part(simulator.url, store, Open(rate=38), Ends(requests=300))
        await simulator.settled()
        true = np.array([one.queued_s + one.service_s for one in simulator.log][1:])
    latency = found.figures.times.latency
    assert latency is not None
    assert found.figures.phases == {Phase.OK: 300}
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95)):
        # The rest is this machine's: how near it is on a quiet one, `benchmarks.bench_truth` says.
        assert latency.percentile(name) == pytest.approx(np.quantile(true, share), rel=0.4, abs=0.05)


async def test_a_burst_of_users_starts_at_once(store: Path) -> None:
    config = SimulatorConfig(latency=Latency("fixed", 0.5), vision=False, reply_tokens=5)
    async with Simulator(config) as simulator:
        found = await part(simulator.url, store, Closed(concurrency=64), Ends(requests=64))
        await simulator.settled()
        arrived = sorted(one.arrived_at for one in simulator.log)[1:]
    assert {record.intended_s for record in records(found)} == {0.0}
    assert arrived[-1] - arrived[0] < 0.45, "the last one comes before the first one has its reply"
