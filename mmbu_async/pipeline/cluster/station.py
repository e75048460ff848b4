"""The worker's end: images into bodies, bodies into calls, for as long as a driver's connection stands.

A worker holds no limit, no retry and no money. When the connection ends, for whatever reason, its calls are
given up and its bodies forgotten: the driver, or the next one, decides what is asked again.
"""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any

from distributed.comm import Comm, CommClosedError
from distributed.core import Status

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.client import WIRE_FORMATS
from mmbu_async.endpoints.exchange import Body, Exchange, HttpExchange, KeptBody
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.errors import ImageError, MmbuError
from mmbu_async.images import prepare
from mmbu_async.pipeline.cluster.messages import (
    OPERATION,
    Data,
    Forget,
    Hello,
    Item,
    Keys,
    Prepare,
    Prepared,
    Send,
    Sent,
    Unmade,
    Welcome,
    heard,
    say,
)
from mmbu_async.pipeline.placement import Request
from mmbu_async.sources import Source, open_data

THREADS = 2
"""For image work, beside the worker's event loop; more workers, not more threads, use more cores."""


def attach(dask_worker: Any) -> None:
    """Let the worker take our connections on its own port. Run on it once, through Dask."""
    dask_worker.handlers[OPERATION] = serve


async def serve(comm: Comm) -> Status:
    """One driver, from its hello until its connection ends."""
    try:
        async with AsyncExitStack() as stack:
            station = await _opened(comm, stack)
            await station.work()
    except* CommClosedError:
        # The driver has gone. What it has not heard, it or the next one asks again.
        pass
    finally:
        comm.abort()
    return Status.dont_reply


async def _opened(comm: Comm, stack: AsyncExitStack) -> Station:
    hello: Hello = await heard(comm)
    if hello.own:
        # Ctrl-C in a terminal is sent to every process there. Its calls under way are to finish.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    source = await asyncio.to_thread(seen, hello.data)
    own = {number: key for number, side in enumerate(hello.sides) if (key := _own_key(side))}
    wanted = tuple(number for number in range(len(hello.sides)) if number not in own)
    await say(comm, Welcome(keys_wanted=wanted, sees_data=source is not None))
    keys: Keys = await heard(comm)
    exchanges = [
        await stack.enter_async_context(
            HttpExchange(side, WIRE_FORMATS[side.endpoint](), key=own.get(number) or keys.of.get(number, ""))
        )
        for number, side in enumerate(hello.sides)
    ]
    pool = stack.enter_context(ThreadPoolExecutor(THREADS, thread_name_prefix="prepare"))
    return Station(comm, hello, exchanges, source, pool)


def seen(data: Data | None) -> Source | None:
    """The driver's data, where this machine has the same table of rows in the same place."""
    if data is None:
        return None
    try:
        source = open_data(data.place, data.spec)
    except MmbuError:
        return None
    return source if source.stamp == data.stamp else None


def _own_key(side: CallSettings) -> str:
    return os.environ.get(side.key_variable, "").strip()


class Station:
    """One driver's work on this worker."""

    def __init__(
        self,
        comm: Comm,
        hello: Hello,
        exchanges: list[HttpExchange],
        source: Source | None,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._comm = comm
        self._settings = hello.sides[0]
        self._limits = hello.limits
        self._wire = WIRE_FORMATS[self._settings.endpoint]()
        self._estimator = Estimator.of(self._settings)
        self._exchanges: list[Exchange] = list(exchanges)
        self._source = source
        self._pool = pool
        self._bodies: dict[int, bytes] = {}
        self._out: list[Prepared | Sent] = []
        self._filled = asyncio.Event()

    async def work(self) -> None:
        """Raises CommClosedError, in a group, when the driver goes."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write())
            while True:
                for message in await heard(self._comm):
                    match message:
                        case Send():
                            group.create_task(self._send(message))
                        case Prepare():
                            group.create_task(self._prepare(message))
                        case Forget():
                            self._bodies.pop(message.number, None)

    async def _write(self) -> None:
        while True:
            await self._filled.wait()
            self._filled.clear()
            batch, self._out = self._out, []
            await say(self._comm, batch)

    def _tell(self, message: Prepared | Sent) -> None:
        self._out.append(message)
        self._filled.set()

    async def _send(self, message: Send) -> None:
        made = await self._exchanges[message.side].send(self._bytes(message.body))
        self._tell(Sent(ask=message.ask, made=made))

    def _bytes(self, body: Body) -> bytes:
        return self._bodies[body.number] if isinstance(body, KeptBody) else body

    async def _prepare(self, message: Prepare) -> None:
        loop = asyncio.get_running_loop()
        made = await loop.run_in_executor(self._pool, self._make_all, message.items)
        results: list[Request | Unmade] = []
        for item, one in zip(message.items, made, strict=True):
            if isinstance(one, tuple):
                request, self._bodies[item.number] = one
                results.append(request)
            else:
                results.append(one)
        self._tell(Prepared(ask=message.ask, results=tuple(results)))

    def _make_all(self, items: tuple[Item, ...]) -> list[tuple[Request, bytes] | Unmade]:
        return [self._make(item) for item in items]

    def _make(self, item: Item) -> tuple[Request, bytes] | Unmade:
        """What the driver is told, and the body."""
        images = []
        for position, reference in enumerate(item.images):
            unread = True
            try:
                original = item.originals[position] if item.originals is not None else self._read(reference)
                unread = False
                images.append(prepare(original, self._limits))
            except ImageError as error:
                return Unmade(problem=f"{reference.locator}: {error}", unread=unread)
        return Request.of(
            item.prompt, images, wire=self._wire, settings=self._settings, estimator=self._estimator
        ).parted()

    def _read(self, reference: Any) -> bytes:
        if self._source is None:
            raise ImageError("this worker does not see the data")
        return self._source.read_image(reference)
