"""The cheapest endpoint that a client cannot tell from a model: in a benchmark the server must not count.

Bodies are drained, not parsed; every reply is the same valid body. A body without an image is taken for a
judge's request and answered with a verdict. No limits, no faults, no streams, no log.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import orjson

from mmbu_async.errors import ConfigError
from mmbu_async.model import Json, Usage
from mmbu_async.simulator.anthropic import Anthropic
from mmbu_async.simulator.openai import OpenAI
from mmbu_async.simulator.wire import Envelope, Reply, Wire, tokens

HOST = "127.0.0.1"
MODEL_TEXT = (
    "The image shows several roundish objects that stand out from an even ground. Their size and outline "
    "agree with what the question asks about, and the clearest of them lies wholly inside the image, away "
    "from its border, so that its extent can be given.\n<answer>[10, 10, 20, 20]</answer>"
)
JUDGE_TEXT = "Rationale: The answer states the true label. [RESULT] 1"
_HEAD_END = b"\r\n\r\n"
_IMAGE = b"base64"
"""Stands in every body with an image, in both wire formats."""


@dataclass(slots=True)
class Tally:
    """What was answered."""

    model: int = 0
    judge: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Canned:
    model: bytes
    judge: bytes


def _http(value: Json, request_id_header: str) -> bytes:
    body = orjson.dumps(value)
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        f"{request_id_header}: req_bare\r\nContent-Length: {len(body)}\r\nConnection: keep-alive\r\n\r\n"
    )
    return head.encode() + body


def _canned(wire: Wire, request_id_header: str) -> _Canned:
    def one(text: str, input_tokens: int) -> bytes:
        usage = Usage(input_tokens=input_tokens, output_tokens=tokens(text))
        envelope = Envelope(reply_id="bare", request_id="req_bare", model="bare", created=1_767_225_600)
        return _http(wire.body(Reply(text=text, usage=usage), envelope), request_id_header)

    return _Canned(model=one(MODEL_TEXT, 1200), judge=one(JUDGE_TEXT, 600))


class _Connection(asyncio.Protocol):
    """One keep-alive connection; requests come one after another, as HTTP/1.1 clients send them."""

    __slots__ = (
        "_canned",
        "_head",
        "_image",
        "_latency_s",
        "_left",
        "_loop",
        "_tail",
        "_tally",
        "_transport",
        "_wires",
    )

    def __init__(
        self,
        openai: _Canned,
        anthropic: _Canned,
        latency_s: float,
        tally: Tally,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._wires = {b"/v1/messages": anthropic, b"/v1/chat/completions": openai}
        self._latency_s = latency_s
        self._tally = tally
        self._loop = loop
        self._canned: _Canned | None = None
        self._head = b""
        self._left = -1
        self._image = False
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's, so there is nothing to check here.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        while data:
            if self._left < 0:
                self._head += data
                end = self._head.find(_HEAD_END)
                if end < 0:
                    return
                head, data, self._head = self._head[:end], self._head[end + 4 :], b""
                if not self._begin(head):
                    return
            if not self._image:
                # The word may lie across two reads: keep as much of the last one as it can reach into.
                self._image = _IMAGE in self._tail + data[:16] or _IMAGE in data
                self._tail = data[-len(_IMAGE) + 1 :]
            if len(data) < self._left:
                self._left -= len(data)
                return
            data = data[self._left :]
            self._answer()

    def _begin(self, head: bytes) -> bool:
        """Reads the request line and the length; False when the connection was given up."""
        lines = head.lower().split(b"\r\n")
        words = lines[0].split(b" ")
        self._canned = self._wires.get(words[1].split(b"?")[0]) if len(words) > 1 else None
        length = next((line[15:] for line in lines if line.startswith(b"content-length:")), None)
        if self._canned is None or length is None:
            status = b"411 Length Required" if self._canned else b"404 Not Found"
            self._transport.write(
                b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            self._transport.close()
            return False
        if b"expect: 100-continue" in lines:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._left, self._image, self._tail = int(length), False, b""
        return True

    def _answer(self) -> None:
        canned = self._canned or self._wires[b"/v1/chat/completions"]
        if self._image:
            self._tally.model += 1
        else:
            self._tally.judge += 1
        reply = canned.model if self._image else canned.judge
        self._left = -1
        if self._latency_s > 0:
            self._loop.call_later(self._latency_s, self._write, reply)
        else:
            self._transport.write(reply)

    def _write(self, reply: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(reply)


async def serve_bare(
    *, port: int, latency_s: float, stop: asyncio.Event, ready: Callable[[str], None]
) -> Tally:
    """Serves until `stop` is set; `ready` gets the URL."""
    loop = asyncio.get_running_loop()
    tally = Tally()
    openai, anthropic = _canned(OpenAI(), "x-request-id"), _canned(Anthropic(), "request-id")
    try:
        server = await loop.create_server(
            lambda: _Connection(openai, anthropic, latency_s, tally, loop), HOST, port, backlog=4096
        )
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise ConfigError(
            f"the simulator cannot listen on {HOST}:{port}: {why}; choose another port, or 0."
        ) from None
    try:
        ready(f"http://{HOST}:{server.sockets[0].getsockname()[1]}")
        await stop.wait()
    finally:
        server.close()
    return tally
