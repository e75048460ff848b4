"""The service as an application of aiohttp.web: API, pages, events, and what watches over it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus

import orjson
from aiohttp import web
from pydantic import BaseModel

from mmbu_async.errors import MmbuError, RunNotFoundError, ServiceStoppingError
from mmbu_async.service.events import Hub
from mmbu_async.service.guard import Guard, Handler, add_headers
from mmbu_async.service.handlers import Handlers
from mmbu_async.service.jobs import Desk
from mmbu_async.service.metrics import Metrics
from mmbu_async.service.openapi import describe
from mmbu_async.service.operations import JSON, Operation
from mmbu_async.service.pages import Pages
from mmbu_async.service.problems import ApiError, Problem, problem, problem_of, response
from mmbu_async.service.reader import MOST_BYTES, read_call
from mmbu_async.service.reading import Reading
from mmbu_async.service.rows import RowPages
from mmbu_async.service.settings import ServiceConfig
from mmbu_async.service.table import operations
from mmbu_async.telemetry import CONTENT_TYPE
from mmbu_async.telemetry import Metrics as Telemetry
from mmbu_async.version import VERSION

API = "/api/v1"
"""The path below which the API lies."""
_UNEXPECTED = (
    "Something went wrong here that should not have; the log of the service says what. Nothing that was paid "
    "for is lost."
)
_NOT_YET = "the service is starting, or stops, and does not know all runs; try again in a minute."

log = logging.getLogger(__name__)


def application(
    desk: Desk,
    config: ServiceConfig,
    *,
    guard: Guard | None = None,
    telemetry: Telemetry | None = None,
    heartbeat_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> web.Application:
    """All that the service serves. `desk` is at work already, and outlives the application. `telemetry`: what
    watches the desk's runs, with figures of their endpoints."""
    watch = telemetry or Telemetry(runs=False)
    service = _Service(desk, config, guard or Guard(), watch, heartbeat_s, clock)
    app = web.Application(
        middlewares=[service.explain, service.let_in], client_max_size=MOST_BYTES, logger=log
    )
    app.on_response_prepare.append(add_headers)
    app.on_shutdown.append(service.hub.close)
    app.cleanup_ctx.extend([service.hub.context, service.context])
    app.add_routes(service.routes())
    return app


class _Service:
    """What the handlers share."""

    def __init__(
        self,
        desk: Desk,
        config: ServiceConfig,
        guard: Guard,
        telemetry: Telemetry,
        heartbeat_s: float | None,
        clock: Callable[[], float],
    ) -> None:
        self._desk = desk
        self._guard = guard
        self._clock = clock
        self.hub = Hub(desk) if heartbeat_s is None else Hub(desk, heartbeat_s=heartbeat_s)
        self._reading = Reading(config.store)
        self._pages = Pages(desk, guard.token)
        self._rows = RowPages(config.store)
        self._places = _places(config)
        self._metrics = Metrics(desk, self.hub, telemetry)
        self._operations = operations(Handlers(desk, config, self._reading, self.hub))
        self._description = orjson.dumps(describe(self._operations, version=VERSION, prefix=API))

    async def context(self, _app: web.Application) -> AsyncIterator[None]:
        yield
        self._rows.close()
        self._reading.close()

    def routes(self) -> list[web.RouteDef]:
        return [
            *(self._route(one) for one in self._operations),
            web.get(f"{API}/openapi.json", self._describe, allow_head=False),
            web.get("/healthz", self._alive),
            web.get("/readyz", self._ready),
            web.get("/metrics", self._measure),
            *self._pages.routes(),
            *self._rows.routes(),
        ]

    @web.middleware
    async def explain(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Errors in one sentence: as a problem for programs, as a page for people."""
        begun = self._clock()
        status = HTTPStatus.INTERNAL_SERVER_ERROR.value
        try:
            answer = await self._explained(request, handler)
            status = answer.status
            return answer
        except asyncio.CancelledError:
            status = 499
            raise
        finally:
            self._metrics.note(_name(request), request.method, status, self._clock() - begun)

    async def _explained(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except ApiError as error:
            return self._say(request, problem(error.status, str(error)), error.headers)
        except RunNotFoundError as error:
            if not self._desk.ready():
                # It may not have found its jobs of before yet.
                return self._say(request, problem_of(ServiceStoppingError(_NOT_YET), {}))
            return self._say(request, problem_of(error, self._places))
        except MmbuError as error:
            told = problem_of(error, self._places)
            if told.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                log.warning("%s %s: %s", request.method, _name(request), error)
            return self._say(request, told)
        except web.HTTPMethodNotAllowed as error:
            allowed = ", ".join(sorted(error.allowed_methods))
            told = problem(HTTPStatus.METHOD_NOT_ALLOWED, f"Here only {allowed} means something.")
            return self._say(request, told, {"Allow": allowed})
        except web.HTTPNotFound:
            return self._say(request, problem(HTTPStatus.NOT_FOUND, "There is nothing under this address."))
        except web.HTTPException as error:
            if error.status < HTTPStatus.BAD_REQUEST:
                raise
            status = HTTPStatus(error.status)
            return self._say(request, problem(status, f"{status.phrase}."))
        except ConnectionError:
            # The client went away; what we would say has nobody to read it.
            raise
        except Exception:  # (told and logged here: the server would answer with a page of its own)
            log.exception("%s %s", request.method, _name(request))
            return self._say(request, problem(HTTPStatus.INTERNAL_SERVER_ERROR, _UNEXPECTED))

    @web.middleware
    async def let_in(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Nobody learns more without the token than that one is needed, not even what there is."""
        self._guard.check(request)
        if not self._guard.admits(request):
            told = problem(
                HTTPStatus.UNAUTHORIZED, "The token of this service is needed: Authorization: Bearer TOKEN."
            )
            headers = {"WWW-Authenticate": 'Bearer realm="mmbu"'}
            if _is_for_people(request):
                return self._pages.login(request, headers)
            return response(told, headers)
        return await handler(request)

    def _say(
        self, request: web.Request, told: Problem, headers: dict[str, str] | None = None
    ) -> web.StreamResponse:
        if _is_for_people(request):
            return self._pages.message(request, told, headers)
        return response(told, headers)

    def _route(self, operation: Operation) -> web.RouteDef:
        handle = _answering(operation)
        if operation.method == "GET":
            return web.get(API + operation.path, handle, name=operation.id, allow_head=False)
        return web.post(API + operation.path, handle, name=operation.id)

    async def _describe(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._description, content_type=JSON)

    async def _alive(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _ready(self, _request: web.Request) -> web.Response:
        if self._desk.ready():
            return web.Response(text="ready\n")
        return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE, text="not ready\n")

    async def _measure(self, _request: web.Request) -> web.Response:
        return web.Response(
            body=self._metrics.text().encode(),
            headers={"Content-Type": CONTENT_TYPE},
        )


def _places(config: ServiceConfig) -> dict[str, str]:
    """Where the files of the service lie, longer places first, and what its users call them."""
    named = {str(config.store): config.store.name}
    named |= {str(place): name for name, place in (*config.data.items(), *config.benchmarks.items())}
    return dict(sorted(named.items(), key=lambda one: -len(one[0])))


def _answering(operation: Operation) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        found = await operation.handle(await read_call(request, operation))
        if isinstance(found, BaseModel):
            return web.Response(
                status=operation.status, body=found.model_dump_json().encode(), content_type=JSON
            )
        return found

    return answer


def _is_for_people(request: web.Request) -> bool:
    """Whether the answer is looked at: a link leads into the API too, where reports and exports are."""
    for_programs = request.path.startswith(("/api/", "/metrics", "/static/"))
    followed = request.headers.get("Sec-Fetch-Mode") == "navigate"
    return (followed or not for_programs) and "text/html" in request.headers.get("Accept", "")


def _name(request: web.Request) -> str:
    """Of the route, as the figures and the log call it: never what a client has said."""
    resource = request.match_info.route.resource
    return "unknown" if resource is None else resource.canonical
