"""Whole benches: what is measured and stored, and one clear line for what cannot be measured."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from mmbu_async.bench.measured import End
from mmbu_async.bench.plan import Closed, Ends, Open, Warmup
from mmbu_async.bench.pool import Caching
from mmbu_async.bench.record import Phase
from mmbu_async.bench.report import BenchReport, read_report
from mmbu_async.bench.spec import BesideConfig
from mmbu_async.errors import (
    BudgetReachedError,
    ConfigError,
    EndpointDownError,
    EndpointError,
    InterruptedRunError,
    MmbuError,
)
from mmbu_async.simulator import Latency
from tests.bench_runs import bench, spec
from tests.misbehaving import Misbehaving, Request
from tests.unit.test_endpoints_transport import free_port
from tests.whole_run import ENDPOINTS, KEY, MINI, simulated

PRICES = {"input_price": 1.0, "output_price": 10.0}


@pytest.fixture(autouse=True)
def _keys(keys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of a test, not of a night."""
    monkeypatch.setattr("mmbu_async.bench.measuring.FIRST_WAIT_S", 0.01)


def records(report: BenchReport) -> int:
    return sum(len(block.records) for part in report.parts for block in part.blocks)


# ---------------------------------------------------------------- what is measured


@ENDPOINTS
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_sweep_over_both_formats(store: Path, endpoint: str, stream: bool) -> None:
    async with simulated(
        vision=False, servers=4, latency=Latency("fixed", 0.05), tokens_per_second=500, reply_tokens=30
    ) as simulator:
        ended, told = await bench(
            simulator.url,
            store,
            endpoint=endpoint,
            stream=stream,
            loads=(Closed(concurrency=1), Closed(concurrency=4)),
            warmup=Warmup(requests=4),
            **PRICES,
        )
        await simulator.settled()
        assert len(simulator.log) == 41, "one ahead, and twenty of each stage"
        assert {record.max_tokens for record in simulator.log} == {30}
        assert {record.stream for record in simulator.log} == {stream}
    assert ended.stopped is None
    report = read_report(ended.name, store)
    assert report.bench.ended == "done"
    assert [part.load for part in report.parts] == [Closed(concurrency=1), Closed(concurrency=4)]
    assert [line for line in told if line.startswith("4 at once: 20 of 20 replies")]
    for part in report.parts:
        found = part.figures
        assert (found.sent, found.warmup, found.phases) == (20, 4, {Phase.OK: 16})
        assert found.times.latency is not None
        assert found.times.latency.least >= 0.06
        assert found.output_tokens == 30
        assert found.cost_usd > 0
        assert (found.times.first_token is not None) == stream
        assert (found.times.gap is not None) == stream
        if found.times.first_token is not None:
            assert 0.05 <= found.times.first_token.least < found.times.latency.least
    slow, fast = (part.figures.rates.requests.value or 0 for part in report.parts)
    assert fast > 2 * slow


async def test_rows_of_a_benchmark_are_sent_and_their_answers_scored(store: Path) -> None:
    async with simulated() as simulator:
        ended, _ = await bench(simulator.url, store, synthetic=None, data=str(MINI), score=True)
    (part,) = read_report(ended.name, store).parts
    rows = [record for block in part.blocks for record in block.records]
    assert all(record.row.startswith("mini-") for record in rows)
    assert all(record.text for record in rows if record.ok)
    assert 0 < part.figures.scored < part.figures.counted, "some rows need a judge, some do not"
    assert part.figures.right.value is not None
    assert ended.stopped is None


async def test_quality_under_load_shows(store: Path) -> None:
    """A server that truncates replies when it is full."""
    from mmbu_async.simulator import FaultRule, Simulator, SimulatorConfig

    cut = tuple(FaultRule.parse(f"truncated=requests:{number}-{number}") for number in range(22, 42))
    async with Simulator(SimulatorConfig(faults=cut)) as simulator:
        ended, _ = await bench(
            simulator.url,
            store,
            synthetic=None,
            data=str(MINI),
            score=True,
            loads=(Closed(concurrency=1), Closed(concurrency=8)),
            warmup=Warmup(),
        )
    before, after = read_report(ended.name, store).parts
    assert (before.figures.right.value or 0) > (after.figures.right.value or 0)
    assert after.figures.cut_by_limit > before.figures.cut_by_limit


async def test_open_loops_and_cache_busting(store: Path) -> None:
    async with simulated(vision=False, latency=Latency("fixed", 0.02)) as simulator:
        ended, _ = await bench(
            simulator.url,
            store,
            loads=(Open(rate=40), Open(rate=80, most_in_flight=3)),
            caching=Caching.BUST,
        )
        await simulator.settled()
        assert {record.occurrence for record in simulator.log} == {1}
        pictures = [record.pictures[0].sha256 for record in simulator.log]
        assert len(set(pictures)) == len(pictures) == 41
    report = read_report(ended.name, store)
    assert [part.load.name for part in report.parts] == ["40/s", "80/s, at most 3 at once"]
    assert [part.figures.ended for part in report.parts] == [End.COUNT, End.COUNT]


async def test_requests_in_all_are_divided_and_no_stage_is_cut_short_by_another(store: Path) -> None:
    loads = (Closed(concurrency=1), Closed(concurrency=3), Closed(concurrency=5))
    async with simulated(vision=False) as simulator:
        ended, _ = await bench(simulator.url, store, loads=loads, ends=Ends(), requests_in_all=30)
    assert [part.figures.sent for part in read_report(ended.name, store).parts] == [10, 10, 10]


async def test_requests_per_stage_are_of_each_stage(store: Path) -> None:
    loads = (Closed(concurrency=1), Closed(concurrency=3))
    async with simulated(vision=False) as simulator:
        ended, _ = await bench(simulator.url, store, loads=loads, ends=Ends(requests=15))
    assert [part.figures.sent for part in read_report(ended.name, store).parts] == [15, 15]


def test_the_two_counts_exclude_each_other(store: Path) -> None:
    with pytest.raises(ConfigError, match="two different things"):
        spec("http://127.0.0.1:1", store, ends=Ends(requests=5), requests_in_all=5)
    with pytest.raises(ConfigError, match="each needs a request"):
        spec("http://127.0.0.1:1", store, ends=Ends(), requests_in_all=1, loads=(Closed(concurrency=1),) * 2)


async def test_two_endpoints_take_turns_on_the_same_work(store: Path) -> None:
    async with (
        simulated(vision=False, latency=Latency("fixed", 0.03)) as one,
        simulated(vision=False, latency=Latency("fixed", 0.06)) as other,
    ):
        ended, _ = await bench(
            one.url,
            store,
            beside=BesideConfig(model="m", base_url=other.url + "/v1"),
            loads=(Open(rate=40),),
            ends=Ends(requests=40),
            warmup=Warmup(requests=2),
        )
        await one.settled()
        await other.settled()
        assert [record.content for record in one.log] == [record.content for record in other.log]
    report = read_report(ended.name, store)
    assert len(report.targets) == 2
    fast, slow = report.parts
    assert [len(part.blocks) for part in report.parts] == [2, 2]
    assert (fast.figures.sent, slow.figures.sent) == (40, 40)
    begins = sorted((block.began_at, part.target) for part in report.parts for block in part.blocks)
    assert [target for _, target in begins] == [fast.target, slow.target, slow.target, fast.target]
    assert fast.figures.times.latency is not None
    assert slow.figures.times.latency is not None
    assert fast.figures.times.latency.percentile("p50") < slow.figures.times.latency.percentile("p50")
    # The same schedule for either.
    assert [r.intended_s for b in fast.blocks for r in b.records] == pytest.approx(
        [r.intended_s for b in slow.blocks for r in b.records]
    )


# ---------------------------------------------------------------- ends


async def test_the_money_cap_ends_a_bench_and_is_not_passed(store: Path) -> None:
    async with simulated(vision=False) as simulator:
        ended, _ = await bench(simulator.url, store, ends=Ends(requests=1000), max_cost=0.01, **PRICES)
    assert isinstance(ended.stopped, BudgetReachedError)
    report = read_report(ended.name, store)
    assert report.bench.ended == "budget"
    assert 0.005 < report.bench.cost_usd <= 0.01


async def test_a_money_cap_needs_a_price(store: Path) -> None:
    with pytest.raises(ConfigError, match="--max-cost needs prices"):
        await bench("http://127.0.0.1:1", store, max_cost=1.0)


async def test_an_endpoint_that_dies_ends_a_bench(store: Path) -> None:
    async with simulated("reset=requests:10-10000", vision=False) as simulator:
        ended, _ = await bench(simulator.url, store, ends=Ends(requests=1000))
    assert isinstance(ended.stopped, EndpointDownError)
    assert "request after request fails" in str(ended.stopped)
    report = read_report(ended.name, store)
    assert report.bench.ended == "endpoint down"
    assert report.parts[0].figures.ended is End.DEAD
    assert report.parts[0].figures.sent < 100


async def test_a_key_that_is_withdrawn_ends_a_bench(store: Path) -> None:
    async with simulated("unauthorized=requests:10-10000", vision=False) as simulator:
        ended, _ = await bench(simulator.url, store, ends=Ends(requests=1000))
        await simulator.settled()
        assert len(simulator.log) < 15
    assert isinstance(ended.stopped, EndpointError)


async def test_ctrl_c_ends_a_bench_and_keeps_what_was_measured(store: Path) -> None:
    async with simulated(vision=False, latency=Latency("fixed", 0.05)) as simulator:
        running = asyncio.create_task(
            bench(simulator.url, store, ends=Ends(requests=100_000), warmup=Warmup())
        )
        await simulator.until_arrived(20)
        os.kill(os.getpid(), signal.SIGINT)
        ended, _ = await running
        await simulator.settled()
        sent = len(simulator.log)
    assert isinstance(ended.stopped, InterruptedRunError)
    assert ended.stopped.exit_code == 130
    assert f"mmbu bench show {ended.name}" in str(ended.stopped)
    report = read_report(ended.name, store)
    assert report.bench.ended == "interrupted"
    assert records(report) == sent - 1, "every request that was sent, but the one ahead"
    assert report.parts[0].figures.phases == {Phase.OK: report.parts[0].figures.counted}


async def test_ctrl_c_twice_waits_for_nothing_and_keeps_a_record_of_every_request(store: Path) -> None:
    async with simulated(vision=False, servers=3, latency=Latency("fixed", 0.02)) as simulator:
        running = asyncio.create_task(
            bench(simulator.url, store, loads=(Closed(concurrency=3),), ends=Ends(requests=1000))
        )
        await simulator.until_arrived(10)
        simulator.freeze(60.0)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(asyncio.CancelledError):
            await running
        await simulator.settled()
        sent = len(simulator.log)
    report = read_report("bench-m", store)
    assert report.bench.ended == "aborted"
    assert records(report) == sent - 1
    phases = [record.phase for part in report.parts for block in part.blocks for record in block.records]
    assert phases.count(Phase.ABANDONED) == 3


# ---------------------------------------------------------------- endpoints that cannot be measured


async def fails(url: str, store: Path, **changes: object) -> MmbuError:
    with pytest.raises(MmbuError) as caught:
        await bench(url, store, **changes)
    text = str(caught.value)
    assert "\n" not in text
    assert KEY not in text
    assert text.endswith(".")
    report = read_report("bench-m", store)
    assert report.bench.ended in ("refused", "endpoint down")
    assert report.parts == ()
    return caught.value


async def test_a_closed_port(store: Path) -> None:
    port = free_port()
    error = await fails(f"http://127.0.0.1:{port}", store)
    assert isinstance(error, EndpointDownError)
    assert str(error) == (
        f"http://127.0.0.1:{port}/v1 cannot be reached (no connection to 127.0.0.1:{port} (Connection "
        "refused)): check --base-url, port and network."
    )


async def test_tls_that_fails(store: Path) -> None:
    async def silence(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with Misbehaving(silence, greeting=b"220 mail.example ESMTP\r\n") as server:
        error = await fails(server.url.replace("http:", "https:"), store)
    assert isinstance(error, EndpointDownError)
    assert "cannot be reached" in str(error)


async def test_a_wrong_path(store: Path) -> None:
    async with simulated(vision=False) as simulator:
        error = await fails(simulator.url, store, base_url=f"{simulator.url}/api")
    assert isinstance(error, EndpointError)
    assert "check --model and --base-url" in str(error)


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("html_error", EndpointDownError, "fails with status 502 (502 Bad Gateway)"),
        ("html_page", EndpointError, "not in the openai format"),
        ("unauthorized", EndpointError, "refuses the key in OPENAI_API_KEY"),
        ("quota", EndpointError, "quota or credit is used up"),
        ("bad_request", EndpointError, "refuses the request"),
        ("rate_limit", EndpointError, "too many requests to a single one"),
        ("timeout", EndpointDownError, "gives no answer (no byte for 0.7 s)"),
        ("reset", EndpointDownError, "gives no answer"),
        ("cut_mid_body", EndpointError, "breaks its reply off"),
        ("malformed_json", EndpointError, "not in the openai format"),
        ("empty_text", EndpointError, "without a single token"),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_bad_endpoints(
    store: Path, fault: str, kind: type[MmbuError], words: str, stream: bool
) -> None:
    patience = {"idle_timeout": 0.7} if fault == "timeout" else {}
    async with simulated(f"{fault}=1", vision=False) as simulator:
        error = await fails(simulator.url, store, stream=stream, **patience)
    assert isinstance(error, kind)
    assert words in str(error)


async def test_trouble_that_passes_before_the_first_reply_is_no_reason(store: Path) -> None:
    async with simulated("server_error=requests:1-2", vision=False) as simulator:
        ended, _ = await bench(simulator.url, store)
    assert ended.stopped is None


async def test_usage_that_is_not_told_is_estimated_and_said(store: Path) -> None:
    async with simulated("no_usage=1", vision=False) as simulator:
        ended, told = await bench(simulator.url, store)
    assert any("tells no usage" in line for line in told)
    (part,) = read_report(ended.name, store).parts
    assert part.figures.estimated == part.figures.counted
    assert any("their tokens are estimated" in remark for remark in part.verdict.remarks)
    assert (part.figures.output_tokens or 0) > 0


async def test_a_stream_in_one_piece_is_said(store: Path) -> None:
    async with simulated(vision=False, reply_tokens=30) as simulator:
        ended, told = await bench(simulator.url, store, stream=True)
    assert any("in one piece" in line for line in told)
    (part,) = read_report(ended.name, store).parts
    assert part.figures.in_one_piece > 0
    assert part.figures.times.gap is None or part.figures.in_one_piece < part.figures.counted
