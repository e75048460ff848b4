"""The queueing simulator over real sockets: its log tells the truth that a measurement must find."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import numpy as np
import orjson
import pytest

from mmbu_async.simulator import Latency, Record, Simulator, SimulatorConfig


async def ask(simulator: Simulator, count: int, *, stream: bool = False, gap_s: float = 0.0) -> list[Record]:
    """So many requests, each of other content, and the log in order of arrival."""
    url = f"{simulator.url}/v1/chat/completions"

    async def one(session: aiohttp.ClientSession, number: int) -> None:
        await asyncio.sleep(number * gap_s)
        body = {
            "model": "m",
            "stream": stream,
            "messages": [{"role": "user", "content": f"question {number}"}],
        }
        async with session.post(url, json=body) as response:
            assert response.status == 200
            text = await response.text()
        if not stream:
            assert orjson.loads(text)["usage"]["completion_tokens"] == simulator.config.reply_tokens

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(one(session, number) for number in range(count)))
    await simulator.settled()
    return sorted(simulator.log, key=lambda record: record.number)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_requests_wait_in_order_for_a_known_time(stream: bool) -> None:
    config = SimulatorConfig(
        servers=2, latency=Latency("fixed", 0.1), tokens_per_second=100, reply_tokens=6, vision=False
    )
    service = 0.1 + (5 if stream else 6) / 100
    async with Simulator(config) as simulator:
        records = await ask(simulator, 6, stream=stream)
    assert [record.service_s for record in records] == pytest.approx([service] * 6)
    first = records[0].arrived_at
    for place, record in enumerate(records):
        began = record.arrived_at + record.queued_s - first
        # Two at once, so that every second request begins a service time later.
        assert began == pytest.approx(place // 2 * service, abs=0.05)
        assert record.ended_at - record.arrived_at >= record.queued_s + record.service_s - 0.005


async def test_even_latencies_have_the_percentiles_of_their_distribution() -> None:
    latency = Latency("lognormal", 0.02, 0.5)
    config = SimulatorConfig(latency=latency, even_latency=True, reply_tokens=1, vision=False)
    async with Simulator(config) as simulator:
        records = await ask(simulator, 300)
    drawn = np.sort([record.service_s for record in records])
    for share in (0.1, 0.5, 0.9, 0.95):
        assert np.quantile(drawn, share) == pytest.approx(latency.quantile(share), rel=0.03)


async def test_a_freeze_is_seen_by_whoever_comes_meanwhile() -> None:
    config = SimulatorConfig(
        servers=50, latency=Latency("fixed", 0.01), freezes=((0.2, 0.6),), reply_tokens=1, vision=False
    )
    began = time.time()
    async with Simulator(config) as simulator:
        records = await ask(simulator, 20, gap_s=0.05)
    assert time.time() - began > 0.9
    first = records[0].arrived_at
    for record in records:
        at = record.arrived_at - first
        frozen = 0.6 - max(at, 0.2) if 0.19 < at < 0.6 else 0.0
        assert record.queued_s == pytest.approx(max(0.0, frozen), abs=0.02)
    assert max(record.queued_s for record in records) > 0.3
