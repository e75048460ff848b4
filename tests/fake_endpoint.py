"""An endpoint without a network: a transport that answers from a script, a purse and a book that count."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import orjson
from multidict import CIMultiDict

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.client import EndpointClient, Expected
from mmbu_async.endpoints.failures import Headers
from mmbu_async.endpoints.gate import Draining
from mmbu_async.endpoints.limits import TokenBudget
from mmbu_async.endpoints.prices import Price, Rate
from mmbu_async.endpoints.transport import Response, StreamedResponse, TransportError
from mmbu_async.model import Attempt, Completion, Failure

KEY = "sk-canary-0123456789"
EXPECTED = Expected(input_tokens=100, most_output_tokens=1000, usual_output_tokens=20)
PRICE = Price(source="settings", input=Rate(base=0.01), output=Rate(base=0.1))
"""A call of EXPECTED costs at most 1 + 100 dollars; one of 100 tokens in and 20 out costs 3."""

Answer = Response | TransportError | BaseException
Script = Callable[[int], Answer]
"""From the number of the call, from 1, to what comes back."""


def reply(text: str = "<answer>4</answer>", **changes: Any) -> Response:
    """An OpenAI reply of 100 tokens in and 20 out."""
    payload: dict[str, Any] = {
        "id": "c-1",
        "model": "m-1",
        "choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20},
    }
    return answer(200, payload | changes)


def answer(status: int, payload: Any = None, **headers: str) -> Response:
    """Underscores in header names stand for dashes."""
    body = payload if isinstance(payload, bytes) else orjson.dumps(payload)
    named = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
    return Response(status=status, headers=named, body=body)


def error(status: int, message: str = "no", **headers: str) -> Response:
    return answer(status, {"error": {"message": message, "type": "t", "code": None}}, **headers)


@dataclass
class FakeStream:
    status: int
    headers: Headers
    pieces: Sequence[bytes | BaseException]

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            await asyncio.sleep(0)
            if isinstance(piece, BaseException):
                raise piece
            yield piece


@dataclass
class FakeTransport:
    """Answers by script. With `held`, an answer waits until `open` is set."""

    script: Script
    held: bool = False
    open: asyncio.Event = field(default_factory=asyncio.Event)
    sent: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Response:
        self.sent.append((url, dict(headers), body))
        number = len(self.sent)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if self.held:
                await self.open.wait()
            await asyncio.sleep(0)
        finally:
            self.under_way -= 1
        given = self.script(number)
        if isinstance(given, BaseException):
            raise given
        return given

    @asynccontextmanager
    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[StreamedResponse]:
        whole = await self.post(url, headers, body)
        yield FakeStream(whole.status, whole.headers, [whole.body])


@dataclass
class StreamTransport(FakeTransport):
    """Streams the given pieces; an exception among them is raised in its place."""

    pieces: Sequence[bytes | BaseException] = ()
    content_type: str = "text/event-stream; charset=utf-8"

    @asynccontextmanager
    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[StreamedResponse]:
        self.sent.append((url, dict(headers), body))
        fields = CIMultiDict({"content-type": self.content_type, "x-request-id": "req-7"})
        yield FakeStream(200, fields, self.pieces)


def scripted(*answers: Answer) -> Script:
    """One after the other, the last for ever."""
    return lambda number: answers[min(number, len(answers)) - 1]


@dataclass
class FakePurse:
    """Counts what is set aside and what was spent."""

    refuse_after: int | None = None
    open: float = 0.0
    spent: list[float | None] = field(default_factory=list)
    held: list[float | None] = field(default_factory=list)
    under_way: int = 0

    async def hold(self, usd: float | None) -> None:
        await asyncio.sleep(0)
        if self.refuse_after is not None and len(self.held) >= self.refuse_after:
            raise Draining
        self.held.append(usd)
        self.open += usd or 0.0
        self.under_way += 1

    def settle(self, held: float | None, spent: float | None) -> None:
        self.open -= held or 0.0
        self.spent.append(spent)
        self.under_way -= 1

    @property
    def balanced(self) -> bool:
        return self.under_way == 0 and abs(self.open) < 1e-9 and len(self.held) == len(self.spent)


@dataclass
class Book:
    """What `keep` was told."""

    kept: list[tuple[Attempt, bool]] = field(default_factory=list)

    async def keep(self, attempt: Attempt, final: bool) -> None:
        await asyncio.sleep(0)
        self.kept.append((attempt, final))

    @property
    def outcomes(self) -> list[Completion | Failure]:
        return [attempt.outcome for attempt, _ in self.kept]

    @property
    def finals(self) -> list[bool]:
        return [final for _, final in self.kept]

    @property
    def numbers(self) -> list[int]:
        return [attempt.number for attempt, _ in self.kept]


def settings(**changes: Any) -> CallSettings:
    return CallSettings.model_validate({"model": "m", "base_url": "http://test.example"} | changes)


@dataclass
class Rig:
    """A client on a fake transport. Waits are noted, not slept; its token budget never fills."""

    client: EndpointClient
    transport: FakeTransport
    purse: FakePurse
    book: Book = field(default_factory=Book)
    waits: list[float] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    async def call(self, body: bytes = b"{}", expected: Expected = EXPECTED) -> Completion | Failure:
        return await self.client.call(body, expected, self.book.keep)

    @property
    def in_flight(self) -> int:
        return self.client.gate.concurrency.state.in_flight


@asynccontextmanager
async def rig(
    transport: FakeTransport,
    *,
    purse: FakePurse | None = None,
    price: Price | None = PRICE,
    key: str = KEY,
    **changes: Any,
) -> AsyncIterator[Rig]:
    purse = purse or FakePurse()
    async with EndpointClient(
        settings(**changes), key=key, purse=purse, price=price, random=Random(1), transport=transport
    ) as client:
        made = Rig(client=client, transport=transport, purse=purse)

        async def sleep(seconds: float) -> None:
            made.waits.append(seconds)
            await asyncio.sleep(0)
            if client.gate.closing:
                raise Draining

        client.gate.sleep = sleep  # type: ignore[method-assign]
        client.gate.pause = made.pauses.append  # type: ignore[method-assign, assignment]
        if client.settings.tpm is not None:
            client.gate._tokens = TokenBudget(client.settings.tpm, clock=lambda: 0.0)
        yield made


async def settle_tasks() -> None:
    """Let every task run until all of them wait."""
    for _ in range(30):
        await asyncio.sleep(0)
