"""Workers of one kind, of which there may become more."""

from __future__ import annotations

import asyncio

import pytest

from mmbu_async.pipeline.crew import Crew
from tests.fake_endpoint import settle_tasks


class Work:
    """Counts who works, until it is over."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.begun = 0

    async def __call__(self) -> None:
        self.begun += 1
        await self.over.wait()


async def test_a_crew_grows_while_it_works_and_never_shrinks() -> None:
    work = Work()
    crew = Crew(work, 3)
    task = asyncio.create_task(crew.run())
    await settle_tasks()
    assert work.begun == 3
    crew.grow(5)
    crew.grow(2)
    await settle_tasks()
    assert (work.begun, crew.size) == (5, 5)
    work.over.set()
    await task
    crew.grow(9)
    await settle_tasks()
    assert work.begun == 5, "there is no work any more"


async def test_a_crew_that_has_not_begun_begins_larger() -> None:
    work = Work()
    crew = Crew(work, 3)
    crew.grow(6)
    work.over.set()
    await crew.run()
    assert work.begun == 6


async def test_a_crew_of_which_one_failed_takes_no_more() -> None:
    ready = asyncio.Event()
    begun = []

    async def work() -> None:
        begun.append(1)
        await ready.wait()
        if len(begun) == 2:
            begun.append(1)
            raise ValueError("no")
        try:
            await asyncio.Event().wait()
        finally:
            crew.grow(8)

    crew = Crew(work, 2)
    task = asyncio.create_task(crew.run())
    await settle_tasks()
    ready.set()
    with pytest.raises(ExceptionGroup):
        await task
    assert len(begun) == 3
