"""Placement and exchange of a run whose work is done by a fleet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.exchange import Body, Exchanged, KeptBody
from mmbu_async.errors import ImageError
from mmbu_async.model import Failure, FailureKind
from mmbu_async.pipeline.cluster.fleet import Fleet
from mmbu_async.pipeline.cluster.link import Link, LostError
from mmbu_async.pipeline.cluster.messages import Item, Unmade
from mmbu_async.pipeline.placement import BrokenRow, ReadyRow, Workshop
from mmbu_async.store import StoredSample

GRACE_S = 30.0
"""Seconds beyond a call's own time limit after which a worker that says nothing is given up."""
MOST_LOSSES = 2
"""Workers that a row may end while its image is prepared: an image that kills them must not kill all."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """Where a body lies, and the row of which it can be made again."""

    link: Link
    row: StoredSample


class FarPlacement:
    """Bodies are made on workers and stay there until they are sent."""

    def __init__(self, fleet: Fleet, workshop: Workshop, width: int) -> None:
        self.width = width
        self._fleet = fleet
        self._workshop = workshop
        self._numbers = count()
        self._kept: dict[int, _Kept] = {}

    async def prepare(self, rows: Sequence[StoredSample]) -> list[ReadyRow | BrokenRow]:
        return await self._prepared(rows, losses=0)

    def forget(self, row: ReadyRow) -> None:
        if isinstance(row.body, KeptBody) and (kept := self._kept.pop(row.body.number, None)) is not None:
            kept.link.forget(row.body.number)

    async def place(self, body: KeptBody) -> Link | BrokenRow | None:
        """The worker that has the body: made again where the one that had it is gone. None: the run ends."""
        kept = self._kept[body.number]
        if kept.link.alive:
            return kept.link
        made = await self._prepared([kept.row], losses=0, number=body.number)
        if not made:
            return None
        return made[0] if isinstance(made[0], BrokenRow) else self._kept[body.number].link

    async def _prepared(
        self, rows: Sequence[StoredSample], *, losses: int, number: int | None = None
    ) -> list[ReadyRow | BrokenRow]:
        link = await self._fleet.pick()
        if link is None:
            return []
        try:
            return await self._made_by(link, rows, number)
        except LostError as lost:
            losses += lost.told and len(rows) == 1
        if losses < MOST_LOSSES:
            # One by one: when one of them is what ended the worker, the others must not fail with it.
            each = [await self._prepared([row], losses=losses, number=number) for row in rows]
            return [one for made in each for one in made]
        message = f"{losses} workers of the cluster were lost while its image was prepared"
        return [BrokenRow(row=row, message=message) for row in rows]

    async def _made_by(
        self, link: Link, rows: Sequence[StoredSample], number: int | None
    ) -> list[ReadyRow | BrokenRow]:
        results: dict[int, ReadyRow | BrokenRow] = {}
        left = list(range(len(rows)))
        numbers = [next(self._numbers) if number is None else number for _ in rows]
        for with_bytes in (False, True) if link.sees_data else (True,):
            items: list[Item] = []
            asked: list[int] = []
            for index in left:
                item = await self._item(numbers[index], rows[index], with_bytes=with_bytes)
                if isinstance(item, BrokenRow):
                    results[index] = item
                else:
                    items.append(item)
                    asked.append(index)
            left = []
            for index, made in zip(asked, await link.prepare(tuple(items)) if items else (), strict=True):
                row = rows[index]
                if not isinstance(made, Unmade):
                    self._kept[numbers[index]] = _Kept(link, row)
                    results[index] = made.ready(row, KeptBody(number=numbers[index], size=made.size))
                elif made.unread and not with_bytes:
                    # Not there, or not to be read there: this machine may see what the worker does not.
                    left.append(index)
                else:
                    results[index] = BrokenRow(row=row, message=made.problem)
        return [results[index] for index in range(len(rows))]

    async def _item(self, number: int, row: StoredSample, *, with_bytes: bool) -> Item | BrokenRow:
        sample = row.sample
        originals = None
        if with_bytes:
            read = await asyncio.to_thread(self._read, row)
            if isinstance(read, BrokenRow):
                return read
            originals = read
        prompt = self._workshop.benchmark.prompt(sample)
        return Item(number=number, prompt=prompt, images=sample.images, originals=originals)

    def _read(self, row: StoredSample) -> tuple[bytes, ...] | BrokenRow:
        originals = []
        for reference in row.sample.images:
            try:
                originals.append(self._workshop.read_image(reference))
            except ImageError as error:
                return BrokenRow(row=row, message=f"{reference.locator}: {error}")
        return tuple(originals)


class FarExchange:
    """Calls of one side, made by workers."""

    def __init__(self, fleet: Fleet, side: int, settings: CallSettings) -> None:
        self._fleet = fleet
        self._side = side
        self._longest_s = settings.timeout + settings.connect_timeout + GRACE_S
        self.placement: FarPlacement | None = None
        """Where bodies of the model under test are kept; None: a judge's, which are sent along."""

    async def send(self, body: Body) -> Exchanged:
        """A worker that is lost before it was told costs nothing, and another one is asked. One that is lost
        afterwards may have sent the request: that is a lost connection, of which nobody knows the cost."""
        began = time.perf_counter()
        while True:
            link = await self._link(body)
            if not isinstance(link, Link):
                return _unsent(link)
            try:
                async with asyncio.timeout(self._longest_s):
                    return await link.send(self._side, body)
            except TimeoutError:
                link.hang_up()
                what = f"the worker {link.address} said nothing for {self._longest_s:g} s and was given up"
                failure = Failure(kind=FailureKind.TIMEOUT, message=what)
            except LostError as lost:
                if not lost.told:
                    continue
                failure = Failure(kind=FailureKind.CONNECTION, message=f"{lost} in mid-call")
            return Exchanged(outcome=failure, total_s=time.perf_counter() - began)

    async def _link(self, body: Body) -> Link | BrokenRow | None:
        if not isinstance(body, KeptBody):
            return await self._fleet.pick()
        assert self.placement is not None  # noqa: S101 - whoever keeps bodies is set before one is kept
        return await self.placement.place(body)


def _unsent(broken: BrokenRow | None) -> Exchanged:
    if broken is not None:
        failure = Failure(kind=FailureKind.IMAGE, message=broken.message)
    else:
        failure = Failure(kind=FailureKind.CONNECTION, message="no worker of the cluster is left")
    return Exchanged(outcome=failure, total_s=0.0, sent=False)
