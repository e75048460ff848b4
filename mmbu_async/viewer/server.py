"""Serving on the loopback interface until somebody says stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from mmbu_async.errors import ConfigError
from mmbu_async.viewer.app import application
from mmbu_async.viewer.guard import guard

HOST = "127.0.0.1"
GRACE_S = 0.2
"""What an answer under way is given to end when the server is stopped."""
_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")


async def serve(store: Path, runs: Sequence[str], *, port: int = 0, ready: Callable[[str], None]) -> None:
    """Serve the pages until Ctrl-C or SIGTERM; `ready` gets their address. Port 0: any free one.

    Raises ConfigError where the port is taken, RunNotFoundError for runs that the store has not.
    """
    async with serving(store, runs, port=port) as address:
        ready(address)
        await _stopped()


@asynccontextmanager
async def serving(store: Path, runs: Sequence[str], *, port: int = 0) -> AsyncIterator[str]:
    """While inside, the pages are there under the address that it gives."""
    pages = application(store, runs, middlewares=[guard])
    runner = web.AppRunner(pages, access_log=None, handle_signals=False, shutdown_timeout=GRACE_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, port)
        try:
            await site.start()
        except OSError as error:
            raise ConfigError(
                f"port {port} of {HOST} cannot be had ({port_refusal(error)}); give another with --port, "
                "or leave it out for any free one."
            ) from None
        yield f"http://{HOST}:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


def port_refusal(error: OSError) -> str:
    """The system's own words: asyncio lays a sentence around them that holds a Python tuple."""
    if error.errno and error.errno > 0:
        return os.strerror(error.errno)
    # Where a name cannot be looked up the number is the resolver's.
    return error.strerror or str(error)


async def _stopped() -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for name in _STOPPING:
        # Not on Windows, where Ctrl-C arrives as KeyboardInterrupt.
        with contextlib.suppress(NotImplementedError, AttributeError):
            loop.add_signal_handler(getattr(signal, name), stop.set)
    await stop.wait()
