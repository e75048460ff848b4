"""Server-sent events: one ear at the scheduler, and any number of streams that hear what it hears.

An event becomes bytes once, whoever listens. Each stream has a bounded queue of its own: one that reads
slowly loses the oldest events and is told how many, and holds up nobody. A stream begins with the state as it
is, or, where a client comes back with the last id that it has seen, with what it has missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from http import HTTPStatus

from aiohttp import web

from mmbu_async.service.jobs import Desk, Event, job_data, json_bytes, progress_data
from mmbu_async.service.latest import latest_jobs
from mmbu_async.service.problems import ApiError

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_S = 15.0
"""Seconds between two comments that keep proxies from closing a quiet stream."""
QUEUE = 256
"""Events that a stream may be behind."""
KEPT = 2_000
"""Latest events, for clients that come back."""
AT_ONCE = 50
"""Streams that are woken together."""
MOST_STREAMS = 4_000
WRITE_S = 30.0
"""Seconds that a client may take to make room; after that it is taken for gone."""
RETRY_MS = 2_000
_HEARTBEAT = b": still here\n\n"


class Hub:
    """All streams of a service."""

    def __init__(self, desk: Desk, *, heartbeat_s: float = HEARTBEAT_S, queue: int = QUEUE) -> None:
        self._desk = desk
        self._heartbeat_s = heartbeat_s
        self._queue = queue
        # Numbers begin anew with every start: an id of an earlier one must mean nothing.
        self._start = secrets.token_hex(4)
        self._recent: deque[tuple[int, str, bytes]] = deque(maxlen=KEPT)
        self._number = 0
        self._streams: set[_Stream] = set()
        self._closed = False
        self._listening = asyncio.Event()

    @property
    def streams(self) -> int:
        """Streams that are open."""
        return len(self._streams)

    async def context(self, _app: web.Application) -> AsyncIterator[None]:
        """While the application lives."""
        tasks = [
            asyncio.create_task(self._listen(), name="events"),
            asyncio.create_task(self._beat(), name="heartbeat"),
        ]
        await self._listening.wait()
        yield
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks)

    async def close(self, _app: web.Application | None = None) -> None:
        """End all streams: a server that stops does not wait for its listeners."""
        self._closed = True
        for stream in self._streams:
            stream.end()

    async def serve(self, request: web.Request, run: str | None) -> web.StreamResponse:
        """One stream, until either side ends it. `run`: only events of that one."""
        if self._closed or len(self._streams) >= MOST_STREAMS:
            raise ApiError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "No further stream of events can be opened now; try again in some seconds.",
                Retry_After="5",
            )
        answer = web.StreamResponse(headers={"Content-Type": MEDIA_TYPE, "X-Accel-Buffering": "no"})
        answer.enable_chunked_encoding()
        stream = _Stream(run, self._queue)
        # From here on nothing is missed: what the client has not seen is put before it without a pause.
        stream.begin(self._beginning(run, request.headers.get("Last-Event-ID", "")))
        self._streams.add(stream)
        try:
            await answer.prepare(request)
            await self._write(answer, stream)
            await answer.write_eof()
        except (ConnectionError, TimeoutError):
            # The client is gone, or has not read for long.
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._streams.discard(stream)
        return answer

    async def _write(self, answer: web.StreamResponse, stream: _Stream) -> None:
        while (content := await stream.next()) is not None:
            async with asyncio.timeout(WRITE_S):
                await answer.write(content)

    async def _listen(self) -> None:
        async with self._desk.subscribe() as events:
            self._listening.set()
            async for event in events:
                await self._publish(event)
        await self.close()

    async def _publish(self, event: Event) -> None:
        self._number += 1
        content = self._frame(event.kind, event.run, event.payload, self._number)
        self._recent.append((self._number, event.run, content))
        # A stream that begins meanwhile has it from what is kept.
        concerned = [one for one in self._streams if one.run in (None, event.run) or not event.run]
        for first in range(0, len(concerned), AT_ONCE):
            for stream in concerned[first : first + AT_ONCE]:
                stream.put(content)
            # Between two groups others have their turn: a thousand listeners delay no answer.
            await asyncio.sleep(0)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_s)
            for stream in self._streams:
                stream.beat()

    def _beginning(self, run: str | None, last: str) -> Iterable[bytes]:
        yield f"retry: {RETRY_MS}\n\n".encode()
        missed = self._missed(last)
        if missed is None:
            yield from self._state(run)
            return
        for _, of, content in missed:
            if run in (None, of) or not of:
                yield content

    def _missed(self, last: str) -> list[tuple[int, str, bytes]] | None:
        """What came after an event; None: that is not known any more."""
        start, _, digits = last.partition("-")
        if start != self._start or not (digits.isascii() and digits.isdecimal()) or len(digits) > 18:
            return None
        seen, oldest = int(digits), self._recent[0][0] if self._recent else self._number + 1
        if not oldest - 1 <= seen <= self._number:
            return None
        return [one for one in self._recent if one[0] > seen]

    def _state(self, run: str | None) -> Iterator[bytes]:
        for job in [self._desk.job(run)] if run is not None else latest_jobs(self._desk):
            yield self._frame("job", job.run, json_bytes(job_data(job)), self._number)
            progress = self._desk.progress(job.run)
            if progress is not None:
                yield self._frame("progress", job.run, json_bytes(progress_data(progress)), self._number)

    def _frame(self, kind: str, run: str, payload: bytes, number: int) -> bytes:
        return b'id: %s-%d\nevent: %s\ndata: {"run":%s,"data":%s}\n\n' % (
            self._start.encode(),
            number,
            kind.encode(),
            json_bytes(run),
            payload,
        )


class _Stream:
    """What one client has still to be sent."""

    def __init__(self, run: str | None, most: int) -> None:
        self.run = run
        self._waiting: deque[bytes] = deque()
        self._most = most
        self._missed = 0
        self._beat = False
        self._over = False
        self._wake = asyncio.Event()

    def begin(self, contents: Iterable[bytes]) -> None:
        """One piece, however long: a state that is cut is none."""
        self._waiting.append(b"".join(contents))
        self._wake.set()

    def put(self, content: bytes) -> None:
        if len(self._waiting) >= self._most:
            self._waiting.popleft()
            self._missed += 1
        self._waiting.append(content)
        self._wake.set()

    def beat(self) -> None:
        self._beat = True
        self._wake.set()

    def end(self) -> None:
        self._over = True
        self._wake.set()

    async def next(self) -> bytes | None:
        """All that waits; None at the end."""
        await self._wake.wait()
        self._wake.clear()
        parts = list(self._waiting)
        self._waiting.clear()
        if self._missed:
            parts.insert(0, b'event: dropped\ndata: {"run":"","data":{"missed":%d}}\n\n' % self._missed)
            self._missed = 0
        if not parts and self._over:
            return None
        if self._over:
            self._wake.set()
        if self._beat:
            self._beat = False
            parts.append(_HEARTBEAT)
        return b"".join(parts)
