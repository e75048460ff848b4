"""All workers of a run: found as they come, given up as they go, and the least busy one for each question."""

from __future__ import annotations

import asyncio
import logging
import pkgutil
import platform
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Self
from urllib.parse import urlsplit

import PIL
from distributed import Client
from distributed.comm import CommClosedError, connect

from mmbu_async.errors import ClusterError
from mmbu_async.pipeline.cluster.link import Link, greet
from mmbu_async.pipeline.cluster.messages import OPERATION, Hello
from mmbu_async.pipeline.cluster.station import attach
from mmbu_async.pipeline.stop import Stop
from mmbu_async.version import VERSION

LOOK_S = 1.0
"""Seconds between two looks for workers that have come."""
ANSWER_S = 30.0
"""Seconds in which the scheduler, or a worker that is greeted, must answer."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crewed:
    """A cluster that a run can use."""

    client: Client
    address: str
    """Of its scheduler, for people."""
    first_s: float
    """Seconds in which the first worker must come."""
    patience_s: float
    """Seconds without any worker, when there has been one, after which the run ends."""


class Fleet:
    """Use as an async context manager. When no worker is left, the run is asked to stop."""

    def __init__(self, cluster: Crewed, hello: Hello, keys: tuple[str, ...], stop: Stop) -> None:
        self._cluster = cluster
        self._hello = hello
        self._keys = keys
        self._stop = stop
        self._links: dict[str, Link] = {}
        self._refused: dict[str, str] = {}
        """Why a worker is not used, by its address."""
        self._changed = asyncio.Event()
        self._had_one = False
        self._ended = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        self._group = await self._stack.enter_async_context(asyncio.TaskGroup())
        watching = self._group.create_task(self._watch(), name="watch the cluster")
        self._stack.callback(self._hang_up)
        self._stack.callback(watching.cancel)
        self._stop.on_request(self._changed.set)
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._stack.__aexit__(*details)  # type: ignore[arg-type]

    async def pick(self) -> Link | None:
        """The worker with least in hand; waits for one. None: the run is to end, and there is none."""
        while not (alive := [link for link in self._links.values() if link.alive]):
            if self._stop:
                return None
            self._changed.clear()
            await self._changed.wait()
        return min(alive, key=lambda link: link.load)

    def _hang_up(self) -> None:
        self._ended = True
        for link in self._links.values():
            link.hang_up()

    async def _watch(self) -> None:
        alone_since = time.monotonic()
        while True:
            unreachable = await self._look()
            if self._links:
                self._had_one = True
                alone_since = time.monotonic()
            elif problem := self._problem(time.monotonic() - alone_since, unreachable):
                self._stop.request(ClusterError(problem))
                return
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> str:
        """Greet workers that are new. Says why the scheduler could not be asked, '' where it could."""
        try:
            async with asyncio.timeout(ANSWER_S):
                present: dict[str, int] = await self._cluster.client.nthreads()
        except (OSError, TimeoutError) as error:
            return str(error) or "it does not answer"
        # A worker that comes back has a new address. One that is named no more is gone, whatever its
        # connection says: a machine that was switched off closes none.
        for address in self._links.keys() - present.keys():
            self._links[address].hang_up()
        new = present.keys() - self._links.keys() - self._refused.keys()
        await asyncio.gather(*map(self._greet, new))
        return ""

    def _problem(self, alone_s: float, unreachable: str) -> str:
        """Why the run cannot go on without workers; '' while one may come."""
        scheduler = self._cluster.address
        if unreachable:
            return (
                f"the Dask scheduler {scheduler} is gone ({unreachable}), and no worker is left; everything "
                "so far is kept: start it again and go on with the same command."
            )
        if self._refused and not self._had_one:
            return next(iter(self._refused.values()))
        wait_s = self._cluster.patience_s if self._had_one else self._cluster.first_s
        if alone_s < wait_s:
            return ""
        if self._had_one:
            return (
                f"all workers of the Dask cluster {scheduler} are gone for {wait_s:g} s; everything so far "
                "is kept: start some and go on with the same command."
            )
        return (
            f"the Dask cluster {scheduler} has no worker, and none came within {wait_s:g} s: start some with "
            f"`dask worker {scheduler}`."
        )

    async def _greet(self, address: str) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                if problem := await self._misfit(address):
                    self._refuse(address, problem)
                    return
                if (problem := await self._said(address, attach)) is not None:
                    self._refuse(address, f"the Dask worker {address} cannot take part ({problem}).")
                    return
                link = await self._connected(address)
        except (OSError, TimeoutError) as error:
            # It may be starting or ending: it is asked again, if it is still there at the next look.
            log.info("the worker %s cannot be reached (%s)", address, error or "no answer")
            return
        self._links[address] = link
        self._group.create_task(self._follow(link), name=f"worker {address}")
        self._changed.set()
        log.info("worker %s takes part%s", address, "" if link.sees_data else "; images are sent to it")

    async def _connected(self, address: str) -> Link:
        arguments = self._cluster.client.security.get_connection_args("client")
        comm = await connect(address, **arguments)
        try:
            await comm.write({"op": OPERATION, "reply": False})
            link, welcome = await greet(address, comm, self._hello, self._keys)
        except BaseException:
            comm.abort()
            raise
        if any(self._keys[number] for number in welcome.keys_wanted) and not private(address):
            log.warning(
                "the worker %s has no API key in its environment and was sent one over a connection without "
                "TLS: set the key there, or use a scheduler at tls://",
                address,
            )
        return link

    async def _follow(self, link: Link) -> None:
        try:
            await link.run()
        finally:
            self._links.pop(link.address, None)
            if not self._ended:
                log.warning("the worker %s is gone; left: %d", link.address, len(self._links))

    def _refuse(self, address: str, problem: str) -> None:
        self._refused[address] = problem
        log.warning("%s", problem)

    async def _misfit(self, address: str) -> str:
        """Why this worker would not do the same as this machine. Asked with the standard library alone, so
        that a worker without the package can answer."""
        version = await self._said(address, pkgutil.resolve_name, "mmbu_async.version:VERSION")
        if not isinstance(version, str):
            return (
                f"the Dask worker {address} cannot load mmbu-async ({version}): install version {VERSION} of "
                "it in the workers' environment."
            )
        for what, ours, theirs in (
            ("mmbu-async", VERSION, version),
            ("Pillow", PIL.__version__, await self._said(address, pkgutil.resolve_name, "PIL:__version__")),
            ("Python", _minor(platform.python_version()), await self._python(address)),
        ):
            if theirs != ours:
                return (
                    f"the Dask worker {address} has {what} {theirs}, and here it is {ours}: install the same "
                    "versions in the workers' environment."
                )
        return ""

    async def _python(self, address: str) -> str:
        return _minor(str(await self._said(address, platform.python_version)))

    async def _said(self, address: str, function: Any, *arguments: str) -> Any:
        """What a function returns, or the exception that it raises, on a worker."""
        asked: Coroutine[Any, Any, dict[str, Any]] = self._cluster.client.run(
            function, *arguments, workers=[address], on_error="return"
        )
        said = await asked
        answer = said.get(address, CommClosedError(f"{address} has gone"))
        if isinstance(answer, OSError | TimeoutError):
            raise answer
        return answer


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def private(address: str) -> bool:
    """Whether what is said on the way to an address stays among those who say it."""
    parts = urlsplit(address)
    try:
        return parts.scheme == "tls" or ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False
