"""Workers of one kind, of which there may become more while they work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Crew:
    """Each worker does `work` to its end. A crew never shrinks: whom the gate lets through no more, waits."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]], size: int) -> None:
        self._work = work
        self.size = size
        self._begun = 0
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Returns when all have ended."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            self._fill(group)
        self._group = None

    def grow(self, size: int) -> None:
        """To so many, now, or when it begins."""
        self.size = max(self.size, size)
        if self._group is not None:
            self._fill(self._group)

    def _fill(self, group: asyncio.TaskGroup) -> None:
        while self._begun < self.size:
            worker = self._work()
            try:
                group.create_task(worker)
            except RuntimeError:
                # The last worker has just ended, or one of them failed: there is no work for more.
                worker.close()
                return
            self._begun += 1
