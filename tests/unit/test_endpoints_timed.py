"""The transport's stopwatch, against a server that takes its time in a place that is known."""

from __future__ import annotations

import asyncio
import time

import pytest

from mmbu_async.endpoints.timed import Marks, TimedAiohttp
from mmbu_async.endpoints.transport import Timeouts, TransportError
from tests.misbehaving import Misbehaving, Request, response

LONG = Timeouts(total=20.0, connect=10.0, idle=10.0)


async def echo(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(response(request.body))


async def ask(transport: TimedAiohttp, url: str, body: bytes) -> tuple[Marks, bytes]:
    marks = Marks()
    async with transport.timed(url, {"Authorization": "Bearer x"}, body, marks) as streamed:
        return marks, b"".join([chunk async for chunk in streamed.chunks()])


async def test_a_new_connection_and_an_open_one() -> None:
    async with Misbehaving(echo) as server, TimedAiohttp(LONG, None, time.perf_counter) as transport:
        began = time.perf_counter()
        first, body = await ask(transport, server.url, b'{"a":1}')
        between = time.perf_counter()
        second, _ = await ask(transport, server.url, b"{}")
        ended = time.perf_counter()
        assert server.connections == 1
        assert server.requests[0].headers["content-type"] == "application/json"
    assert body == b'{"a":1}'
    assert not first.reused
    assert first.connecting is not None
    assert first.connected is not None
    assert first.sent is not None
    assert began <= first.connecting <= first.connected <= first.sent <= between
    assert second.reused
    assert second.connecting is None
    assert second.connected is not None
    assert second.sent is not None
    assert between <= second.connected <= second.sent <= ended


async def test_a_body_that_nobody_takes_is_not_sent() -> None:
    """A server that reads nothing: buffers of the system take a part, and the mark waits for the rest."""
    accepted, taken = asyncio.Event(), asyncio.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        await taken.wait()
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        writer.write(response(b"ok"))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=2**16)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with TimedAiohttp(LONG, None, time.perf_counter) as transport:
        marks = Marks()

        async def one() -> bytes:
            async with transport.timed(url, {}, b"x" * 30_000_000, marks) as streamed:
                return b"".join([chunk async for chunk in streamed.chunks()])

        task = asyncio.create_task(one())
        await accepted.wait()
        # Long enough for a mark that is set too early to be there.
        await asyncio.sleep(0.2)
        assert marks.sent is None
        opened = time.perf_counter()
        taken.set()
        assert await task == b"ok"
        assert marks.sent is not None
        assert marks.sent > opened
    server.close()


async def test_what_never_connected_has_no_marks_but_the_first() -> None:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    marks = Marks()
    async with TimedAiohttp(LONG, None, time.perf_counter) as transport:
        with pytest.raises(TransportError, match="Connection refused"):
            async with transport.timed(f"http://127.0.0.1:{port}/", {}, b"{}", marks):
                pass
    assert marks.connecting is not None
    assert (marks.connected, marks.sent) == (None, None)
