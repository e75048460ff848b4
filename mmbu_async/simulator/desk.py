"""What all requests share: settings, log, eyes, places, limits, and how often each request has come."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

from mmbu_async.simulator.config import SimulatorConfig
from mmbu_async.simulator.eyes import Eyes
from mmbu_async.simulator.findings import Findings
from mmbu_async.simulator.limits import Limits, Places
from mmbu_async.simulator.log import Milestones, RequestLog
from mmbu_async.simulator.pictures import Picture
from mmbu_async.simulator.servers import Servers
from mmbu_async.simulator.wire import ChatRequest, Reply, tokens

CACHE_MINIMUM = 1024
"""Tokens below which no vendor keeps the beginning of a prompt (Anthropic's and OpenAI's for most models)."""


@dataclass(slots=True, kw_only=True)
class Desk:
    """One simulator's state."""

    config: SimulatorConfig
    log: RequestLog
    eyes: Eyes
    executor: Executor
    places: Places
    servers: Servers | None
    clock: Callable[[], float]
    """Monotonic seconds."""
    wall: Callable[[], float]
    """Unix seconds."""
    began: float
    """On the monotonic clock."""
    closing: bool = False
    arrived: Milestones = field(default_factory=Milestones)
    served: int = 0
    """Replies whose latency was drawn in order of arrival."""
    _occurrences: Counter[bytes] = field(default_factory=Counter)
    """One short entry a distinct request: some ten megabytes for a hundred thousand."""
    _cache: set[tuple[str, str, str]] = field(default_factory=set)
    """Beginnings of prompts, by key and model; kept for good."""
    _limits: dict[tuple[str, str], Limits] = field(default_factory=dict)

    async def seen(self, picture: Picture) -> Findings | None:
        """What is in a picture, looked at beside the event loop; None: it cannot be decoded."""
        known = self.eyes.recall(picture)
        if known is not None:
            return known
        return await asyncio.get_running_loop().run_in_executor(self.executor, self.eyes.look, picture)

    def occurrence(self, content: str) -> int:
        """How often this content has come, this time included."""
        key = bytes.fromhex(content)[:12]
        self._occurrences[key] += 1
        return self._occurrences[key]

    def cached(self, key: str, request: ChatRequest, reply: Reply) -> Reply:
        """The reply with what its prompt found in the cache, or has written to it."""
        size = tokens(request.cacheable)
        if size < CACHE_MINIMUM or not reply.usage.reported:
            return reply
        entry = (key, request.model, request.cacheable)
        found = entry in self._cache
        self._cache.add(entry)
        usage = replace(
            reply.usage, cached_tokens=size if found else 0, cache_write_tokens=0 if found else size
        )
        return replace(reply, usage=usage)

    def limits(self, key: str, model: str) -> Limits:
        """Vendors limit each model of an account by itself."""
        owner = (key, model)
        if owner not in self._limits:
            config = self.config
            self._limits[owner] = Limits(
                rpm=config.rpm, tpm=config.tpm, burst_s=config.limit_burst_s, clock=self.clock
            )
        return self._limits[owner]
