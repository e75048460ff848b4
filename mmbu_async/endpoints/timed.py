"""The transport with a stopwatch: when the connection stood and when the last byte of the request was out.

With it a request costs some 20 µs of CPU more, so that only measurements use it. Beside `transport.py` this
is the only module that knows aiohttp.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

from mmbu_async.endpoints.transport import AiohttpStream, AiohttpTransport, StreamedResponse, Timeouts


@dataclass(slots=True)
class Marks:
    """Clock readings on the way of one request; None: it did not come so far."""

    connecting: float | None = None
    """A new connection was begun: name, address, TLS."""
    connected: float | None = None
    """It stood, or an open one was taken."""
    reused: bool = False
    sent: float | None = None
    """The system took the last byte of the body. What it has not sent yet lies in its own buffer, which holds
    about two round trips' worth."""


class TimedTransport(Protocol):
    """Sends one request and notes its marks. Raises TransportError when no complete response came."""

    def timed(
        self, url: str, headers: Mapping[str, str], body: bytes, marks: Marks
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        """Send, and hand over the response once its headers came."""


class TimedAiohttp(AiohttpTransport):
    """One aiohttp session for one endpoint; use as an async context manager."""

    def __init__(self, timeouts: Timeouts, proxy: str | None, clock: Callable[[], float]) -> None:
        super().__init__(timeouts, proxy)
        self._clock = clock

    @asynccontextmanager
    async def timed(
        self, url: str, headers: Mapping[str, str], body: bytes, marks: Marks
    ) -> AsyncIterator[StreamedResponse]:
        async with self._request(url, headers, _Upload(body, marks, self._clock), marks) as response:
            yield AiohttpStream(response, self)

    def _traces(self) -> list[aiohttp.TraceConfig]:
        async def begin(session: aiohttp.ClientSession, context: SimpleNamespace, params: object) -> None:
            context.trace_request_ctx.connecting = self._clock()

        async def end(session: aiohttp.ClientSession, context: SimpleNamespace, params: object) -> None:
            context.trace_request_ctx.connected = self._clock()

        async def reuse(session: aiohttp.ClientSession, context: SimpleNamespace, params: object) -> None:
            marks = context.trace_request_ctx
            marks.connected, marks.reused = self._clock(), True

        traces = aiohttp.TraceConfig()
        traces.on_connection_create_start.append(begin)
        traces.on_connection_create_end.append(end)
        traces.on_connection_reuseconn.append(reuse)
        return [traces]


class _Upload(Payload):
    """A body that notes when it is out."""

    def __init__(self, body: bytes, marks: Marks, clock: Callable[[], float]) -> None:
        super().__init__(body, content_type="application/json")
        self._size = len(body)
        self._body = body
        self._marks = marks
        self._clock = clock

    async def write(self, writer: AbstractStreamWriter) -> None:
        transport: Any = getattr(writer, "transport", None)
        if transport is not None:
            # Or the last 64 KB would count as sent while they wait in this process.
            transport.set_write_buffer_limits(high=0)
        await writer.write(self._body)
        await writer.drain()
        self._marks.sent = self._clock()

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """What newer versions of aiohttp call; the length is always the whole one."""
        await self.write(writer)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._body.decode(encoding, errors)
