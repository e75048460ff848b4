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
from mmbu_async.endpoints.sse import events
from mmbu_async.endpoints.transport import (
    AiohttpTransport,
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


Body = bytes | KeptBody


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """What came of one request, whatever it was."""

    outcome: Completion | Failure
    total_s: float
    first_token_s: float | None = None
    sent: bool = True
    """Whether the endpoint may have seen the request, and may bill it."""


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
        began = time.perf_counter()
        first_token_s = None
        sent = True
        outcome: Completion | Failure
        try:
            if self._settings.stream:
                outcome, first_token_s = await self._streamed(body, began)
            else:
                response = await self._transport.post(self._url, self._headers, body)
                if 200 <= response.status < 300:
                    outcome = read_response(self._wire, response.status, response.headers, response.body)
                else:
                    outcome = failure_from_response(
                        response.status, response.headers, response.body, now=time.time()
                    )
        except TransportError as error:
            sent = error.sent
            outcome = Failure(kind=error.kind, message=str(error))
        total_s = time.perf_counter() - began
        outcome = masked(whole_texts(outcome), self._key)
        return Exchanged(outcome=outcome, total_s=total_s, first_token_s=first_token_s, sent=sent)

    async def _streamed(self, body: bytes, began: float) -> tuple[Completion | Failure, float | None]:
        parser = self._wire.stream_parser()
        first_token_s = None
        async with self._transport.stream(self._url, self._headers, body) as response:
            if not 200 <= response.status < 300:
                whole = b"".join([chunk async for chunk in response.chunks()])
                return failure_from_response(response.status, response.headers, whole, now=time.time()), None
            if "text/event-stream" not in response.headers.get("content-type", "text/event-stream").lower():
                whole = b"".join([chunk async for chunk in response.chunks()])
                return read_response(self._wire, response.status, response.headers, whole), None
            async for event in events(response.chunks()):
                if not _fed(parser, event):
                    message = "the stream held an event that cannot be read"
                    return malformed(message, response.headers, response.status, event), first_token_s
                if first_token_s is None and parser.started:
                    first_token_s = time.perf_counter() - began
            return parser.result(response.headers, response.status), first_token_s


def _fed(parser: StreamParser, event: bytes) -> bool:
    try:
        parser.feed(event)
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return True
