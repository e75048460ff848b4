"""Runs beside each other that ask one judge the same: one buys the verdict, others find it in the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

PATIENCE_S = 10.0
"""How long another run's call is waited for: that run may be held, or its line long, and a verdict that is
bought twice is cheaper than a run that stands still."""


@dataclass(slots=True, kw_only=True)
class Beside:
    """What the runs of a process are asking at the moment."""

    patience_s: float = PATIENCE_S
    _asking: dict[Hashable, asyncio.Event] = field(default_factory=dict)

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[bool]:
        """Be the only one who asks for this, unless it takes others too long. True: somebody else has asked
        meanwhile, and may have had an answer."""
        waited = key in self._asking
        if waited:
            try:
                async with asyncio.timeout(self.patience_s):
                    while (asked := self._asking.get(key)) is not None:
                        await asked.wait()
            except TimeoutError:
                yield True
                return
        done = self._asking[key] = asyncio.Event()
        try:
            yield waited
        finally:
            del self._asking[key]
            done.set()
