"""The driver's end of one worker: what waits to be said to it, and who waits for its answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from distributed.comm import Comm, CommClosedError

from mmbu_async.endpoints.exchange import Body, Exchanged
from mmbu_async.pipeline.cluster.messages import (
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

T = TypeVar("T")


class LostError(Exception):
    """The worker is gone before it answered. `told`: it may have heard the question."""

    def __init__(self, address: str, *, told: bool) -> None:
        super().__init__(f"the worker {address} was lost")
        self.told = told


@dataclass(slots=True)
class _Question:
    answer: asyncio.Future[Any]
    weight: int
    told: bool = False


class Link:
    """One worker. `run` must be under way for questions to be answered."""

    def __init__(self, address: str, comm: Comm, *, sees_data: bool) -> None:
        self.address = address
        self.sees_data = sees_data
        self.alive = True
        self.load = 0
        """Calls and rows it has in hand."""
        self._comm = comm
        self._numbers = count()
        self._out: list[tuple[Any, _Question | None]] = []
        self._filled = asyncio.Event()
        self._asked: dict[int, _Question] = {}

    async def send(self, side: int, body: Body) -> Exchanged:
        """Have it make one call. Raises LostError."""
        number = next(self._numbers)
        made: Exchanged = await self._ask(number, Send(ask=number, side=side, body=body), 1)
        return made

    async def prepare(self, items: tuple[Item, ...]) -> tuple[Request | Unmade, ...]:
        """Have it make and keep bodies. Raises LostError."""
        number = next(self._numbers)
        made: tuple[Request | Unmade, ...] = await self._ask(
            number, Prepare(ask=number, items=items), len(items)
        )
        return made

    def forget(self, number: int) -> None:
        if self.alive:
            self._out.append((Forget(number=number), None))
            # No reason to write: it goes with what is said next.

    def hang_up(self) -> None:
        """Give the worker up; who waits for it hears that it is lost."""
        self._comm.abort()

    async def run(self) -> None:
        """Until the connection ends."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._write())
                group.create_task(self._read())
        except* CommClosedError:
            pass
        finally:
            self.alive = False
            self._comm.abort()
            for question in self._asked.values():
                if not question.answer.done():
                    question.answer.set_exception(LostError(self.address, told=question.told))
            self._asked.clear()

    async def _ask(self, number: int, message: Prepare | Send, weight: int) -> Any:
        if not self.alive:
            raise LostError(self.address, told=False)
        question = _Question(asyncio.get_running_loop().create_future(), weight)
        self._asked[number] = question
        self._out.append((message, question))
        self._filled.set()
        self.load += weight
        try:
            return await question.answer
        finally:
            self.load -= weight
            self._asked.pop(number, None)

    async def _write(self) -> None:
        while True:
            await self._filled.wait()
            self._filled.clear()
            if self._comm.closed():
                raise CommClosedError(f"{self.address} has gone")
            batch, self._out = self._out, []
            for _, question in batch:
                if question is not None:
                    # From here on nobody can say whether the worker has heard it.
                    question.told = True
            await say(self._comm, [message for message, _ in batch])

    async def _read(self) -> None:
        while True:
            for message in await heard(self._comm):
                question = self._asked.get(message.ask)
                # Who asked may have been cancelled meanwhile.
                if question is not None and not question.answer.done():
                    match message:
                        case Sent():
                            question.answer.set_result(message.made)
                        case Prepared():
                            question.answer.set_result(message.results)


async def greet(address: str, comm: Comm, hello: Hello, keys: tuple[str, ...]) -> tuple[Link, Welcome]:
    """Say who is to be called and hand over the keys that the worker lacks."""
    await say(comm, hello)
    welcome: Welcome = await heard(comm)
    await say(comm, Keys(of={number: keys[number] for number in welcome.keys_wanted}))
    return Link(address, comm, sees_data=welcome.sees_data), welcome
