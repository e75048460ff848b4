"""Runs in batches beside the simulator, and what its log says of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.config import RunConfig
from mmbu_async.endpoints.batches.client import AnthropicBatches, OpenAIBatches
from mmbu_async.simulator import Latency, Record, Simulator
from tests.whole_run import calls, config, simulated, stored

POLL_S = 0.12
CLIENTS = {"openai": OpenAIBatches, "anthropic": AnthropicBatches}


class DiedError(BaseException):
    """Stands for a SIGKILL: nobody catches it, and nothing is tidied up in the store."""


def server(*rules: str, latency_s: float = 0.05, **options: Any) -> Simulator:
    return simulated(*rules, batch_latency=Latency("fixed", latency_s), **options)


def batched(
    simulator: Simulator, store: Path, data: Path, endpoint: str = "openai", **changes: Any
) -> RunConfig:
    judge = {"batch_size": 15} | changes.pop("judge", {})
    plain: dict[str, Any] = {"batch": True, "batch_poll": POLL_S, "batch_size": 15, "judge": judge}
    return config(simulator, store, data, endpoint, **(plain | changes))


async def submissions(simulator: Simulator) -> list[Record]:
    """Batches that the provider took."""
    return [record for record in await calls(simulator, "batch") if record.batch]


async def bought(simulator: Simulator) -> Counter[str]:
    """Replies of the model that are charged, by what was asked."""
    return Counter(record.content for record in await calls(simulator) if record.charged)


def batches_by_state(store: Path) -> Counter[str]:
    return Counter(state for (state,) in stored(store, "SELECT state FROM batch"))


def scores(store: Path) -> list[tuple[Any, ...]]:
    return stored(
        store,
        "SELECT row_id, score.answer, how, status, correct, tp, fp, fn FROM score "
        "JOIN sample ON sample.id = sample_id ORDER BY row_id",
    )


def dies(monkeypatch: pytest.MonkeyPatch, endpoint: str, method: str, *, after: bool) -> Callable[[], None]:
    """Let the process die at its first call of a method, before or after it is done; returns what undoes
    that."""
    kind: Any = CLIENTS[endpoint]
    real = getattr(kind, method)

    async def last(self: Any, *arguments: Any) -> Any:
        if after:
            await real(self, *arguments)
        raise DiedError

    monkeypatch.setattr(kind, method, last)
    return lambda: monkeypatch.setattr(kind, method, real)


async def until(condition: Callable[[], bool]) -> None:
    """Look again and again, for at most some seconds."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - a store has no event to wait for
            await asyncio.sleep(0.01)
