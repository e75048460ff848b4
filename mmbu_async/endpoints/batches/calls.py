"""What calls of a batch API have in common, whoever's it is: how they go out, and what can go wrong."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import quote

import orjson

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.batches.format import BatchFormat, RemoteBatch, Result
from mmbu_async.endpoints.batches.transport import BatchTransport
from mmbu_async.endpoints.batches.upload import Upload
from mmbu_async.endpoints.failures import failure_from_response, malformed
from mmbu_async.endpoints.masking import masked
from mmbu_async.endpoints.parsed import parsed, whole_texts
from mmbu_async.endpoints.transport import StreamedResponse, TransportError
from mmbu_async.endpoints.wire import WireFormat, table_of
from mmbu_async.model import Failure, FailureKind, Json

CLOCKS_APART_S = 600.0
"""Seconds by which the vendor's clock may differ from ours."""
PAGE = 100
"""Batches listed at once: the most that OpenAI gives."""
PAGES = 50
"""Pages that are searched at most."""


class BatchCallError(Exception):
    """A call of a batch API came to nothing."""

    def __init__(self, failure: Failure, *, sent: bool) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.maybe_done = sent and (failure.status is None or failure.status >= 500 or failure.status < 300)
        """Whether the vendor may have done what was asked all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What a search for a batch came to."""

    batch: RemoteBatch | None = None
    """It is this one."""
    suspects: int = 0
    """Batches that may be it and do not tell before their end."""
    file: str = ""
    """Its file is there, whole, and no batch of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A batch that may have been accepted."""

    marker: str
    requests: int
    bytes: int
    since: float
    """When it was about to be sent, in Unix seconds by our clock."""
    known: Collection[str]
    """Names of batches that are somebody else's."""


class BatchClient(Protocol):
    """One vendor's calls. Every method raises BatchCallError."""

    @property
    def form(self) -> BatchFormat:
        """The vendor's files and words."""

    async def submit(self, upload: Upload) -> RemoteBatch: ...

    async def look(self, batch: str) -> RemoteBatch: ...

    async def find(self, wanted: Wanted) -> Sighting: ...

    async def begin(self, file: str, marker: str) -> RemoteBatch:
        """Of a file that is there already."""

    def results(self, batch: RemoteBatch) -> AsyncIterator[Result]:
        """All of them, in any order; lines that cannot be read are left out."""

    async def cancel(self, batch: str) -> RemoteBatch: ...


class Calls:
    """Requests and what can go wrong with them, alike for both vendors."""

    form: BatchFormat

    def __init__(
        self,
        settings: CallSettings,
        wire: WireFormat,
        transport: BatchTransport,
        *,
        key: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.wire = wire
        self._transport = transport
        self._key = key
        self._clock = clock
        self._headers = wire.headers(key)

    def _url(self, path: str, query: str = "") -> str:
        base, _, own = self.settings.url.partition("?")
        joined = "&".join(filter(None, (query, own)))
        return base.rstrip("/") + path + (f"?{joined}" if joined else "")

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: str = "",
        data: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Mapping[str, Json]:
        """The JSON object that answers."""
        url = self._url(path, query)
        try:
            sent = {**self._headers, **(headers or {})}
            async with self._transport.request(method, url, sent, data) as response:
                body = b"".join([chunk async for chunk in response.chunks()])
                self._check(response, body)
        except TransportError as error:
            raise self._failed(Failure(kind=error.kind, message=str(error)), sent=error.sent) from error
        try:
            payload = orjson.loads(body)
        except orjson.JSONDecodeError:
            payload = None
        if not isinstance(payload, dict):
            words = malformed("the answer is no JSON object", response.headers, response.status, body[:2000])
            raise self._failed(words, sent=True)
        return payload

    def _check(self, response: StreamedResponse, body: bytes) -> None:
        if not 200 <= response.status < 300:
            failure = failure_from_response(response.status, response.headers, body, now=self._clock())
            raise self._failed(failure, sent=True)

    def _clean(self, words: str) -> str:
        """Without the key, should the vendor repeat it."""
        clean = masked(Failure(kind=FailureKind.BAD_REQUEST, message=words), self._key)
        return clean.message if isinstance(clean, Failure) else words

    def _failed(self, failure: Failure, *, sent: bool) -> BatchCallError:
        clean = masked(failure, self._key)
        return BatchCallError(clean if isinstance(clean, Failure) else failure, sent=sent)

    def remote_batch(self, payload: Mapping[str, Json]) -> RemoteBatch:
        try:
            found = self.form.remote(payload)
            words = tuple(replace(one, message=self._clean(one.message)) for one in found.problems)
            return replace(found, problems=words)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            failure = Failure(
                kind=FailureKind.MALFORMED, message=f"the answer is no batch ({error})", status=200
            )
            raise self._failed(failure, sent=True) from error

    async def lines(self, path: str) -> AsyncIterator[Result]:
        url = self._url(path)
        try:
            async with self._transport.request("GET", url, self._headers) as response:
                if not 200 <= response.status < 300:
                    self._check(response, b"".join([chunk async for chunk in response.chunks()]))
                rest = b""
                async for chunk in response.chunks():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        if (result := self._result(line)) is not None:
                            yield result
                if (result := self._result(rest)) is not None:
                    yield result
        except TransportError as error:
            raise self._failed(Failure(kind=error.kind, message=str(error)), sent=error.sent) from error

    def _result(self, line: bytes) -> Result | None:
        try:
            payload = parsed(line)
            result = self.form.result(payload, self.wire, now=self._clock())
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        if result.outcome is None:
            return result
        outcome = masked(whole_texts(result.outcome), self._key)
        return Result(custom_id=result.custom_id, end=result.end, outcome=outcome)

    async def listed(self, path: str, after: str, since: float) -> AsyncIterator[RemoteBatch]:
        """Batches from the newest on to those that are too old. `after`: the vendor's word for its cursor."""
        query = f"limit={PAGE}"
        for _ in range(PAGES):
            page = await self.call("GET", path, query=query)
            found = page.get("data") or []
            last = ""
            for item in found:
                batch = self.remote_batch(table_of(item))
                last = batch.id
                if batch.created_at is not None and batch.created_at < since - CLOCKS_APART_S:
                    return
                yield batch
            if not page.get("has_more") or not last:
                return
            query = f"limit={PAGE}&{after}={quote(last, safe='')}"
