"""What a process that works on several runs at once lends to each of them.

Alone, a run has its key to itself, hears signals, and may keep the event loop waiting while it scores. Beside
others none of that holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.shared import Party, SharedLine
from mmbu_async.pipeline.beside import Beside
from mmbu_async.pipeline.budget import Budget
from mmbu_async.pipeline.signals import draining_signals
from mmbu_async.pipeline.stop import Stop

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Who works on this run, and on which terms."""

    stop: Stop = field(default_factory=Stop)
    """By which the host ends the session."""
    shared: Callable[[CallSettings, str], tuple[SharedLine, Party]] | None = None
    """From settings and key to the line that all runs on that key share; None: there are no others."""
    purse: Budget | None = None
    """The money of all runs together."""
    beside: Beside | None = None
    """What the runs are asking judges at the moment."""
    threads: bool = False
    """Do what is long and synchronous in threads, and leave signals to the host."""

    async def apart(self, work: Callable[[], T]) -> T:
        """What `work` returns, without keeping others on the event loop waiting. Cancelled, it waits for the
        work to end all the same: nobody closes a store that a thread still uses."""
        if not self.threads:
            return work()
        thread = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(thread)
        except asyncio.CancelledError:
            await asyncio.wait([thread])
            raise

    def signals(self, again: str) -> AbstractContextManager[None]:
        """Drain on signals; `again` is the command that goes on afterwards."""
        return nullcontext() if self.threads else draining_signals(self.stop, again)
