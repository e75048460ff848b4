"""Serving until somebody says stop: the socket, the signals, and the order in which things end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from mmbu_async.bench.quiet import allow_connections
from mmbu_async.errors import ConfigError
from mmbu_async.service.app import application
from mmbu_async.service.auth import TOKEN_VARIABLE, Token
from mmbu_async.service.events import MOST_STREAMS
from mmbu_async.service.guard import Guard
from mmbu_async.service.scheduler import Scheduler
from mmbu_async.service.settings import ServiceConfig
from mmbu_async.telemetry import Metrics, current, using
from mmbu_async.viewer.server import port_refusal

HOST = "127.0.0.1"
PORT = 8765
GRACE_S = 2.0
"""What an answer under way is given to end when the server is stopped."""
_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the service listens, and who may come."""

    host: str = HOST
    port: int = PORT
    """0: any free one."""
    names: tuple[str, ...] = ()
    """Host names beside those of this machine under which it is reached."""
    token: Token | None = None

    def guard(self) -> Guard:
        """Raises ConfigError where others could come without a token."""
        beyond = not is_loopback(self.host)
        if beyond and self.token is None:
            raise ConfigError(
                f"--host {self.host}: others than this machine could reach the service and use its keys: set "
                f"a token in the environment variable {TOKEN_VARIABLE} (`openssl rand -hex 32` makes one)."
            )
        return Guard(
            token=self.token, names=frozenset(name.lower().rstrip(".") for name in self.names), beyond=beyond
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


async def serve(
    config: ServiceConfig,
    place: Place,
    *,
    ready: Callable[[str], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM; then runs drain, while pages still answer. A second signal cuts that
    short. `ready` gets the address.

    Raises ConfigError where the place cannot be had, StoreError where the store cannot.
    """
    guard = place.guard()
    allow_connections(MOST_STREAMS, all_needed=False)
    telemetry = Metrics(runs=False)
    watchers = [one for one in (current(), telemetry) if one is not None]
    with using(*watchers):
        async with Scheduler(config) as desk:
            app = application(desk, config, guard=guard, telemetry=telemetry)
            with _signals(desk.abort) as stop:
                async with listening(app, place) as address:
                    ready(address)
                    await stop.wait()
                    # While the pages still answer: who watches sees how it ends.
                    await desk.drain()


@asynccontextmanager
async def listening(app: web.Application, place: Place) -> AsyncIterator[str]:
    """While inside, the application answers under the address that it gives. Raises ConfigError."""
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=GRACE_S)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, place.host.strip("[]"), place.port).start()
        except OSError as error:
            raise ConfigError(
                f"port {place.port} of {place.host} cannot be had ({port_refusal(error)}); give another "
                "with --port or --host."
            ) from None
        host = place.host.strip("[]")
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


@contextlib.contextmanager
def _signals(abort: Callable[[], None]) -> Iterator[asyncio.Event]:
    """The first sets the event, further ones abort."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def hear(name: str) -> None:
        if stop.is_set():
            log.warning("%s again: aborting; calls under way are lost", name)
            abort()
            return
        log.warning(
            "%s: runs finish the calls under way and go on at the next start; once more to abort", name
        )
        stop.set()

    heard = []
    for name in _STOPPING:
        # Not on Windows, where Ctrl-C arrives as KeyboardInterrupt.
        with contextlib.suppress(NotImplementedError, AttributeError):
            number = getattr(signal, name)
            loop.add_signal_handler(number, hear, name)
            heard.append(number)
    try:
        yield stop
    finally:
        for number in heard:
            loop.remove_signal_handler(number)
