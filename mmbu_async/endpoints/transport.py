"""The wire itself: bytes out, bytes in. The seam where a test or another machine can stand.

Only this module knows aiohttp, and `timed.py`, its double with a stopwatch. The connector's own limit is off
(aiohttp stops at 100 connections unless told otherwise): how many calls are under way is decided in one
place, the gate.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Protocol, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from mmbu_async.endpoints.failures import Headers
from mmbu_async.model import FailureKind

READ_BUFFER = 2**20
"""Bytes that aiohttp reads ahead before it pauses the socket; its default of 64 KB throttles large bodies."""


class TransportError(Exception):
    """No complete response came. `kind` is TIMEOUT or CONNECTION; `sent` whether the endpoint may bill."""

    def __init__(self, kind: FailureKind, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.kind = kind
        self.sent = sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A complete response."""

    status: int
    headers: Headers
    body: bytes


class StreamedResponse(Protocol):
    """A response whose body is read as it comes."""

    status: int
    headers: Headers

    def chunks(self) -> AsyncIterator[bytes]:
        """The body in pieces, as the network delivers them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds: for the whole attempt, for the connection, and without a byte."""

    total: float
    connect: float
    idle: float


class Transport(Protocol):
    """Sends one request. Raises TransportError when no complete response came."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        """Send and read the whole response."""

    def stream(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        """Send and hand over the response once its headers came."""


def environment_proxy(url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY (or the system's settings) name for an address.

    None for this machine: a server of one's own is not to be looked for elsewhere.
    aiohttp's `trust_env` would look for it at each request, on another thread, and once more for a password
    in a .netrc file, which it puts in the place of the key or fails beside one: 0.19 ms of CPU a call.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host or host == "localhost" or _is_loopback(host) or proxy_bypass(parts.netloc):
        return None
    proxy = getproxies().get(parts.scheme)
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


class AiohttpTransport:
    """One aiohttp session for one endpoint; use as an async context manager."""

    def __init__(self, timeouts: Timeouts, proxy: str | None = None) -> None:
        self._timeout = aiohttp.ClientTimeout(
            total=timeouts.total,
            # `connect` is for the look-up of the name as well, `sock_connect` for one of its addresses.
            connect=timeouts.connect,
            sock_connect=timeouts.connect,
            sock_read=timeouts.idle,
        )
        self._timeouts = timeouts
        self._proxy = proxy
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=self._connector(),
            timeout=self._timeout,
            read_bufsize=READ_BUFFER,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Content-Type": "application/json", "User-Agent": "mmbu-async"},
            skip_auto_headers=("Accept",),
        )
        return self

    async def __aexit__(self, *details: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        async with self._send(url, headers, body) as response:
            try:
                return Response(status=response.status, headers=response.headers, body=await response.read())
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise self._named(error, sent=True) from error

    def stream(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        return Streaming(self, self._send(url, headers, body))

    def _connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, keepalive_timeout=60)

    def _send(self, url: str, headers: Mapping[str, str], body: Any) -> _Sending:
        """`body`: bytes, or what aiohttp can send."""
        if self._session is None:
            raise RuntimeError("the transport is used outside its async context")
        return _Sending(self, self._session, url, headers, body, self._proxy)

    def _named(self, error: Exception, *, sent: bool) -> TransportError:
        """One sentence for what aiohttp says in many classes."""
        match error:
            case aiohttp.ConnectionTimeoutError():
                text = f"no connection within {self._timeouts.connect:g} s"
                return TransportError(FailureKind.TIMEOUT, text, sent=False)
            case aiohttp.SocketTimeoutError():
                text = f"no byte for {self._timeouts.idle:g} s"
                return TransportError(FailureKind.TIMEOUT, text, sent=sent)
            case TimeoutError():
                text = f"no complete reply within {self._timeouts.total:g} s"
                return TransportError(FailureKind.TIMEOUT, text, sent=sent)
            case aiohttp.ClientConnectorDNSError():
                return TransportError(FailureKind.CONNECTION, f"unknown host {error.host}", sent=False)
            case aiohttp.ClientConnectorCertificateError():
                text = f"the certificate of {error.host} is not trusted ({error.certificate_error})"
                return TransportError(FailureKind.CONNECTION, text, sent=False)
            case aiohttp.ClientConnectorError():
                text = f"no connection to {error.host}:{error.port} ({_system_words(error.os_error)})"
                return TransportError(FailureKind.CONNECTION, text, sent=False)
            case aiohttp.ServerDisconnectedError():
                return TransportError(FailureKind.CONNECTION, "the server closed the connection", sent=sent)
            case aiohttp.ClientPayloadError():
                text = "the connection broke in the middle of the reply"
                return TransportError(FailureKind.CONNECTION, text, sent=True)
            case aiohttp.ClientHttpProxyError():
                # Its own words hold the proxy's address with user and password.
                text = f"the proxy refuses the connection ({error.status} {error.message})"
                return TransportError(FailureKind.CONNECTION, text, sent=False)
            case aiohttp.ClientResponseError():
                text = f"the server's answer is no HTTP ({_one_line(error.message)})"
                return TransportError(FailureKind.CONNECTION, text, sent=sent)
            case _:
                text = f"the connection was lost ({_system_words(error)})"
                return TransportError(FailureKind.CONNECTION, text, sent=sent)


class _Sending:
    """One request, and its response until the block ends. A class: a generator would cost some 3 µs more."""

    __slots__ = ("_body", "_headers", "_proxy", "_response", "_session", "_transport", "_url")

    def __init__(
        self,
        transport: AiohttpTransport,
        session: aiohttp.ClientSession,
        url: str,
        headers: Mapping[str, str],
        body: Any,
        proxy: str | None,
    ) -> None:
        self._transport, self._session, self._proxy = transport, session, proxy
        self._url, self._headers, self._body = url, headers, body

    async def __aenter__(self) -> aiohttp.ClientResponse:
        try:
            self._response = await self._session.post(
                self._url, data=self._body, headers=self._headers, allow_redirects=False, proxy=self._proxy
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            sent = not isinstance(error, aiohttp.ClientConnectorError)
            raise self._transport._named(error, sent=sent) from error
        return self._response

    async def __aexit__(self, *details: object) -> None:
        self._response.release()


class Streaming:
    """The same, handed over once its headers came."""

    __slots__ = ("_sending", "_transport")

    def __init__(self, transport: AiohttpTransport, sending: _Sending) -> None:
        self._transport, self._sending = transport, sending

    async def __aenter__(self) -> StreamedResponse:
        return AiohttpStream(await self._sending.__aenter__(), self._transport)

    async def __aexit__(self, *details: object) -> None:
        await self._sending.__aexit__(*details)


class AiohttpStream:
    """A `StreamedResponse` over aiohttp's."""

    def __init__(self, response: aiohttp.ClientResponse, transport: AiohttpTransport) -> None:
        self.status = response.status
        self.headers: Headers = response.headers
        self._response = response
        self._transport = transport

    def chunks(self) -> AsyncIterator[bytes]:
        return _Chunks(self._response.content, self._transport)


class _Chunks:
    """A class: a generator around aiohttp's iterator would cost each event of a stream a µs more."""

    __slots__ = ("_content", "_transport")

    def __init__(self, content: aiohttp.StreamReader, transport: AiohttpTransport) -> None:
        self._content, self._transport = content, transport

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._transport._named(error, sent=True) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _system_words(error: Exception) -> str:
    """`Connection refused` rather than what asyncio makes of it for each address of a name."""
    number = getattr(error, "errno", None)
    if not number and (found := re.search(r"\[Errno (\d+)\]", str(error))):
        number = int(found[1])
    if isinstance(number, int) and number > 0 and isinstance(error, OSError):
        return os.strerror(number)
    return _one_line(getattr(error, "strerror", None) or str(error) or type(error).__name__)


def _one_line(words: str) -> str:
    return " ".join(str(words).split())[:200]
