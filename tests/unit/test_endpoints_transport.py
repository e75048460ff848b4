"""The transport against servers that misbehave on real sockets: each named, each within its time limit."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from mmbu_async.endpoints.transport import AiohttpTransport, Response, Timeouts, TransportError
from mmbu_async.model import FailureKind
from tests.misbehaving import Behaviour, Misbehaving, Request, reset, response

SHORT = Timeouts(total=0.6, connect=0.3, idle=0.25)
LONG = Timeouts(total=20.0, connect=10.0, idle=10.0)
LIMIT_S = 3.0
"""Far above any limit here, far below the default ones: a test that hangs fails."""


async def post(
    url: str, timeouts: Timeouts = SHORT, *, stream: bool = False, proxy: str | None = None
) -> Response:
    async with AiohttpTransport(timeouts, proxy) as transport:
        headers = {"Authorization": "Bearer sk-1"}
        if not stream:
            return await transport.post(url, headers, b'{"a":1}')
        async with transport.stream(url, headers, b'{"a":1}') as streamed:
            body = b"".join([chunk async for chunk in streamed.chunks()])
            return Response(status=streamed.status, headers=streamed.headers, body=body)


async def fails(url: str, timeouts: Timeouts = SHORT, *, stream: bool = False) -> TransportError:
    began = time.perf_counter()
    with pytest.raises(TransportError) as caught:
        await post(url, timeouts, stream=stream)
    assert time.perf_counter() - began < LIMIT_S
    assert "\n" not in str(caught.value)
    return caught.value


@asynccontextmanager
async def serving(behave: Behaviour, greeting: bytes | None = None) -> AsyncIterator[Misbehaving]:
    async with Misbehaving(behave, greeting) as server:
        yield server


STREAMING = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


# ---------------------------------------------------------------- nobody there


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@STREAMING
async def test_closed_port(stream: bool) -> None:
    port = free_port()
    error = await fails(f"http://127.0.0.1:{port}/v1", stream=stream)
    assert (error.kind, error.sent) == (FailureKind.CONNECTION, False)
    assert str(error) == f"no connection to 127.0.0.1:{port} (Connection refused)"


async def test_closed_port_of_a_name_with_two_addresses() -> None:
    error = await fails(f"http://localhost:{free_port()}/v1")
    assert "(Connection refused)" in str(error)


async def test_unknown_host() -> None:
    error = await fails("http://nonexistent.invalid/v1", LONG)
    assert (error.kind, error.sent) == (FailureKind.CONNECTION, False)
    assert str(error) == "unknown host nonexistent.invalid"


async def test_a_resolver_that_hangs_is_bound_by_the_connect_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*arguments: object, **options: object) -> object:
        return await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", never)
    error = await fails("http://slow.example/v1", Timeouts(total=60, connect=0.2, idle=60))
    assert (error.kind, error.sent) == (FailureKind.TIMEOUT, False)
    assert str(error) == "no connection within 0.2 s"


# ---------------------------------------------------------------- no answer


async def silence(request: Request, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


@STREAMING
async def test_never_answers(stream: bool) -> None:
    async with serving(silence) as server:
        error = await fails(server.url, stream=stream)
    assert (error.kind, error.sent) == (FailureKind.TIMEOUT, True)
    assert str(error) == "no byte for 0.25 s"


@STREAMING
async def test_the_limit_of_the_whole_attempt(stream: bool) -> None:
    async with serving(silence) as server:
        error = await fails(server.url, Timeouts(total=0.2, connect=10, idle=10), stream=stream)
    assert (error.kind, error.sent) == (FailureKind.TIMEOUT, True)
    assert str(error) == "no complete reply within 0.2 s"


@STREAMING
@pytest.mark.parametrize("part", ["head", "body"])
async def test_a_drip_does_not_outlast_the_whole_attempt(part: str, stream: bool) -> None:
    async def drip(request: Request, writer: asyncio.StreamWriter) -> None:
        whole = response(b"x" * 10_000)
        sent = 0 if part == "head" else whole.index(b"\r\n\r\n") + 4
        writer.write(whole[:sent])
        for byte in whole[sent:]:
            writer.write(bytes((byte,)))
            await asyncio.sleep(0.02)

    async with serving(drip) as server:
        error = await fails(server.url, stream=stream)
        await asyncio.wait_for(server.gone.wait(), LIMIT_S)
    assert (error.kind, error.sent) == (FailureKind.TIMEOUT, True)
    assert str(error) == "no complete reply within 0.6 s"


async def stall(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(response(b"half", promise=1000))
    await asyncio.Event().wait()


@STREAMING
async def test_a_stall_in_the_body(stream: bool) -> None:
    async with serving(stall) as server:
        error = await fails(server.url, stream=stream)
    assert (error.kind, str(error)) == (FailureKind.TIMEOUT, "no byte for 0.25 s")


# ---------------------------------------------------------------- broken connections


async def close(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def reset_at_once(request: Request, writer: asyncio.StreamWriter) -> None:
    reset(writer)


async def close_in_head(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-")
    writer.close()


async def close_in_body(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(response(b"half", promise=1000))
    writer.close()


async def close_in_chunk(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
    writer.close()


async def reset_in_body(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(response(b"half", promise=1000))
    await writer.drain()
    # A reset overtakes what the client has not read yet: let it read.
    await asyncio.sleep(0.05)
    reset(writer)


async def bad_chunks(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")


async def bad_gzip(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(response(b"this is no gzip", Content_Encoding="gzip"))


async def no_http(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


async def endless_head(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n")


@STREAMING
@pytest.mark.parametrize(
    ("behave", "words"),
    [
        (close, "the server closed the connection"),
        (reset_at_once, "Connection reset by peer"),
        (close_in_head, "the server closed the connection"),
        (close_in_body, "the connection broke in the middle of the reply"),
        (close_in_chunk, "the connection broke in the middle of the reply"),
        (reset_in_body, "the connection "),
        (bad_chunks, "the "),
        (bad_gzip, "the connection broke in the middle of the reply"),
        (no_http, "the server's answer is no HTTP"),
        (endless_head, "the server's answer is no HTTP"),
    ],
)
async def test_broken_connections(behave: Behaviour, words: str, stream: bool) -> None:
    async with serving(behave) as server:
        error = await fails(server.url, LONG, stream=stream)
        assert (error.kind, error.sent) == (FailureKind.CONNECTION, True)
        assert words in str(error)
        assert len(server.requests) == 1, "a lost request is tried again in one place only"


# ---------------------------------------------------------------- TLS


async def test_tls_spoken_to_a_server_without_it() -> None:
    async with serving(silence, greeting=b"220 mail.example ESMTP\r\n") as server:
        error = await fails(server.url.replace("http:", "https:"), LONG)
    assert (error.kind, error.sent) == (FailureKind.CONNECTION, False)
    assert str(error).startswith("no connection to 127.0.0.1:")


async def test_a_tls_handshake_that_never_ends() -> None:
    async with serving(silence, greeting=b"") as server:
        error = await fails(server.url.replace("http:", "https:"), Timeouts(total=60, connect=0.2, idle=60))
    assert (error.kind, error.sent) == (FailureKind.TIMEOUT, False)
    assert str(error) == "no connection within 0.2 s"


def test_an_untrusted_certificate_is_named() -> None:
    key = ConnectionKey("api.example", 443, True, True, None, None, None)
    refused = ssl.SSLCertVerificationError(1, "self-signed certificate")
    error = AiohttpTransport(SHORT)._named(aiohttp.ClientConnectorCertificateError(key, refused), sent=False)
    assert (error.kind, error.sent) == (FailureKind.CONNECTION, False)
    assert "the certificate of api.example is not trusted" in str(error)


# ---------------------------------------------------------------- what is left behind


async def test_a_stream_left_early_does_not_disturb_the_next_call() -> None:
    async def two(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.body == b"first":
            await stall(request, writer)
        writer.write(response(b"second"))

    async with serving(two) as server, AiohttpTransport(LONG) as transport:
        async with transport.stream(server.url, {}, b"first") as streamed:
            assert [await anext(streamed.chunks())] == [b"half"]
        assert (await transport.post(server.url, {}, b"next")).body == b"second"
        assert [request.connection for request in server.requests] == [1, 2]


async def test_a_cancelled_call_hangs_up() -> None:
    async with serving(silence) as server, AiohttpTransport(LONG) as transport:
        task = asyncio.create_task(transport.post(server.url, {}, b"x"))
        await server.arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.gone.wait(), LIMIT_S)


async def test_outside_its_context_it_says_so() -> None:
    with pytest.raises(RuntimeError, match="outside"):
        await AiohttpTransport(SHORT).post("http://127.0.0.1:1/", {}, b"")


BODIES: list[Callable[[bytes], bytes]] = [
    response,
    lambda body: response(zlib.compress(body), Content_Encoding="deflate"),
    lambda body: (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    ),
    lambda body: b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body,
]


@STREAMING
@pytest.mark.parametrize("spell", BODIES, ids=["length", "deflate", "chunked", "until-close"])
async def test_a_large_body_arrives_whole(spell: Callable[[bytes], bytes], stream: bool) -> None:
    body = bytes(range(256)) * 12_000

    async def large(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(spell(body))
        await writer.drain()
        if b"Connection: close" in spell(b""):
            writer.close()

    async with serving(large) as server:
        assert (await post(server.url, LONG, stream=stream)).body == body
