"""A service in a thread of its own, over a desk that does what a test tells it to, and requests to it."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

from aiohttp import web

from mmbu_async.errors import ConfigError, RunNotFoundError, RunStateError
from mmbu_async.model import Json
from mmbu_async.pipeline.dryrun import DryRun, SideEstimate
from mmbu_async.service.app import application
from mmbu_async.service.guard import Guard
from mmbu_async.service.jobs import Event, EventKind, Job, JobState, Progress, job_data, progress_data
from mmbu_async.service.settings import EndpointSettings, ServiceConfig

TOKEN = "canary-token-0123456789abcdef"
SECRET_MODEL = "a-model-nobody-may-hear-of"


class FakeSubscription:
    def __init__(self, desk: FakeDesk) -> None:
        self._desk = desk
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        self._desk.queues.append(self._queue)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._desk.queues.remove(self._queue)

    async def __aiter__(self) -> AsyncIterator[Event]:
        while (event := await self._queue.get()) is not None:
            yield event


class FakeDesk:
    """Keeps jobs in memory and runs nothing; a setting `model` of `boom` is an error that nobody meant."""

    def __init__(self) -> None:
        self.queues: list[asyncio.Queue[Event | None]] = []
        self.all: list[Job] = []
        self.points: dict[str, list[Progress]] = {}
        self.lines: dict[str, list[str]] = {}
        self.is_ready = True
        self.asked: list[tuple[str, Any]] = []
        self._number = 0

    async def submit(self, settings: Mapping[str, Json], *, priority: int = 0, new_run: bool = False) -> Job:
        self._check(settings)
        name = settings.get("name", f"run-{len(self.all) + 1}")
        if not isinstance(name, str) or not name.strip():
            raise ConfigError("name: holds no character that can be seen; give the run another name.")
        return self.add(name, priority=priority, settings=dict(settings))

    async def estimate(self, settings: Mapping[str, Json]) -> DryRun:
        self._check(settings)
        side = SideEstimate(
            name=str(settings["model"]),
            calls=40,
            input_tokens=40_000,
            output_tokens=4_000,
            cost_usd=1.25,
            price_source="settings",
            replies=0,
            seconds=90.0,
        )
        return DryRun(
            rows=40, dataset_rows=50, model=side, judges=(replace(side, name="judge", cost_usd=0.25),)
        )

    async def rejudge(
        self, run: str, changes: Mapping[str, Json], *, failed: bool = False, priority: int = 0
    ) -> Job:
        self.job(run)
        return self.add(run, priority=priority, settings=dict(changes))

    async def pause(self, run: str) -> Job:
        return self.change(run, JobState.PAUSED)

    async def resume(self, run: str, changes: Mapping[str, Json] | None = None, *, priority: int = 0) -> Job:
        return self.change(run, JobState.RUNNING)

    async def cancel(self, run: str) -> Job:
        if self.job(run).state.ended:
            raise RunStateError(f"run '{run}' has ended already.")
        return self.change(run, JobState.CANCELLED)

    async def limit(self, run: str, changes: Mapping[str, Json]) -> Sequence[str]:
        self.job(run)
        self.asked.append(("limit", dict(changes)))
        return ["model: at most 4 calls at once"]

    async def prioritize(self, run: str, priority: int) -> Job:
        return self.put(replace(self.job(run), priority=priority))

    def jobs(self) -> list[Job]:
        return self.all[::-1]

    def job(self, run: str) -> Job:
        for job in self.jobs():
            if job.run == run:
                return job
        raise RunNotFoundError(f"there is no run '{run}'.")

    def progress(self, run: str) -> Progress | None:
        points = self.points.get(run)
        return points[-1] if points else None

    def history(self, run: str) -> Sequence[Progress]:
        return self.points.get(run, [])

    def logs(self, run: str) -> Sequence[str]:
        return self.lines.get(run, [])

    def subscribe(self, run: str | None = None) -> FakeSubscription:
        return FakeSubscription(self)

    def ready(self) -> bool:
        return self.is_ready

    def add(self, run: str, state: JobState = JobState.QUEUED, **more: Any) -> Job:
        settings = more.pop("settings", {"model": SECRET_MODEL})
        job = Job(
            **{"priority": 0}
            | more
            | {
                "id": len(self.all) + 1,
                "run": run,
                "kind": "run",
                "state": state,
                "created_at": 1_700_000_000.0,
                "settings": settings,
            }
        )
        self.all.append(job)
        self.tell("job", run, job_data(job))
        return job

    def put(self, job: Job) -> Job:
        self.all = [job if one.id == job.id else one for one in self.all]
        self.tell("job", job.run, job_data(job))
        return job

    def change(self, run: str, state: JobState) -> Job:
        return self.put(replace(self.job(run), state=state))

    def move(self, run: str, done: int, total: int = 100, **more: Any) -> Progress:
        usual: dict[str, Any] = {
            "at": time.time(),
            "done": done,
            "total": total,
            "judged": done,
            "failed": 0,
            "rows_per_s": 2.5,
            "eta_s": 12.0,
            "cost_usd": 0.5,
            "cost_unknown": 0,
            "in_flight": 3,
            "waiting": "",
            "latency_p50_s": 0.8,
            "latency_p95_s": 1.9,
        }
        point = Progress(**(usual | more))
        self.points.setdefault(run, []).append(point)
        self.tell("progress", run, progress_data(point))
        return point

    def log(self, run: str, line: str) -> None:
        self.lines.setdefault(run, []).append(line)
        self.tell("log", run, {"line": line})

    def tell(self, kind: EventKind, run: str, data: Json) -> None:
        self._number += 1
        event = Event.of(self._number, kind, run, data)
        for queue in self.queues:
            queue.put_nowait(event)

    def _check(self, settings: Mapping[str, Json]) -> None:
        if settings.get("model") == "boom":
            raise ZeroDivisionError("secret-of-the-traceback")
        if not isinstance(settings.get("model"), str):
            raise ConfigError("the settings: the setting 'model' is missing.")


@dataclass(frozen=True, slots=True)
class Answered:
    """What the service said to one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Site:
    """The address of a service, and requests to it, each over a connection of its own."""

    def __init__(self, url: str, loop: asyncio.AbstractEventLoop, desk: Any) -> None:
        self.url = url
        self.desk = desk
        self._loop = loop

    def do(self, act: Any) -> Any:
        """In the service's own thread, as the scheduler would."""

        async def run() -> Any:
            return act()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(30)

    def fetch(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answered:
        """The path is sent as it is. Underscores of headers are dashes."""
        connection, response = self._send(path, method, body, headers)
        try:
            return Answered(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def post(self, path: str, body: Any = None, **headers: str) -> Answered:
        content = b"" if body is None else json.dumps(body).encode()
        return self.fetch(path, "POST", content, **({"Content_Type": "application/json"} | headers))

    @contextmanager
    def events(self, path: str, **headers: str) -> Iterator[Iterator[Seen]]:
        """A stream of events, while inside."""
        connection, response = self._send(path, "GET", None, headers)
        assert response.status == 200, response.read()
        try:
            yield _events(response)
        finally:
            if connection.sock is not None:
                connection.sock.close()
            response.close()
            connection.close()

    def _send(
        self, path: str, method: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        address = urlsplit(self.url)
        assert address.hostname is not None
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="Host" in given, skip_accept_encoding=True)
        for name, value in given.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return connection, connection.getresponse()


@dataclass(frozen=True, slots=True)
class Seen:
    """One event of a stream; a comment has the kind ``."""

    kind: str
    id: str
    run: str
    data: Any


def _events(response: http.client.HTTPResponse) -> Iterator[Seen]:
    fields: dict[str, str] = {}
    while line := response.readline():
        text = line.decode().rstrip("\n")
        if text.startswith(":"):
            yield Seen("", "", "", text)
        elif text:
            name, _, value = text.partition(": ")
            fields[name] = value
        elif fields:
            if "event" in fields:
                data = json.loads(fields["data"])
                yield Seen(fields["event"], fields.get("id", ""), data["run"], data["data"])
            fields = {}


def api(run: str = "", path: str = "") -> str:
    """Address of a run in the API, or of something of it."""
    return f"/api/v1/runs/{quote(run, safe='')}{path}" if run else f"/api/v1{path}"


def service_config(store: Path, data: Mapping[str, str] | None = None) -> ServiceConfig:
    endpoint = EndpointSettings(name="here", base_url="http://127.0.0.1:9/v1", models=("m-1", "m-2"))
    return ServiceConfig(store=store, data=dict(data or {"mini": "nowhere"}), endpoint=(endpoint,))


@contextmanager
def served(
    store: Path, *, desk: FakeDesk | None = None, guard: Guard | None = None, heartbeat_s: float = 15.0
) -> Iterator[Site]:
    """A service over a fake desk, until the block ends."""
    chosen = desk or FakeDesk()

    @asynccontextmanager
    async def made() -> AsyncIterator[tuple[web.Application, FakeDesk]]:
        config = service_config(store)
        yield application(chosen, config, guard=guard, heartbeat_s=heartbeat_s), chosen

    with opened(made) as site:
        yield site


@contextmanager
def opened(make: Callable[[], AbstractAsyncContextManager[tuple[web.Application, Any]]]) -> Iterator[Site]:
    """An application and its desk, made and closed in a thread with a loop of its own."""
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    up = threading.Event()
    found: list[Site] = []

    async def main() -> None:
        try:
            async with make() as (app, desk):
                runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
                try:
                    await runner.setup()
                    await web.TCPSite(runner, "127.0.0.1", 0).start()
                    found.append(Site(f"http://127.0.0.1:{runner.addresses[0][1]}", loop, desk))
                    up.set()
                    await stop.wait()
                finally:
                    await runner.cleanup()
        finally:
            up.set()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),), daemon=True)
    thread.start()
    up.wait(30)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()
