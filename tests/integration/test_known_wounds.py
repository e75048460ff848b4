"""What this kind of program is known to get wrong, by public reports on evaluation frameworks."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from mmbu_async import api
from mmbu_async.errors import EndpointError, InterruptedRunError
from mmbu_async.model import FailureKind, Status
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.progress import silent
from mmbu_async.pipeline.run import Stages
from mmbu_async.simulator import Latency
from tests.misbehaving import Misbehaving, Request, response
from tests.whole_run import (
    ENDPOINTS,
    KEY,
    ROWS,
    addresses,
    calls,
    complete,
    config,
    replies,
    simulated,
    statuses,
    stops,
    stored,
)

pytestmark = pytest.mark.usefixtures("keys", "short_waits")


@ENDPOINTS
async def test_one_row_that_is_never_answered_does_not_hold_up_the_tail(
    data: Path, store: Path, endpoint: str
) -> None:
    began = time.monotonic()
    async with simulated("timeout@model=text:number 7?") as simulator:
        settings = config(simulator, store, data, endpoint, idle_timeout=0.5, max_attempts=2)
        result = await api.evaluate(settings)
        assert result.exit_code == 3
        assert statuses(result) == {Status.SCORED: ROWS - 1, Status.FAILED: 1}
    (row,) = [row for row in result if row.status is Status.FAILED]
    assert row.failure is not None
    assert row.failure.kind is FailureKind.TIMEOUT
    assert row.attempts == 2
    assert time.monotonic() - began < 30


async def test_a_late_reply_beside_its_retry_makes_one_row(data: Path, store: Path) -> None:
    async with simulated("stall@model=first:1", stall_s=1.0) as simulator:
        settings = config(simulator, store, data, idle_timeout=0.4, limit=6)
        await complete(await api.evaluate(settings), store, 6)
        assert Counter(record.aborted for record in await calls(simulator)) == {True: 6, False: 6}
        assert replies(store).total() == 6


async def test_a_reply_cut_by_the_token_limit_is_not_bought_again(data: Path, store: Path) -> None:
    async with simulated("truncated@model=1.0") as simulator:
        await complete(await api.evaluate(config(simulator, store, data)), store)
        for _ in range(2):
            await api.resume("r", store=store)
        assert len(await calls(simulator)) == ROWS


async def test_nothing_stops_at_the_concurrency_of_the_start(data: Path, store: Path) -> None:
    async with simulated(latency=Latency("fixed", 1.0)) as simulator:
        await complete(await api.evaluate(config(simulator, store, data, concurrency=40)), store)
        asked = await calls(simulator)
    moments = sorted([(r.arrived_at, 1) for r in asked] + [(r.ended_at, -1) for r in asked])
    most = at_once = 0
    for _, change in moments:
        at_once += change
        most = max(most, at_once)
    assert most >= 20


async def test_a_judge_without_a_valid_key_keeps_every_reply(data: Path, store: Path) -> None:
    async with simulated("unauthorized@judge=1.0") as simulator:
        await stops(config(simulator, store, data), EndpointError, 4)
        kept = replies(store).total()
        assert kept == sum(record.status == 200 for record in await calls(simulator)) > 0
        assert not stored(store, "SELECT 1 FROM score WHERE correct = 0")
    async with simulated() as simulator:
        result = await api.resume("r", store=store, changes=addresses(simulator))
        await complete(result, store)
        assert len(await calls(simulator)) == ROWS - kept


async def test_a_signal_is_heard_in_the_middle_of_a_long_retry_after(data: Path, store: Path) -> None:
    async def watch(monitor: Monitor, stages: Stages) -> None:
        while not monitor.rate_limited:  # noqa: ASYNC110 - the counter is what a display would poll
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        await silent(monitor, stages)

    began = time.monotonic()
    async with simulated("rate_limit@model=1.0", retry_after_s=600) as simulator:
        settings = config(simulator, store, data, max_retry_time=3600)
        with pytest.raises(InterruptedRunError):
            await api.evaluate(settings, watch=watch)
        assert len(await calls(simulator)) <= 16
    assert time.monotonic() - began < 15


async def test_a_request_rate_of_one_a_minute_does_not_hold_up_a_signal(data: Path, store: Path) -> None:
    async def watch(monitor: Monitor, stages: Stages) -> None:
        while not monitor.replied:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        await silent(monitor, stages)

    began = time.monotonic()
    async with simulated() as simulator:
        with pytest.raises(InterruptedRunError):
            await api.evaluate(config(simulator, store, data, rpm=1), watch=watch)
        assert len(await calls(simulator)) == 1
    assert time.monotonic() - began < 15


async def test_an_unreadable_image_fails_its_row_and_costs_no_call(data: Path, store: Path) -> None:
    (data / "images" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
    text = (data / "metadata.jsonl").read_text()
    lines = text.splitlines()
    lines[5] = lines[5].replace("images/retina.jpg", "images/broken.png")
    (data / "metadata.jsonl").write_text("\n".join(lines))
    async with simulated() as simulator:
        result = await api.evaluate(config(simulator, store, data, preflight=True))
        assert result.exit_code == 3
        assert statuses(result) == {Status.SCORED: ROWS - 1, Status.FAILED: 1}
        (row,) = [row for row in result if row.status is Status.FAILED]
        assert row.sample.id == "row-5"
        assert row.failure is not None
        assert row.failure.kind is FailureKind.IMAGE
        assert "broken.png" in row.failure.message
        assert len(await calls(simulator)) == ROWS - 1


@pytest.mark.parametrize("status", ["401 Unauthorized", "400 Bad Request", "500 Internal Server Error"])
async def test_an_endpoint_that_repeats_the_key_does_not_get_it_into_store_log_or_error(
    data: Path, store: Path, status: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def tell(request: Request, writer: asyncio.StreamWriter) -> None:
        said = f"{'x' * 480} your header was: {request.headers['authorization']}"
        writer.write(response(said.encode(), status=status, X_Request_Id=f"id-{KEY}"))

    caplog.set_level(logging.DEBUG, logger="mmbu_async")
    async with Misbehaving(tell) as server, simulated() as simulator:
        settings = config(simulator, store, data, max_attempts=2)
        settings = settings.model_copy(update={"base_url": server.url + "/v1"})
        result = await api.evaluate(settings, check=False)
        assert result.stopped is not None
        assert server.requests
    assert KEY not in str(result.stopped)
    assert KEY not in caplog.text
    for file in store.parent.glob("store.sqlite*"):
        assert KEY.encode() not in file.read_bytes()
    kinds = stored(store, "SELECT DISTINCT kind FROM call")
    assert len(kinds) == 1


@ENDPOINTS
async def test_every_call_in_the_simulators_log_is_accounted_for(
    data: Path, store: Path, endpoint: str
) -> None:
    """Everything at once: rows exactly once; calls, tokens and money as the simulator has them."""
    rules = (
        "server_error=0.08",
        "rate_limit=0.08",
        "reset=0.04",
        "cut_mid_body=0.04",
        "malformed_json=0.04",
        "overloaded=0.04",
        "truncated@model=0.05",
        "refusal@model=0.05",
    )
    prices = {"input_price": 1000.0, "output_price": 1000.0}
    async with simulated(*rules, seed=3, retry_after_s=0.1, retry_after_style="ms") as simulator:
        settings = config(
            simulator, store, data, endpoint, judge={"max_attempts": 20, **prices}, max_attempts=20, **prices
        )
        result = await api.evaluate(settings)
        await complete(result, store)
        await simulator.settled()
        log = simulator.log
    assert stored(store, "SELECT count(*) FROM call") == [(len(log),)]
    lost = {"reset", "cut_mid_body", "malformed_json"}
    seen = [record for record in log if record.status == 200 and record.fault not in lost]
    ((tokens_in, tokens_out, money),) = stored(
        store, "SELECT sum(input_tokens), sum(output_tokens), sum(cost_usd) FROM call WHERE ok"
    )
    assert tokens_in == sum(record.input_tokens for record in seen)
    assert tokens_out == sum(record.output_tokens for record in seen)
    assert money == pytest.approx((tokens_in + tokens_out) * 1e-3)
    unknown = stored(store, "SELECT count(*) FROM call WHERE NOT ok AND cost_usd IS NULL")
    assert unknown == [(sum(record.fault in lost for record in log),)]
