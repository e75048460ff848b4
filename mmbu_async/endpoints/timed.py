"""The transport with a stopwatch: when the connection stood and when the last byte of the request was out.

With it a request costs some 10 µs of CPU more, so that only measurements use it. Beside `transport.py` this
is the only module that knows aiohttp. (Its own trace hooks would tell the same, for 28 µs.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.connector import Connection
from aiohttp.payload import Payload

from mmbu_async.endpoints.transport import AiohttpTransport, StreamedResponse, Streaming, Timeouts


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

    def timed(
        self, url: str, headers: Mapping[str, str], body: bytes, marks: Marks
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        return Streaming(self, self._send(url, headers, _Upload(body, marks, self._clock)))

    def _connector(self) -> aiohttp.TCPConnector:
        return _WatchedConnector(self._clock)


class _WatchedConnector(aiohttp.TCPConnector):
    """Notes when a request had its connection, and whether that was a new one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(limit=0, ttl_dns_cache=300, keepalive_timeout=60)
        self._clock = clock
        self._known: WeakSet[Any] = WeakSet()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own
    ) -> Connection:
        body: Any = req.body
        marks: Marks = body.marks
        began = self._clock()
        try:
            connection = await super().connect(req, traces, timeout)
        except BaseException:
            marks.connecting = began
            raise
        marks.connected = self._clock()
        marks.reused = connection.protocol in self._known
        if not marks.reused:
            marks.connecting = began
            self._known.add(connection.protocol)
        return connection


class _Upload(Payload):
    """A body that notes when it is out."""

    def __init__(self, body: bytes, marks: Marks, clock: Callable[[], float]) -> None:
        super().__init__(body, content_type="application/json")
        self._size = len(body)
        self._body = body
        self.marks = marks
        self._clock = clock

    async def write(self, writer: AbstractStreamWriter) -> None:
        transport: Any = getattr(writer, "transport", None)
        if transport is not None:
            # Or the last 64 KB would count as sent while they wait in this process.
            transport.set_write_buffer_limits(high=0)
        if hasattr(writer, "send_headers"):
            # Or they and the body would be copied into one piece first.
            writer.send_headers()
        await writer.write(self._body)
        await writer.drain()
        self.marks.sent = self._clock()

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """What newer versions of aiohttp call; the length is always the whole one."""
        await self.write(writer)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._body.decode(encoding, errors)
