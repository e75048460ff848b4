"""Rows and calls on a fleet whose workers fall at chosen moments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, cast

import pytest

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.exchange import Body, Exchanged, KeptBody
from mmbu_async.errors import ImageError
from mmbu_async.model import Failure, FailureKind, ImageRef, Prompt, Sample
from mmbu_async.pipeline.cluster import work
from mmbu_async.pipeline.cluster.fleet import Fleet
from mmbu_async.pipeline.cluster.link import Link, LostError
from mmbu_async.pipeline.cluster.messages import Item, Unmade
from mmbu_async.pipeline.cluster.work import FarExchange, FarPlacement
from mmbu_async.pipeline.placement import BrokenRow, ReadyRow, Request, Workshop
from mmbu_async.store import StoredSample
from tests.conftest import a_sample

DEADLY = ImageRef(locator="images/deadly.png")
MADE = Exchanged(outcome=Failure(kind=FailureKind.AUTH, message="an answer"), total_s=0.1)
SETTINGS = CallSettings(model="m", timeout=0.02, connect_timeout=0.02)


class Worker(Link):
    """A link whose worker does as it is told here."""

    def __init__(self, name: str, *, sees_data: bool = True, falls: bool | None = None) -> None:
        """`falls`: at the next call, with whether it was told."""
        self.address = name
        self.sees_data = sees_data
        self.alive = True
        self.load = 0
        self.falls = falls
        self.silent = False
        self.blind_to: frozenset[str] = frozenset()
        self.sent: list[Body] = []
        self.items: list[Item] = []
        self.forgotten: list[int] = []

    async def send(self, side: int, body: Body) -> Exchanged:
        if self.silent:
            await asyncio.Event().wait()
        if self.falls is not None:
            self.alive = False
            raise LostError(self.address, told=self.falls)
        self.sent.append(body)
        return MADE

    async def prepare(self, items: tuple[Item, ...]) -> tuple[Request | Unmade, ...]:
        if any(DEADLY in item.images for item in items):
            self.alive = False
            raise LostError(self.address, told=True)
        self.items += items
        return tuple(map(self._made, items))

    def _made(self, item: Item) -> Request | Unmade:
        if item.originals is None and item.images[0].locator in self.blind_to:
            return Unmade(problem="not here", unread=True)
        return Request(
            body=b"", raw_input=1, image_scale=1.0, image_sha256=item.images[0].locator, image_note=""
        )

    def forget(self, number: int) -> None:
        self.forgotten.append(number)

    def hang_up(self) -> None:
        self.alive = False


class FleetOf:
    """The first that lives is picked."""

    def __init__(self, *workers: Worker) -> None:
        self.workers = workers

    async def pick(self) -> Worker | None:
        return next((worker for worker in self.workers if worker.alive), None)


class Asking:
    """As much of a benchmark as has prompts."""

    def prompt(self, sample: Sample) -> Prompt:
        return Prompt(parts=(sample.question,))


def placed(
    *workers: Worker, read: Callable[[ImageRef], bytes] = lambda ref: b"image"
) -> tuple[FarPlacement, FarExchange]:
    fleet = cast(Fleet, FleetOf(*workers))
    workshop = Workshop(
        benchmark=cast(Any, Asking()),
        read_image=read,
        limits=cast(Any, None),
        wire=cast(Any, None),
        settings=SETTINGS,
        estimator=cast(Any, None),
    )
    placement, exchange = FarPlacement(fleet, workshop, width=4), FarExchange(fleet, 0, SETTINGS)
    exchange.placement = placement
    return placement, exchange


def rows(count: int, *deadly: int) -> list[StoredSample]:
    return [
        StoredSample(
            key=n, sample=a_sample(n, **({"images": (DEADLY,)} if n in deadly else {})), family="counting"
        )
        for n in range(count)
    ]


def ready(prepared: Sequence[ReadyRow | BrokenRow]) -> list[ReadyRow]:
    assert all(isinstance(one, ReadyRow) for one in prepared)
    return [one for one in prepared if isinstance(one, ReadyRow)]


# ---------------------------------------------------------------- calls


async def test_a_call_of_which_no_worker_heard_is_made_by_another() -> None:
    first, second = Worker("a", falls=False), Worker("b")
    _, exchange = placed(first, second)
    assert await exchange.send(b"body") is MADE
    assert second.sent == [b"body"]


async def test_a_call_that_a_worker_took_with_it_is_made_by_nobody_else() -> None:
    first, second = Worker("a", falls=True), Worker("b")
    _, exchange = placed(first, second)
    made = await exchange.send(b"body")
    assert isinstance(made.outcome, Failure)
    assert made.outcome.kind is FailureKind.CONNECTION
    assert made.outcome.message == "the worker a was lost in mid-call"
    assert made.sent, "it may have been billed"
    assert second.sent == []


async def test_a_worker_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "GRACE_S", 0.01)
    worker = Worker("a")
    worker.silent = True
    _, exchange = placed(worker)
    made = await exchange.send(b"body")
    assert isinstance(made.outcome, Failure)
    assert made.outcome.kind is FailureKind.TIMEOUT
    assert made.sent
    assert not worker.alive


async def test_without_a_worker_nothing_was_sent() -> None:
    _, exchange = placed()
    made = await exchange.send(b"body")
    assert isinstance(made.outcome, Failure)
    assert made.outcome.kind is FailureKind.CONNECTION
    assert not made.sent


# ---------------------------------------------------------------- rows


async def test_a_body_is_sent_from_where_it_was_made_and_forgotten_there() -> None:
    first, second = Worker("a"), Worker("b")
    placement, exchange = placed(first, second)
    made = ready(await placement.prepare(rows(3)))
    assert [one.row.key for one in made] == [0, 1, 2]
    assert [one.image_sha256 for one in made] == [f"images/{n}.png" for n in range(3)]
    assert all(item.originals is None for item in first.items)
    for row in made:
        await exchange.send(row.body)
        placement.forget(row)
    assert first.sent == [row.body for row in made]
    assert first.forgotten == [row.body.number for row in made if isinstance(row.body, KeptBody)]
    assert second.items == []


async def test_a_body_whose_worker_is_gone_is_made_again() -> None:
    first, second = Worker("a"), Worker("b")
    placement, exchange = placed(first, second)
    (row,) = ready(await placement.prepare(rows(1)))
    first.alive = False
    assert await exchange.send(row.body) is MADE
    assert [item.number for item in second.items] == [item.number for item in first.items]
    assert second.sent == [row.body]
    placement.forget(row)
    assert second.forgotten
    assert first.forgotten == []


async def test_what_a_worker_cannot_read_is_sent_to_it() -> None:
    worker = Worker("a")
    worker.blind_to = frozenset({"images/1.png"})
    placement, _ = placed(worker)
    made = ready(await placement.prepare(rows(3)))
    assert [one.row.key for one in made] == [0, 1, 2]
    sent = [(item.images[0].locator, item.originals) for item in worker.items]
    assert sent[3:] == [("images/1.png", (b"image",))], "only that one, once"


async def test_a_worker_that_sees_nothing_is_sent_all() -> None:
    worker = Worker("a", sees_data=False)
    placement, _ = placed(worker)
    ready(await placement.prepare(rows(2)))
    assert [item.originals for item in worker.items] == [(b"image",), (b"image",)]


async def test_an_image_that_is_not_here_either_fails_its_row() -> None:
    def read(reference: ImageRef) -> bytes:
        if reference.locator == "images/1.png":
            raise ImageError("there is no such file")
        return b"image"

    placement, _ = placed(Worker("a", sees_data=False), read=read)
    first, second, third = await placement.prepare(rows(3))
    assert isinstance(second, BrokenRow)
    assert second.message == "images/1.png: there is no such file"
    ready([first, third])


async def test_an_image_that_kills_workers_fails_alone() -> None:
    workers = [Worker(name) for name in "abcde"]
    placement, _ = placed(*workers)
    first, second, third = await placement.prepare(rows(3, 1))
    ready([first, third])
    assert isinstance(second, BrokenRow)
    assert second.message == "2 workers of the cluster were lost while its image was prepared"
    # One with its whole batch, two with the row alone.
    assert sum(not worker.alive for worker in workers) == 3


async def test_many_fall_in_turn() -> None:
    """Whatever falls, a body is sent at most once, and each row is answered or told of as lost."""
    draw = Random(5)
    for _ in range(50):
        workers = [Worker(str(n), falls=draw.choice([None, None, True, False])) for n in range(6)]
        placement, exchange = placed(*workers, Worker("last"))
        made = ready(await placement.prepare(rows(5)))
        outcomes = [await exchange.send(row.body) for row in made]
        sent = [body for worker in exchange_workers(exchange) for body in worker.sent]
        lost = [one for one in outcomes if one is not MADE]
        assert len(sent) == len(set(map(id, sent))) == 5 - len(lost)
        assert all(one.sent for one in lost)


def exchange_workers(exchange: FarExchange) -> Sequence[Worker]:
    return cast(FleetOf, exchange._fleet).workers
