"""Each request ends as exactly one record, good or bad, and the record says how far it came."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import orjson
import pytest

from mmbu_async.bench.ask import Ask
from mmbu_async.bench.record import Phase, Record, Sent
from mmbu_async.bench.sender import Sender
from mmbu_async.endpoints.timed import TimedAiohttp
from mmbu_async.endpoints.transport import Timeouts
from mmbu_async.model import Usage
from tests.bench_kit import PRICE, TOKENS, event, reply, target, work
from tests.misbehaving import Misbehaving, Request, reset, response
from tests.unit.test_endpoints_transport import free_port
from tests.whole_run import ENDPOINTS, KEY, simulated

TIMEOUTS = Timeouts(total=20.0, connect=5.0, idle=0.5)
STREAMING = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


async def one(url: str, ask: Ask | None = None, **changes: Any) -> Sent:
    """One request, meant to start a tenth of a second ago."""
    lost: list[Record] = []
    async with TimedAiohttp(TIMEOUTS, None, time.perf_counter) as transport:
        sender = Sender(target(url, **changes), transport)
        intended = time.perf_counter() - 0.1
        sent = await sender.send(
            ask or work(stream=bool(changes.get("stream"))).ask,
            number=3,
            intended=intended,
            stage_began=intended - 1.0,
            lost=lost.append,
        )
    assert lost == []
    assert sender.in_flight == 0
    record = sent.record
    assert (record.number, record.in_flight) == (3, 1)
    assert record.intended_s == pytest.approx(1.0)
    assert record.latency_s == pytest.approx(record.total_s + record.delay_s)
    assert record.delay_s >= 0.1
    assert record.ok == (record.message == "")
    assert "\n" not in record.message
    assert KEY not in record.message
    return sent


OK, NO_TOKEN, CUT, MALFORMED = Phase.OK, Phase.NO_TOKEN, Phase.CUT, Phase.MALFORMED
FAULTS = {
    "rate_limit": Phase.RATE_LIMIT,
    "server_error": Phase.SERVER,
    "overloaded": Phase.SERVER,
    "html_error": Phase.SERVER,
    "bad_request": Phase.REFUSED,
    "unauthorized": Phase.REFUSED,
    "model_not_found": Phase.REFUSED,
    "reset": Phase.FIRST_BYTE,
    "timeout": Phase.FIRST_BYTE,
    "reset_mid_body": CUT,
    "cut_mid_body": CUT,
    "malformed_json": MALFORMED,
    "html_page": MALFORMED,
    "empty_text": NO_TOKEN,
    "truncated": OK,
    "content_filter": OK,
    "null_content": OK,
    "reasoning_field": OK,
    "no_usage": OK,
}


@ENDPOINTS
@STREAMING
@pytest.mark.parametrize("fault", FAULTS)
async def test_faults(fault: str, stream: bool, endpoint: str) -> None:
    async with simulated(f"{fault}=1", vision=False) as simulator:
        url = simulator.url + ("/v1" if endpoint == "openai" else "")
        sent = await one(url, endpoint=endpoint, stream=stream)
    record = sent.record
    assert record.phase is FAULTS[fault], record.message
    assert (sent.reply is not None) == (record.phase in (OK, NO_TOKEN))
    if fault == "no_usage":
        assert record.estimated
        assert record.input_tokens == 90
        assert record.output_tokens > 3
    if record.ok and stream:
        assert record.events > 0
        assert record.last_token_s is not None
    if stream and fault == "reasoning_field":
        assert record.first_thought_s is not None
        assert record.first_output_s is not None
        assert record.first_thought_s <= record.first_output_s
        assert record.reasoning_tokens > 0 or endpoint == "anthropic"
    if stream and record.phase is CUT:
        assert record.events > 0
        assert f"after {record.events} pieces" in record.message
    if not record.events:
        assert record.first_token_s is None, "a request without a token has no time to its first one"


@STREAMING
async def test_a_closed_port(stream: bool) -> None:
    sent = await one(f"http://127.0.0.1:{free_port()}/v1", stream=stream)
    assert sent.record.phase is Phase.CONNECT
    assert "Connection refused" in sent.record.message
    assert sent.record.cost_usd is None


async def test_tls_that_fails() -> None:
    async def silence(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with Misbehaving(silence, greeting=b"220 mail.example ESMTP\r\n") as server:
        sent = await one(server.url.replace("http:", "https:") + "/v1")
    assert sent.record.phase is Phase.CONNECT
    assert sent.record.first_byte_s is None


async def test_a_connection_that_breaks_while_the_image_goes_out() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1000)
        reset(writer)

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0, limit=2**16)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    sent = await one(url, Ask(body=b"x" * 30_000_000, images=1, pixels=1, raw_input=1))
    assert sent.record.phase is Phase.UPLOAD
    assert sent.record.sent_s is None
    server.close()


async def test_error_in_a_stream_after_some_tokens_is_a_cut() -> None:
    async with simulated("error_in_200=1", vision=False) as simulator:
        streamed = (await one(f"{simulator.url}/v1", stream=True)).record
        whole = (await one(f"{simulator.url}/v1")).record
    assert streamed.phase is CUT
    assert streamed.events > 0
    assert whole.phase is Phase.SERVER


async def streams(request: Request, writer: asyncio.StreamWriter, pieces: list[bytes], gap_s: float) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(gap_s)
    writer.close()


def words(count: int) -> list[bytes]:
    return [event({"choices": [{"index": 0, "delta": {"content": "tok "}}]}) for _ in range(count)]


ENDING = [
    event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    event({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": TOKENS}}),
    b"data: [DONE]\n\n",
]


async def test_a_stream_that_something_buffered_whole_is_marked_and_has_no_token_times() -> None:
    async def buffered(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        await streams(request, writer, [b"".join(words(TOKENS) + ENDING)], 0.0)

    async with Misbehaving(buffered) as server:
        sent = await one(server.url, stream=True)
    assert sent.record.ok
    assert sent.record.in_one_piece
    assert (sent.record.first_token_s, sent.record.token_time_s, sent.gaps_s) == (None, None, ())
    assert sent.record.output_tokens == TOKENS


async def test_an_honest_stream_has_times_and_gaps() -> None:
    async def paced(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.1)
        await streams(request, writer, words(TOKENS) + ENDING, 0.005)

    async with Misbehaving(paced) as server:
        sent = await one(server.url, stream=True)
    record = sent.record
    assert record.ok
    assert not record.in_one_piece
    assert record.events == TOKENS
    assert len(sent.gaps_s) == TOKENS - 1
    assert record.first_token_s is not None
    assert record.first_token_s >= 0.2, "from the intended start"
    assert record.token_time_s == pytest.approx(sum(sent.gaps_s) / (TOKENS - 1))
    assert record.longest_gap_s == max(sent.gaps_s)
    assert record.cost_usd == pytest.approx(PRICE.cost(Usage(input_tokens=100, output_tokens=TOKENS)))


async def test_times_are_in_the_order_of_the_way_and_bytes_are_counted() -> None:
    body = orjson.dumps({"x": "y" * 1000})

    async def slow(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        writer.write(response(reply()))

    async with Misbehaving(slow) as server:
        sent = await one(server.url, Ask(body=body, images=2, pixels=50, raw_input=1))
    record = sent.record
    assert record.connect_s is not None
    assert record.upload_s is not None
    assert record.sent_s is not None
    assert record.first_byte_s is not None
    assert record.connect_s + record.upload_s <= record.sent_s + 1e-9
    assert record.sent_s + 0.04 <= record.first_byte_s <= record.total_s
    assert (record.bytes_up, record.bytes_down) == (len(body), len(reply()))
    assert (record.images, record.pixels) == (2, 50)
    assert record.first_token_s is None, "a reply that is not streamed has no first token"


async def test_a_cancelled_request_is_one_record_too() -> None:
    async def silence(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    lost: list[Record] = []
    async with Misbehaving(silence) as server, TimedAiohttp(TIMEOUTS, None, time.perf_counter) as transport:
        sender = Sender(target(server.url), transport)
        now = time.perf_counter()
        sending = asyncio.create_task(
            sender.send(work().ask, number=0, intended=now, stage_began=now, lost=lost.append)
        )
        await server.arrived.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    assert [record.phase for record in lost] == [Phase.ABANDONED]
    assert sender.in_flight == 0
