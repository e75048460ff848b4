"""Who is told, and of what. Endpoint clients and bench speak to these, and know of nothing behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, Self
from urllib.parse import urlsplit

from mmbu_async.config import CallSettings
from mmbu_async.model import Completion, Failure, FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """One endpoint as somebody calls it."""

    endpoint: str
    """The host, and the port where the address names one."""
    format: str
    """The wire format: `openai`, `anthropic`, ..."""
    model: str
    role: str = "model"
    """`model` under test, `judge`, or `bench`."""
    host: str = ""
    run: str = ""
    """Name of the run or bench; '' where there is none."""
    port: int | None = None
    stream: bool = False
    max_tokens: int = 0
    """0: no limit is sent."""
    temperature: float | None = None
    seed: int | None = None

    @classmethod
    def of(cls, settings: CallSettings, *, role: str, run: str) -> Self:
        parts = urlsplit(settings.url)
        return cls(
            endpoint=settings.host if parts.port is None else f"{settings.host}:{parts.port}",
            host=settings.host,
            format=settings.endpoint,
            model=settings.model,
            role=role,
            run=run,
            port=parts.port or {"http": 80, "https": 443}.get(parts.scheme),
            stream=settings.stream,
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            seed=settings.seed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One HTTP exchange that has ended. Times are seconds."""

    started_at: float
    """Unix time."""
    total_s: float
    first_token_s: float | None = None
    """None: not streamed, or no token came."""
    outcome: Completion | Failure | None
    """None: it was cancelled."""
    number: int = 1
    """Which attempt at the same call this is, from 1."""
    cost_usd: float | None = None
    """None: unknown."""
    bytes_up: int = 0
    bytes_down: int = 0
    """Of bodies, after decompression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointState:
    """How things stand at one endpoint right now."""

    in_flight: int
    waiting: int = 0
    """Calls that would start if limits let them."""
    limit: int | None = None
    """Most calls at once, as learnt so far; None: there is none."""
    pause_s: float = 0.0
    """Seconds until calls start again; 0: they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """How things stand in one run right now, in rows."""

    selected: int
    done: int
    failed: int
    unjudged: int
    judge_waiting: int
    """With a reply, and before a judge."""


class Observer(Protocol):
    """Told of the exchanges with one endpoint."""

    def ended(self, seen: Seen) -> None:
        """An exchange has ended, in whatever way."""

    def retried(self, kind: FailureKind) -> None:
        """A call that failed in this way is to be attempted again."""

    def paused(self, seconds: float) -> None:
        """The endpoint asked to be left alone for so long."""


class Telemetry(Protocol):
    """Somebody who watches."""

    def endpoint(self, about: About, state: Callable[[], EndpointState]) -> AbstractContextManager[Observer]:
        """Watch one endpoint for as long as the context lasts; `state` may be asked at any time, by any
        thread."""

    def run(self, name: str, state: Callable[[], RunState]) -> AbstractContextManager[None]:
        """Watch one run for as long as the context lasts."""


_CURRENT: ContextVar[Telemetry | None] = ContextVar("telemetry", default=None)


def current() -> Telemetry | None:
    """Who watches the current task, and the tasks that it starts."""
    return _CURRENT.get()


@contextmanager
def using(*watchers: Telemetry) -> Iterator[None]:
    """Let these watch what is started in the block; none of them: as if it were not there."""
    if not watchers:
        yield
        return
    token = _CURRENT.set(watchers[0] if len(watchers) == 1 else Several(watchers))
    try:
        yield
    finally:
        _CURRENT.reset(token)


class Several:
    """Some that watch the same."""

    def __init__(self, watchers: Sequence[Telemetry]) -> None:
        self._watchers = tuple(watchers)

    @contextmanager
    def endpoint(self, about: About, state: Callable[[], EndpointState]) -> Iterator[Observer]:
        with ExitStack() as stack:
            yield _SeveralObservers(
                [stack.enter_context(one.endpoint(about, state)) for one in self._watchers]
            )

    @contextmanager
    def run(self, name: str, state: Callable[[], RunState]) -> Iterator[None]:
        with ExitStack() as stack:
            for one in self._watchers:
                stack.enter_context(one.run(name, state))
            yield


class _SeveralObservers:
    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def ended(self, seen: Seen) -> None:
        for one in self._observers:
            one.ended(seen)

    def retried(self, kind: FailureKind) -> None:
        for one in self._observers:
            one.retried(kind)

    def paused(self, seconds: float) -> None:
        for one in self._observers:
            one.paused(seconds)
