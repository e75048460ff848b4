"""The simulated endpoint as a server on the loopback address."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from aiohttp import web

from mmbu_async.errors import ConfigError
from mmbu_async.simulator.anthropic import Anthropic
from mmbu_async.simulator.azure import Azure
from mmbu_async.simulator.batch_anthropic import AnthropicBatchDesk
from mmbu_async.simulator.batch_openai import OpenAIBatchDesk
from mmbu_async.simulator.batch_work import Office
from mmbu_async.simulator.config import SimulatorConfig
from mmbu_async.simulator.desk import Desk
from mmbu_async.simulator.exchange import Exchange
from mmbu_async.simulator.eyes import Eyes
from mmbu_async.simulator.gemini import Gemini
from mmbu_async.simulator.limits import Places
from mmbu_async.simulator.log import Milestones, Record, RequestLog
from mmbu_async.simulator.openai import OpenAI
from mmbu_async.simulator.responses import Responses
from mmbu_async.simulator.servers import Servers
from mmbu_async.simulator.wire import ApiError, Wire

HOST = "127.0.0.1"
"""Nothing else is ever bound: the simulator asks nobody who they are."""
_CREATED = 1_767_225_600
"""Date of birth of every model in the list of models, in Unix seconds."""


class Simulator:
    """`async with Simulator(config) as sim:` serves until the block ends."""

    def __init__(
        self,
        config: SimulatorConfig | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.config = config or SimulatorConfig()
        self.url = ""
        """`http://127.0.0.1:PORT`; OpenAI's base URL is this plus `/v1`."""
        self._clock, self._wall = clock, wall
        self._log = RequestLog(None, 0)
        self._arrived = Milestones()
        self._servers: Servers | None = None
        self._stack = AsyncExitStack()

    @property
    def log(self) -> Sequence[Record]:
        """The newest finished requests, in order of their end; readable after the block too."""
        return self._log.records

    async def until_arrived(self, count: int) -> None:
        """Waits until so many requests have come."""
        await self._arrived.until(count)

    async def until_logged(self, count: int) -> None:
        """Waits until so many requests have ended: a client has its reply before the log has its record."""
        await self._log.ended.until(count)

    async def settled(self) -> None:
        """Waits until every request that has come has also ended."""
        await self._log.ended.until(self._arrived.count)

    def freeze(self, seconds: float) -> None:
        """From now on no server does anything for so long; needs the setting `servers`."""
        if self._servers is None:
            raise ConfigError("only a simulator with servers can freeze: give their number.")
        self._servers.freeze(seconds)

    async def __aenter__(self) -> Self:
        config = self.config
        if config.servers is not None:
            self._servers = Servers(
                config.servers, clock=self._clock, queue=config.max_queue, freezes=config.freezes
            )
        async with AsyncExitStack() as stack:
            self._log = stack.enter_context(RequestLog(config.log, config.log_memory))
            executor = ThreadPoolExecutor(config.vision_workers, "simulator-eyes")
            stack.callback(executor.shutdown, wait=True, cancel_futures=True)
            desk = Desk(
                config=config,
                log=self._log,
                eyes=Eyes(config.vision_cache),
                executor=executor,
                places=Places(config.max_concurrent, config.max_queue),
                servers=self._servers,
                clock=self._clock,
                wall=self._wall,
                began=self._clock(),
                arrived=self._arrived,
            )
            office = await stack.enter_async_context(Office(desk))
            runner = web.AppRunner(
                _application(desk, office),
                access_log=None,
                handler_cancellation=True,
                shutdown_timeout=0.05,
                read_bufsize=2**20,
            )
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            stack.callback(setattr, desk, "closing", True)
            site = web.TCPSite(runner, HOST, config.port, backlog=4096)
            try:
                await site.start()
            except OSError as error:
                raise ConfigError(
                    f"the simulator cannot listen on {HOST}:{config.port}: {os.strerror(error.errno or 0)}; "
                    "choose another port, or 0 for a free one."
                ) from None
            self.url = f"http://{HOST}:{runner.addresses[0][1]}"
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()


def _application(desk: Desk, office: Office) -> web.Application:
    application = web.Application(client_max_size=desk.config.max_body_bytes)
    for path, wire in ROUTES.items():
        application.router.add_post(path, _handler(desk, wire))

    async def models(request: web.Request) -> web.StreamResponse:
        names = sorted(desk.config.models) or ["simulator"]
        if "anthropic-version" in request.headers:
            rows = [
                {
                    "type": "model",
                    "id": name,
                    "display_name": name,
                    "created_at": "2026-01-01T00:00:00Z",
                    "lifecycle": "active",
                }
                for name in names
            ]
            return web.json_response(
                {"data": rows, "has_more": False, "first_id": names[0], "last_id": names[-1]}
            )
        listed = [
            {"id": name, "object": "model", "created": _CREATED, "owned_by": "simulator"} for name in names
        ]
        return web.json_response({"object": "list", "data": listed})

    async def elsewhere(request: web.Request) -> web.StreamResponse:
        wire = _speaker(request)
        status, words = wire.said("not_found", None)
        message = f"{words} ({request.method} {request.path})"
        return web.json_response(wire.error(ApiError(status, "not_found", message), ""), status=status)

    application.router.add_routes(
        OpenAIBatchDesk(office, {"/v1/chat/completions": OpenAI(), "/v1/responses": Responses()}).routes()
    )
    application.router.add_routes(AnthropicBatchDesk(office, Anthropic()).routes())
    application.router.add_get("/v1/models", models)
    application.router.add_route("*", "/{path:.*}", elsewhere)
    return application


def _handler(
    desk: Desk, wire: Callable[[web.Request], Wire]
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await Exchange(desk, wire(request), request).run()

    return handle


def _gemini(request: web.Request) -> Wire:
    """Streams are always server-sent events, as with `?alt=sse`."""
    stream = request.match_info["verb"] == "streamGenerateContent"
    return Gemini(request.match_info["model"], stream=stream)


def _azure(request: web.Request) -> Wire:
    return Azure(request.match_info.get("deployment", ""))


ROUTES: Mapping[str, Callable[[web.Request], Wire]] = {
    "/v1/chat/completions": lambda request: OpenAI(),
    "/v1/responses": lambda request: Responses(),
    "/v1/messages": lambda request: Anthropic(),
    r"/{version:v1(?:beta|alpha)?}/models/{model:[^/:]+}:{verb:(?:generate|streamGenerate)Content}": _gemini,
    "/openai/v1/chat/completions": _azure,
    "/openai/v1/responses": lambda request: Responses(),
    "/openai/deployments/{deployment}/chat/completions": _azure,
}
"""Where each format is spoken; Gemini and Azure have the model in the address."""


def _speaker(request: web.Request) -> Wire:
    """Whose client asks at an address that is none, by the header in which it sends its key."""
    if "anthropic-version" in request.headers:
        return Anthropic()
    if "x-goog-api-key" in request.headers:
        return Gemini()
    return Azure() if "api-key" in request.headers else OpenAI()


def stop_on_signals() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


async def serve(config: SimulatorConfig, *, ready: Callable[[str], None]) -> None:
    """Serves until SIGTERM or SIGINT; `ready` gets the URL once requests are taken."""
    stop = stop_on_signals()
    async with Simulator(config) as simulator:
        ready(simulator.url)
        await stop.wait()
