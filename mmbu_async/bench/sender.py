"""Sends each request exactly once and says what became of it. There are no retries: they would hide what
happened, and send more than was asked for."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mmbu_async.bench.ask import Ask
from mmbu_async.bench.record import Phase, Record, Sent
from mmbu_async.bench.way import Way
from mmbu_async.config import CallSettings
from mmbu_async.endpoints.failures import Headers, failure_from_response, malformed
from mmbu_async.endpoints.masking import masked
from mmbu_async.endpoints.parsed import whole_texts
from mmbu_async.endpoints.prices import Price
from mmbu_async.endpoints.sse import EventSplitter
from mmbu_async.endpoints.timed import TimedTransport
from mmbu_async.endpoints.transport import StreamedResponse, TransportError
from mmbu_async.endpoints.wire import StreamParser, WireFormat, read_response, request_url
from mmbu_async.model import Completion, Failure, Usage
from mmbu_async.telemetry import About, EndpointState, Observer, Seen, current


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An endpoint that is measured."""

    label: str
    settings: CallSettings
    key: str = field(repr=False)
    wire: WireFormat
    price: Price | None


class Sender:
    """Requests to one endpoint. `clock` is in seconds, steady, and that of the transport."""

    def __init__(
        self, target: Target, transport: TimedTransport, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.target = target
        self.in_flight = 0
        """Requests under way."""
        self._transport = transport
        self._clock = clock
        self._url = request_url(target.settings, target.wire)
        self._headers = target.wire.headers(target.key)
        self._stream = target.settings.stream
        self.due: Callable[[], int] = lambda: 0
        """Requests that were meant to have started and have not ended; whoever drives knows."""
        self._observer: Observer | None = None
        """None: nobody watches, and nothing is told."""

    @contextmanager
    def watched(self, bench: str) -> Iterator[None]:
        """Tell whoever watches of the requests that are sent meanwhile."""
        telemetry = current()
        if telemetry is None:
            yield
            return
        about = About.of(self.target.settings, role="bench", run=bench)
        with telemetry.endpoint(about, self._state) as observer:
            self._observer = observer
            yield

    async def send(
        self, ask: Ask, *, number: int, intended: float, stage_began: float, lost: Callable[[Record], None]
    ) -> Sent:
        """`intended` and `stage_began` are on the clock. A request that is cancelled is no exception to one
        record each: its own is handed to `lost`."""
        self.in_flight += 1
        way = Way(
            ask=ask,
            number=number,
            intended=intended,
            stage_began=stage_began,
            began=self._clock(),
            in_flight=self.in_flight,
        )
        ended: Completion | Failure | None = None
        try:
            ended, phase = await self._exchange(way)
        finally:
            now = self._clock()
            self.in_flight -= 1
            if ended is None:
                abandoned = way.record(now, Phase.ABANDONED)
                lost(abandoned)
                self._tell(abandoned, None)
        usage = way.usage(ended)
        record = way.record(now, phase, ended=ended, usage=usage, cost_usd=self._cost(ended, usage))
        self._tell(record, ended)
        return Sent(
            record=record,
            reply=ended if isinstance(ended, Completion) else None,
            failure_kind=ended.kind if isinstance(ended, Failure) else None,
            gaps_s=tuple(way.gaps) if record.ok and not record.in_one_piece else (),
        )

    def _state(self) -> EndpointState:
        return EndpointState(in_flight=self.in_flight, waiting=max(0, self.due() - self.in_flight))

    def _tell(self, record: Record, ended: Completion | Failure | None) -> None:
        """Whoever watches, in the words of a run: times from the actual start, and a reply is a reply."""
        if self._observer is None:
            return
        first = record.first_token_s
        seen = Seen(
            started_at=time.time() - record.total_s,
            total_s=record.total_s,
            first_token_s=None if first is None else first - record.delay_s,
            outcome=ended,
            cost_usd=record.cost_usd,
            bytes_up=record.bytes_up,
            bytes_down=record.bytes_down,
        )
        self._observer.ended(seen)

    async def _exchange(self, way: Way) -> tuple[Completion | Failure, Phase]:
        outcome: Completion | Failure
        try:
            async with self._transport.timed(self._url, self._headers, way.ask.body, way.marks) as response:
                way.first_byte = self._clock()
                way.status = response.status
                outcome = await self._read(response, way)
        except TransportError as error:
            return masked(Failure(kind=error.kind, message=str(error)), self.target.key), way.broken(error)
        outcome, phase = whole_texts(outcome), way.phase(outcome)
        return masked(outcome, self.target.key) if isinstance(outcome, Failure) else outcome, phase

    async def _read(self, response: StreamedResponse, way: Way) -> Completion | Failure:
        status, headers, wire = response.status, response.headers, self.target.wire
        good = 200 <= status < 300
        kind = headers.get("content-type", "text/event-stream").lower()
        if self._stream and good and "text/event-stream" in kind:
            return await self._listen(response.chunks(), wire.stream_parser(), headers, way)
        whole = b"".join([chunk async for chunk in response.chunks()])
        way.bytes_down = len(whole)
        if good:
            return read_response(wire, status, headers, whole)
        return failure_from_response(status, headers, whole, now=time.time())

    async def _listen(
        self, chunks: AsyncIterator[bytes], parser: StreamParser, headers: Headers, way: Way
    ) -> Completion | Failure:
        """All that comes in one piece has one time: that of the piece."""
        splitter, clock = EventSplitter(), self._clock
        async for chunk in chunks:
            at = clock()
            way.bytes_down += len(chunk)
            for event in splitter.feed(chunk):
                if not way.feed(parser, event, at):
                    return _unreadable(event, headers, way)
        for event in splitter.end():
            if not way.feed(parser, event, clock()):
                return _unreadable(event, headers, way)
        return parser.result(headers, way.status or 200)

    def _cost(self, ended: Completion | Failure, usage: Usage) -> float | None:
        """Dollars, of estimated tokens too; None: unknown. What is answered with an error status is free."""
        if self.target.price is None:
            return None
        if isinstance(ended, Completion) or ended.usage is not None:
            return self.target.price.cost(usage)
        return 0.0 if ended.status is not None and ended.status >= 300 else None


def _unreadable(event: bytes, headers: Headers, way: Way) -> Failure:
    return malformed("the stream held an event that cannot be read", headers, way.status or 200, event)
