"""Ctrl-C once, SIGTERM, a closed terminal: drain. Ctrl-C twice: abort."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import signal
from collections.abc import Iterator

from mmbu_async.errors import InterruptedRunError
from mmbu_async.pipeline.stop import Stop

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")

log = logging.getLogger(__name__)


@contextlib.contextmanager
def draining_signals(stop: Stop, again: str) -> Iterator[None]:
    """While inside, signals ask `stop` to drain; a second one cancels the current task.

    `again` is the command that goes on afterwards.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    installed = []
    heard = itertools.count()

    def handle(name: str) -> None:
        # A run that drains for another reason has heard no signal yet.
        if next(heard):
            log.warning("%s again: aborting; calls under way are lost", name)
            if task is not None:
                task.cancel()
            return
        log.warning("%s: finishing calls under way; once more to abort", name)
        stop.request(
            InterruptedRunError(f"stopped by {name}; everything paid for is kept: {again} continues.")
        )

    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is not None:
            # Not on Windows, nor outside the main thread.
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, handle, name)
                installed.append(number)
    try:
        yield
    finally:
        for number in installed:
            loop.remove_signal_handler(number)
