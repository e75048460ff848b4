"""The wire of batch APIs: more methods than POST, files that are streamed up and results that are streamed
down. Beside `transport.py` and its double with a stopwatch this is the only module that knows aiohttp."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import aiohttp

from mmbu_async.endpoints.transport import AiohttpStream, AiohttpTransport, StreamedResponse


class BatchTransport(Protocol):
    """Sends one request of any kind. Raises TransportError when no complete response came."""

    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        data: bytes | AsyncIterator[bytes] | None = None,
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        """Send, and hand over the response once its headers came."""


class BatchAiohttp(AiohttpTransport):
    """One aiohttp session for one provider; use as an async context manager."""

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        data: bytes | AsyncIterator[bytes] | None = None,
    ) -> AsyncIterator[StreamedResponse]:
        if self._session is None:
            raise RuntimeError("the transport is used outside its async context")
        try:
            response = await self._session.request(
                method, url, data=data, headers=headers, allow_redirects=False, proxy=self._proxy
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._named(error, sent=not isinstance(error, aiohttp.ClientConnectorError)) from error
        try:
            yield AiohttpStream(response, self)
        finally:
            response.release()
