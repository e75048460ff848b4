"""The bare endpoint's parser, fed by hand: however a body is cut into reads, the answer is the same."""

from __future__ import annotations

import asyncio

import pytest

from mmbu_async.simulator import bare
from mmbu_async.simulator.anthropic import Anthropic
from mmbu_async.simulator.openai import OpenAI


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def _connection(tally: bare.Tally) -> tuple[bare._Connection, Wire]:
    openai, anthropic = bare._canned(OpenAI(), "x-request-id"), bare._canned(Anthropic(), "request-id")
    connection = bare._Connection(openai, anthropic, 0.0, tally, asyncio.get_running_loop())
    wire = Wire()
    connection.connection_made(wire)
    return connection, wire


def _request(body: bytes, path: bytes = b"/v1/chat/completions") -> bytes:
    return b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (path, len(body), body)


WITH_IMAGE = _request(b'{"url":"data:image/png;base64,AAAA"}')
WITHOUT = _request(b'{"content":"base 64"}', b"/v1/messages")


async def test_every_cut_into_two_reads_gives_the_same_answer() -> None:
    for request, expected in ((WITH_IMAGE, (1, 0)), (WITHOUT, (0, 1))):
        for cut in range(1, len(request)):
            tally = bare.Tally()
            connection, wire = _connection(tally)
            connection.data_received(request[:cut])
            connection.data_received(request[cut:])
            assert (tally.model, tally.judge) == expected, cut
            assert wire.sent.count(b"HTTP/1.1 200 OK") == 1


async def test_a_byte_at_a_time_and_many_requests_on_one_connection() -> None:
    tally = bare.Tally()
    connection, wire = _connection(tally)
    for byte in WITH_IMAGE + WITHOUT:
        connection.data_received(bytes((byte,)))
    connection.data_received(WITHOUT + WITH_IMAGE + WITHOUT)
    assert (tally.model, tally.judge) == (2, 3)
    assert wire.sent.count(b"HTTP/1.1 200 OK") == 5
    assert not wire.closed


async def test_an_expected_continue_is_given() -> None:
    connection, wire = _connection(bare.Tally())
    connection.data_received(
        b"POST /v1/messages HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    )
    assert wire.sent == b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /v1/else HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"404"),
        (b"POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"\r\n\r\n", b"404"),
    ],
)
async def test_what_it_cannot_serve_is_refused_and_closed(head: bytes, status: bytes) -> None:
    connection, wire = _connection(bare.Tally())
    connection.data_received(head)
    assert wire.sent.startswith(b"HTTP/1.1 " + status)
    assert wire.closed
