"""A scheduler beside the simulator, and waiting for what its jobs become."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mmbu_async.service.jobs import Job, JobState
from mmbu_async.service.scheduler import Scheduler
from mmbu_async.service.settings import EndpointSettings, ServiceConfig
from mmbu_async.simulator import Simulator
from tests.simulated import BASES

PATIENCE_S = 60.0


def service_config(simulator: Simulator, store: Path, data: Path, **changes: Any) -> ServiceConfig:
    """Endpoint `sim` speaks like OpenAI, `judge` like Anthropic; both are the simulator."""
    limits = changes.pop("limits", {})
    endpoints = (
        EndpointSettings.model_validate(
            {"name": "sim", "endpoint": "openai", "base_url": simulator.url + BASES["openai"]} | limits
        ),
        EndpointSettings(
            name="judge", endpoint="anthropic", base_url=simulator.url + BASES["anthropic"], models=("j",)
        ),
    )
    return ServiceConfig.model_validate(
        {"store": store, "data": {"mini": str(data)}, "endpoint": endpoints} | changes
    )


def asked(name: str = "r", **changes: Any) -> dict[str, Any]:
    """Settings as a user of the service gives them."""
    plain = {"model": "m", "name": name, "endpoint": "sim", "data": "mini", "preflight": False}
    return plain | {"judge": {"model": "j", "endpoint": "judge"}} | changes


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what a page would poll
            await asyncio.sleep(0.01)


async def becomes(desk: Scheduler, run: str, *states: str) -> Job:
    await until(lambda: desk.job(run).state in states)
    return desk.job(run)


async def ends(desk: Scheduler, *runs: str) -> list[Job]:
    for run in runs:
        await until(lambda run=run: desk.job(run).state.ended)  # type: ignore[misc]
    return [desk.job(run) for run in runs]


def states(desk: Scheduler) -> dict[str, JobState]:
    return {job.run: job.state for job in reversed(desk.jobs())}
