"""Of runs that ask the same at once, one asks."""

from __future__ import annotations

import asyncio

import pytest

from mmbu_async.pipeline.beside import Beside
from tests.virtual_time import run_virtually


def test_one_asks_at_a_time_and_the_others_hear_that_somebody_has() -> None:
    async def main() -> list[tuple[str, bool, float]]:
        beside = Beside()
        heard: list[tuple[str, bool, float]] = []

        async def ask(name: str, key: str) -> None:
            async with beside.turn(key) as waited:
                heard.append((name, waited, asyncio.get_running_loop().time()))
                await asyncio.sleep(1.0)

        await asyncio.gather(ask("first", "a"), ask("second", "a"), ask("third", "a"), ask("other", "b"))
        assert not beside._asking
        return heard

    assert run_virtually(main()) == [
        ("first", False, 0.0),
        ("other", False, 0.0),
        ("second", True, 1.0),
        ("third", True, 2.0),
    ]


def test_nobody_waits_for_ever_for_a_run_that_is_held() -> None:
    async def main() -> float:
        beside = Beside(patience_s=10.0)

        async def held() -> None:
            async with beside.turn("a"):
                await asyncio.Event().wait()

        holder = asyncio.create_task(held())
        await asyncio.sleep(0)
        async with beside.turn("a") as waited:
            assert waited
        assert "a" in beside._asking
        holder.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holder
        assert not beside._asking
        return asyncio.get_running_loop().time()

    assert run_virtually(main()) == 10.0
