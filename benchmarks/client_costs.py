"""Loops of requests, and their CPU as one line of JSON. Knows no client: any environment can run it."""

from __future__ import annotations

import asyncio
import json
import resource
import time
from collections.abc import Awaitable, Callable


async def report(ask: Callable[[], Awaitable[None]], concurrency: int, requests: int) -> None:
    """Open every connection first, so that only requests are measured."""
    await _loops(ask, concurrency, concurrency * 4)
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    await _loops(ask, concurrency, requests)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    print(
        json.dumps(
            {
                "cpu_ms": (user + system) / requests * 1e3,
                "system_ms": system / requests * 1e3,
                "requests_a_second": requests / took,
            }
        )
    )


async def _loops(ask: Callable[[], Awaitable[None]], concurrency: int, requests: int) -> None:
    left = iter(range(requests))

    async def loop() -> None:
        for _ in left:
            await ask()

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(loop())
