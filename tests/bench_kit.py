"""An endpoint without a network for benches: servers with a queue, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from multidict import CIMultiDict

from mmbu_async.bench.ask import Ask
from mmbu_async.bench.sender import Sender, Target
from mmbu_async.config import CallSettings
from mmbu_async.endpoints.client import WIRE_FORMATS
from mmbu_async.endpoints.failures import Headers
from mmbu_async.endpoints.prices import Price, Rate
from mmbu_async.endpoints.timed import Marks
from mmbu_async.endpoints.transport import StreamedResponse
from mmbu_async.simulator.servers import Servers

PRICE = Price(source="settings", input=Rate(base=1e-6), output=Rate(base=1e-5))
TOKENS = 20


@dataclass
class Streamed:
    status: int
    headers: Headers
    pieces: AsyncIterator[bytes]

    def chunks(self) -> AsyncIterator[bytes]:
        return self.pieces


def event(payload: Any) -> bytes:
    return b"data: " + orjson.dumps(payload) + b"\n\n"


@dataclass
class Machine:
    """Serves with `servers` at once, each reply `service()` seconds; the rest waits first in, first out.

    A stream's first token comes at the end of its service, the others at once or `token_s` apart.
    """

    service: Callable[[int], float]
    servers: int = 1_000_000
    rate_limit: Callable[[float], bool] = lambda now: False
    """Whether a request that comes now is told 429."""
    broken: Callable[[int], bool] = lambda number: False
    """Whether a request is answered with 500, whatever the load."""
    token_s: float = 0.0
    arrived: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    """Truth: seconds from arrival to the end, by order of arrival."""
    under_way: int = 0
    most_under_way: int = 0
    freezes: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        self._queue: Servers | None = None

    @property
    def queue(self) -> Servers:
        if self._queue is None:
            loop = asyncio.get_running_loop()
            self._queue = Servers(self.servers, clock=loop.time, freezes=self.freezes)
        return self._queue

    @asynccontextmanager
    async def timed(
        self, url: str, headers: Mapping[str, str], body: bytes, marks: Marks
    ) -> AsyncIterator[StreamedResponse]:
        clock = asyncio.get_running_loop().time
        marks.connected, marks.reused, marks.sent = clock(), True, clock()
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            number = len(self.arrived)
            self.arrived.append(clock())
            self.waited.append(0.0)
            if self.rate_limit(clock()):
                text = orjson.dumps({"error": {"message": "slow down", "type": "rate_limit_error"}})
                yield Streamed(429, CIMultiDict(), _pieces(text))
                return
            turn = self.queue.admit(self.service(number))
            await self.queue.until(turn.ends)
            if self.broken(number):
                text = orjson.dumps({"error": {"message": "it broke", "type": "server_error"}})
                yield Streamed(500, CIMultiDict(), _pieces(text))
                return
            asked = orjson.loads(body)
            fields = {"content-type": "text/event-stream" if asked.get("stream") else "application/json"}
            pieces = self._stream() if asked.get("stream") else _pieces(reply())
            yield Streamed(200, CIMultiDict(fields), pieces)
            self.waited[number] = clock() - self.arrived[number]
        finally:
            self.under_way -= 1

    async def _stream(self) -> AsyncIterator[bytes]:
        for number in range(TOKENS):
            if number and self.token_s:
                await asyncio.sleep(self.token_s)
            yield event({"choices": [{"index": 0, "delta": {"content": "tok "}}]})
        yield event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        yield event({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": TOKENS}})
        yield b"data: [DONE]\n\n"


async def _pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def reply(**changes: Any) -> bytes:
    payload: dict[str, Any] = {
        "id": "c-1",
        "model": "m-1",
        "choices": [{"index": 0, "message": {"content": "tok " * TOKENS}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": TOKENS},
    }
    return orjson.dumps(payload | changes)


@dataclass
class Same:
    """The same request for ever."""

    ask: Ask
    given: int = 0

    def next(self) -> Ask:
        self.given += 1
        return self.ask


def work(*, stream: bool = False) -> Same:
    message = {"role": "user", "content": "?"}
    body = orjson.dumps({"model": "m", "max_tokens": 500, "stream": stream, "messages": [message]})
    return Same(Ask(body=body, images=1, pixels=1_000_000, raw_input=90))


def target(url: str = "http://test.example", *, price: Price | None = PRICE, **changes: Any) -> Target:
    settings = CallSettings.model_validate({"model": "m", "base_url": url} | changes)
    return Target(
        label="m",
        settings=settings,
        key="sk-canary-0123456789",
        wire=WIRE_FORMATS[settings.endpoint](),
        price=price,
    )


def virtual_sender(machine: Machine, **changes: Any) -> Sender:
    """To be made on the virtual loop, whose clock it uses."""
    return Sender(target(**changes), machine, asyncio.get_running_loop().time)
