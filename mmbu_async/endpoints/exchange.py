"""One request out, one outcome back. The seam at which another machine can stand in for this one.

Limits, money, retries and bookkeeping stay with whoever asks (`client.py`); an exchange knows the wire alone.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol, Self

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.failures import failure_from_response, malformed
from mmbu_async.endpoints.masking import masked
from mmbu_async.endpoints.parsed import whole_texts
from mmbu_async.endpoints.sse import EventSplitter
from mmbu_async.endpoints.transport import (
    AiohttpTransport,
    StreamedResponse,
    Timeouts,
    Transport,
    TransportError,
    environment_proxy,
)
from mmbu_async.endpoints.wire import StreamParser, WireFormat, read_response, request_url
from mmbu_async.model import Completion, Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBody:
    """A request body that was made on another machine and lies there until it is sent."""

    number: int
    """By which those who keep it know it."""
    size: int = 0
    """Bytes."""

    def __len__(self) -> int:
        return self.size


Body = bytes | KeptBody


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """What came of one request, whatever it was."""

    outcome: Completion | Failure
    total_s: float
    first_token_s: float | None = None
    sent: bool = True
    """Whether the endpoint may have seen the request, and may bill it."""
    bytes_down: int = 0
    """Of the response's body, as far as it came, after decompression."""


class Exchange(Protocol):
    """Sends one request somewhere and waits for what comes of it."""

    async def send(self, body: Body) -> Exchanged:
        """Never raises for what happens on the network: that is an outcome."""


class HttpExchange:
    """From this machine; use as an async context manager."""

    def __init__(
        self, settings: CallSettings, wire: WireFormat, *, key: str, transport: Transport | None = None
    ) -> None:
        self._settings = settings
        self._wire = wire
        self._key = key
        self._headers = wire.headers(key)
        self._url = request_url(settings, wire)
        self._given_transport = transport
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        if self._given_transport is not None:
            self._transport = self._given_transport
            return self
        settings = self._settings
        timeouts = Timeouts(
            total=settings.timeout, connect=settings.connect_timeout, idle=settings.idle_timeout
        )
        own = AiohttpTransport(timeouts, environment_proxy(settings.url))
        self._transport = await self._stack.enter_async_context(own)
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._stack.aclose()

    async def send(self, body: Body) -> Exchanged:
        """One HTTP exchange."""
        if isinstance(body, KeptBody):
            raise TypeError("a body that lies on another machine cannot be sent from this one")
        came = _Came(began=time.perf_counter())
        sent = True
        outcome: Completion | Failure
        try:
            if self._settings.stream:
                outcome = await self._streamed(body, came)
            else:
                response = await self._transport.post(self._url, self._headers, body)
                came.bytes_down = len(response.body)
                if 200 <= response.status < 300:
                    outcome = read_response(self._wire, response.status, response.headers, response.body)
                else:
                    outcome = failure_from_response(
                        response.status, response.headers, response.body, now=time.time()
                    )
        except TransportError as error:
            sent = error.sent
            outcome = Failure(kind=error.kind, message=str(error))
        total_s = time.perf_counter() - came.began
        return Exchanged(
            outcome=masked(whole_texts(outcome), self._key),
            total_s=total_s,
            first_token_s=came.first_token_s,
            sent=sent,
            bytes_down=came.bytes_down,
        )

    async def _streamed(self, body: bytes, came: _Came) -> Completion | Failure:
        async with self._transport.stream(self._url, self._headers, body) as response:
            status, headers = response.status, response.headers
            good = 200 <= status < 300
            if good and "text/event-stream" in headers.get("content-type", "text/event-stream").lower():
                return await self._listen(response, came)
            whole = b"".join([chunk async for chunk in response.chunks()])
            came.bytes_down = len(whole)
            if good:
                return read_response(self._wire, status, headers, whole)
            return failure_from_response(status, headers, whole, now=time.time())

    async def _listen(self, response: StreamedResponse, came: _Came) -> Completion | Failure:
        parser, splitter = self._wire.stream_parser(), EventSplitter()
        async for chunk in response.chunks():
            came.bytes_down += len(chunk)
            for event in splitter.feed(chunk):
                if not came.taken_by(parser, event):
                    return _unreadable(response, event)
        for event in splitter.end():
            if not came.taken_by(parser, event):
                return _unreadable(response, event)
        return parser.result(response.headers, response.status)


@dataclass(slots=True, kw_only=True)
class _Came:
    """What has come so far; it stands also when the rest does not come."""

    began: float
    first_token_s: float | None = None
    bytes_down: int = 0

    def taken_by(self, parser: StreamParser, event: bytes) -> bool:
        """Whether the parser can read the event."""
        try:
            parser.feed(event)
        except (AttributeError, KeyError, TypeError, ValueError):
            return False
        if self.first_token_s is None and parser.started:
            self.first_token_s = time.perf_counter() - self.began
        return True


def _unreadable(response: StreamedResponse, event: bytes) -> Failure:
    message = "the stream held an event that cannot be read"
    return malformed(message, response.headers, response.status, event)
