"""The vendors' own clients beside ours: one question through both, and what each reads from one response.

A `Tap` stands between a client and the simulator and keeps what went through it. The vendor's client asks
through the tap; our parser is then given the bytes that the vendor's was given.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from mmbu_async.endpoints.client import WIRE_FORMATS
from mmbu_async.endpoints.failures import failure_from_response
from mmbu_async.endpoints.sse import EventSplitter
from mmbu_async.endpoints.wire import read_response
from mmbu_async.model import Completion, Failure
from mmbu_async.simulator import Simulator, SimulatorConfig

_HOP = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """One request and its response."""

    path: str
    """With its query."""
    sent: Mapping[str, str]
    asked: Any
    """The request's body, parsed."""
    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    def ours(self, kind: str) -> Completion | Failure:
        """What our client makes of the response."""
        wire = WIRE_FORMATS[kind]()
        if self.status >= 300:
            return failure_from_response(self.status, self.headers, self.body, now=0.0)
        if "text/event-stream" not in self.headers["content-type"]:
            return read_response(wire, self.status, self.headers, self.body)
        parser, splitter = wire.stream_parser(), EventSplitter()
        for event in [*splitter.feed(self.body), *splitter.end()]:
            parser.feed(event)
        return parser.result(self.headers, self.status)


@dataclass
class Tap:
    """Forwards to `target` and keeps what passes."""

    target: str
    url: str = ""
    passed: list[Passed] = field(default_factory=list)

    async def forward(self, request: web.Request) -> web.StreamResponse:
        asked = await request.read()
        sent = CIMultiDict(
            (name, value) for name, value in request.headers.items() if name.lower() not in _HOP
        )
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(request.method, self.target + request.path_qs, data=asked, headers=sent) as got,
        ):
            body = await got.read()
            self.passed.append(
                Passed(
                    path=request.path_qs,
                    sent=sent,
                    asked=json.loads(asked) if asked else None,
                    status=got.status,
                    headers=got.headers,
                    body=body,
                )
            )
            kept = {name: value for name, value in got.headers.items() if name.lower() not in _HOP}
        return web.Response(status=got.status, headers=kept, body=body)


@asynccontextmanager
async def tapped(config: SimulatorConfig) -> AsyncIterator[Tap]:
    """A simulator, and a tap before it."""
    async with Simulator(config) as simulator:
        tap = Tap(simulator.url)
        application = web.Application(client_max_size=2**26)
        application.router.add_route("*", "/{path:.*}", tap.forward)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.05)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            tap.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield tap
        finally:
            await runner.cleanup()
