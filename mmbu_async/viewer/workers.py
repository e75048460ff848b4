"""Threads for what would hold the server up: reading the store, reading and converting images.

Daemon threads, which the pool of the standard library has not: the program ends at once when it is told to,
whatever they are doing. Nothing they do writes a half of anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

_Job = tuple["asyncio.Future[Any] | None", Callable[[], Any]]


class Workers:
    """Some threads that take jobs in the order in which they come."""

    def __init__(self, count: int, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._count = count
        for number in range(count):
            threading.Thread(target=self._work, name=f"{name} {number + 1}", daemon=True).start()

    async def run(self, job: Callable[[], T]) -> T:
        """The job's result, or what it raised. A job whose caller is gone before it begins is left out."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put((future, job))
        return await future

    def post(self, job: Callable[[], object]) -> None:
        """Do it some time, and tell nobody how it went."""
        self._jobs.put((None, job))

    def close(self) -> None:
        """Let the threads end after the jobs that they have."""
        for _ in range(self._count):
            self._jobs.put(None)

    def _work(self) -> None:
        while (task := self._jobs.get()) is not None:
            future, job = task
            if future is None or not future.cancelled():
                self._do(future, job)
            # What the job holds on to must not wait for the next one.
            del task, future, job

    def _do(self, future: asyncio.Future[Any] | None, job: Callable[[], Any]) -> None:
        try:
            outcome: tuple[bool, Any] = True, job()
        except BaseException as error:  # noqa: BLE001  (raised again where the result is waited for)
            outcome = False, error
        if future is not None:
            # The loop may have been closed meanwhile: then nobody waits.
            with contextlib.suppress(RuntimeError):
                future.get_loop().call_soon_threadsafe(_settle, future, *outcome)


def _settle(future: asyncio.Future[Any], done: bool, outcome: Any) -> None:
    if future.done():
        return
    if done:
        future.set_result(outcome)
    else:
        future.set_exception(outcome)
