"""What is seen from outside of a run and of a bench: a real scrape, and a real collector at a socket."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from prometheus_client.parser import text_string_to_metric_families

from mmbu_async import api
from mmbu_async.bench.plan import Closed, Ends, Open
from mmbu_async.errors import ConfigError
from mmbu_async.simulator import Latency
from mmbu_async.telemetry import About, EndpointState, Metrics, Seen, observed, using
from tests.bench_runs import bench
from tests.fake_endpoint import FakeTransport, rig, scripted
from tests.unit.test_endpoints_transport import free_port
from tests.whole_run import KEY, ROWS, config, simulated, stored

pytestmark = pytest.mark.usefixtures("keys", "short_waits")

Scrape = dict[str, Counter[tuple[str, ...]]]
NO_COLLECTOR: dict[str, str] = {}


def scrape(address: str) -> Scrape:
    """Values by name, and by the values of the labels in the order of their names."""
    with urllib.request.urlopen(address, timeout=10) as response:  # noqa: S310 - an http address
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        text = response.read().decode()
    found: Scrape = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name, Counter())[labels] += sample.value  # type: ignore[assignment]
    return found


@contextmanager
def watched(**changes: Any) -> Iterator[str]:
    told: list[str] = []
    with observed(metrics_port=0, environment=NO_COLLECTOR, tell=told.append, **changes):
        yield told[0].removeprefix("metrics are at ")


# ---------------------------------------------------------------- metrics


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_runs_metrics_are_what_the_store_says(store: Path, data: Path, stream: bool) -> None:
    rules = ("rate_limit@model=requests:1", "server_error@model=requests:2")
    async with simulated(*rules) as simulator:
        where = simulator.url.removeprefix("http://")
        settings = config(
            simulator, store, data, stream=stream, input_price=1.0, output_price=10.0, concurrency=4
        )
        with watched() as address:
            result = await api.evaluate(settings)
            found = await asyncio.to_thread(scrape, address)
    assert result.complete
    model, judge = (where, "m", "model"), (where, settings.judge.model, "judge")
    calls = "SELECT count(*), sum(input_tokens), sum(output_tokens), sum(cost_usd) FROM call WHERE ok AND "
    for who, of in ((model, "judge_id IS NULL"), (judge, "judge_id IS NOT NULL")):
        ((count, read, written, cost),) = stored(store, calls + of)
        assert count
        endpoint, name, role = who
        assert found["mmbu_requests_total"][endpoint, name, "ok", role] == count
        assert found["mmbu_replies_total"][endpoint, "stop", name, role] == count
        assert found["mmbu_request_duration_seconds_count"][who] == count
        assert found["mmbu_input_tokens_total"][who] == read
        assert found["mmbu_output_tokens_total"][who] == written
        if role == "model":
            assert found["mmbu_cost_usd_total"][who] == pytest.approx(cost)
    assert found["mmbu_requests_total"][where, "m", "rate_limit", "model"] == 1
    assert found["mmbu_requests_total"][where, "m", "server_error", "model"] == 1
    assert found["mmbu_retries_total"][where, "m", "rate_limit", "model"] == 1
    assert found["mmbu_time_to_first_token_seconds_count"][model] == (ROWS if stream else 0)
    await simulator.settled()
    up = sum(record.bytes_in for record in simulator.log if record.role == "model")
    assert found["mmbu_request_bytes_total"][model] == up
    assert found["mmbu_response_bytes_total"][model] > 100 * ROWS
    # Nothing is at work any more.
    assert "mmbu_requests_in_flight" not in found
    assert "mmbu_run_rows" not in found
    assert found["process_cpu_seconds_total"][()] > 0


async def test_gauges_while_a_run_is_at_work(store: Path, data: Path) -> None:
    async with simulated("timeout@model=text:picture number 5?") as simulator:
        settings = config(simulator, store, data, concurrency=2, timeout=60.0)
        with watched() as address:
            run = asyncio.create_task(api.evaluate(settings, check=False))
            who = (simulator.url.removeprefix("http://"), "m", "model")
            while True:
                found = await asyncio.to_thread(scrape, address)
                if found.get("mmbu_run_rows_done", Counter())["r",] == ROWS - 1:
                    break
                assert not run.done()
                await asyncio.sleep(0.02)
            assert found["mmbu_run_rows"]["r",] == ROWS
            assert found["mmbu_requests_in_flight"][who] == 1
            assert found["mmbu_concurrency_limit"][who] == 2
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
            found = await asyncio.to_thread(scrape, address)
    assert found["mmbu_requests_total"][who[0], "m", "cancelled", "model"] == 1


async def test_a_bench_has_the_same_names(store: Path) -> None:
    async with simulated("server_error=0.2", vision=False, reply_tokens=20) as simulator:
        with watched() as address:
            ended, _ = await bench(
                simulator.url,
                store,
                stream=True,
                loads=(Closed(concurrency=4),),
                ends=Ends(requests=60),
            )
            found = await asyncio.to_thread(scrape, address)
    assert ended.stopped is None
    who = (simulator.url.removeprefix("http://"), "m", "bench")
    counts = dict(stored(store, "SELECT phase, count(*) FROM bench_request GROUP BY phase"))
    assert counts["ok"] > 20
    assert found["mmbu_requests_total"][who[0], "m", "ok", "bench"] == counts["ok"]
    assert found["mmbu_requests_total"][who[0], "m", "server_error", "bench"] == counts["server error"]
    assert found["mmbu_request_duration_seconds_count"][who] == counts["ok"]
    ((down,),) = stored(store, "SELECT sum(bytes_down) FROM bench_request")
    assert found["mmbu_response_bytes_total"][who] == down


async def test_what_a_bench_cannot_send_yet_waits(store: Path) -> None:
    async with simulated(vision=False, servers=1, latency=Latency("fixed", 0.3)) as simulator:
        with watched() as address:
            task = asyncio.create_task(
                bench(
                    simulator.url,
                    store,
                    loads=(Open(rate=50.0, most_in_flight=2),),
                    ends=Ends(requests=30),
                    drain_s=0.1,
                )
            )
            who = (simulator.url.removeprefix("http://"), "m", "bench")
            most = 0.0
            while not task.done():
                found = await asyncio.to_thread(scrape, address)
                most = max(most, found.get("mmbu_requests_waiting", Counter())[who])
                assert found.get("mmbu_requests_in_flight", Counter())[who] <= 2
                await asyncio.sleep(0.02)
            await task
    assert most >= 10


async def test_nobody_is_told_where_nobody_watches() -> None:
    async with rig(FakeTransport(scripted())) as made:
        assert made.client._observer is None
    with using(Metrics()):
        async with rig(FakeTransport(scripted())) as made:
            assert made.client._observer is not None


def test_two_at_one_endpoint_are_added_up_and_the_longest_pause_counts() -> None:
    metrics, about = Metrics(), About(endpoint="e", format="openai", model="m")
    one, two = EndpointState(in_flight=3, limit=8, pause_s=5), EndpointState(in_flight=4, limit=2, pause_s=1)
    with metrics.endpoint(about, lambda: one), metrics.endpoint(about, lambda: two):
        text = metrics.text()
    labels = '{endpoint="e",model="m",role="model"}'
    assert f"mmbu_requests_in_flight{labels} 7\n" in text
    assert f"mmbu_concurrency_limit{labels} 10\n" in text
    assert f"mmbu_pause_seconds{labels} 5\n" in text
    assert "mmbu_requests_in_flight" not in metrics.text()


def test_only_metrics_are_served_and_a_taken_port_is_one_line() -> None:
    with watched() as address:
        with pytest.raises(HTTPError, match="404"):
            scrape(address.replace("/metrics", "/etc/passwd"))
        port = int(address.rpartition(":")[2].partition("/")[0])
        with (
            pytest.raises(ConfigError, match=f"--metrics-port {port}: cannot be served"),
            observed(metrics_port=port),
        ):
            pass


# ---------------------------------------------------------------- spans


@dataclass
class Collector:
    """Takes what an OTLP exporter sends."""

    raw: list[bytes] = field(default_factory=list)

    def spans(self) -> list[Span]:
        return [
            span
            for body in self.raw
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def resource(self) -> dict[str, Any]:
        sent = ExportTraceServiceRequest.FromString(self.raw[0]).resource_spans[0].resource
        return {pair.key: pair.value.string_value for pair in sent.attributes}


@contextmanager
def collecting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            collector.raw.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=here")
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def values(span: Span) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for pair in span.attributes:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        read[pair.key] = [one.string_value for one in value.values] if kind == "array_value" else value
    return read


async def test_each_attempt_is_a_span_without_what_was_said(
    store: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = ("rate_limit@model=requests:1", "bad_request@model=text:picture number 2?")
    with collecting(monkeypatch) as collector:
        async with simulated(*rules) as simulator:
            settings = config(
                simulator,
                store,
                data,
                stream=True,
                input_price=1.0,
                output_price=10.0,
                seed=7,
                max_tokens=300,
            )
            with observed():
                await api.evaluate(settings, check=False)
        spans = collector.spans()
    assert collector.resource()["service.name"] == "mmbu-async"
    assert collector.resource()["service.instance.id"] == "here"
    ((attempts,),) = stored(store, "SELECT count(*) FROM call")
    assert len(spans) == attempts
    assert {span.kind for span in spans} == {Span.SPAN_KIND_CLIENT}
    good = next(
        span for span in spans if span.name == "chat m" and span.status.code != Status.STATUS_CODE_ERROR
    )
    known = values(good)
    assert known["gen_ai.operation.name"] == "chat"
    assert known["gen_ai.provider.name"] == "openai"
    assert known["gen_ai.request.model"] == "m"
    assert known["gen_ai.request.max_tokens"] == 300
    assert known["gen_ai.request.seed"] == 7
    assert known["gen_ai.request.stream"] is True
    assert known["gen_ai.usage.input_tokens"] > 0
    assert known["gen_ai.usage.output_tokens"] > 0
    assert known["gen_ai.response.finish_reasons"] == ["stop"]
    assert known["gen_ai.response.id"]
    assert known["server.address"] == "127.0.0.1"
    assert known["server.port"] == int(simulator.url.rpartition(":")[2])
    assert known["mmbu.run"] == "r"
    assert (
        0
        < known["gen_ai.response.time_to_first_chunk"] * 1e9
        <= good.end_time_unix_nano - good.start_time_unix_nano
    )
    failed = [values(span) for span in spans if span.status.code == Status.STATUS_CODE_ERROR]
    assert Counter(one["error.type"] for one in failed) == {"rate_limit": 1, "bad_request": 1}
    assert {one["http.response.status_code"] for one in failed} == {429, 400}
    assert [
        one["http.request.resend_count"] for one in map(values, spans) if "http.request.resend_count" in one
    ] == [1]
    assert {one["mmbu.role"] for one in map(values, spans)} == {"model", "judge"}
    said = [text for row in stored(store, "SELECT text FROM call WHERE text <> ''") for text in row]
    questions = [text for row in stored(store, "SELECT question FROM sample") for text in row]
    whole = b"".join(collector.raw)
    for secret in (KEY, *(text for text in (*said, *questions) if len(text) > 10)):
        assert secret.encode() not in whole


def test_a_cancelled_attempt_is_a_span_of_its_own() -> None:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from mmbu_async.telemetry.spans import Spans

    exporter = InMemorySpanExporter()
    about = About(endpoint="e:1", host="e", format="gemini", model="m")
    with Spans(exporter) as spans, spans.endpoint(about, lambda: EndpointState(in_flight=0)) as observer:
        observer.ended(Seen(started_at=100.0, total_s=2.5, outcome=None))
    (span,) = exporter.get_finished_spans()
    assert span.name == "generate_content m"
    assert span.attributes is not None
    assert span.attributes["error.type"] == "cancelled"
    assert (span.start_time, span.end_time) == (100_000_000_000, 102_500_000_000)


async def test_a_collector_that_is_not_there_costs_one_line(
    store: Path, data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    async with simulated() as simulator:
        with caplog.at_level(logging.WARNING), observed():
            result = await api.evaluate(config(simulator, store, data))
    assert result.complete
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert told[0].startswith("spans do not reach the OpenTelemetry collector, and the work goes on: ")
    assert "\n" not in told[0]


@pytest.mark.parametrize("wanted", [True, False])
def test_without_the_extra(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wanted: bool
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    environment = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9/v1/traces"} if wanted else {}
    with observed(environment=environment) as metrics:
        assert metrics is None
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == wanted
    assert all("pip install 'mmbu-async[telemetry]'" in text for text in told)
