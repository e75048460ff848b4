"""Whole runs beside a simulator: settings that point to it, its log, and what the store holds afterwards."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.api import RunResult
from mmbu_async.config import JudgeConfig, RunConfig
from mmbu_async.errors import MmbuError
from mmbu_async.model import Status
from mmbu_async.simulator import FaultRule, Record, Simulator, SimulatorConfig
from tests.simulated import BASES

MINI = Path(__file__).parent / "data" / "mini_mmbu"
ROWS = 40
ENDPOINTS = pytest.mark.parametrize("endpoint", ["openai", "anthropic"])
KEY = "sk-canary-0123456789"


def simulated(*rules: str, **options: Any) -> Simulator:
    return Simulator(SimulatorConfig(faults=tuple(map(FaultRule.parse, rules)), **options))


def config(
    simulator: Simulator, store: Path, data: Path, endpoint: str = "openai", **changes: Any
) -> RunConfig:
    address = {"endpoint": endpoint, "base_url": simulator.url + BASES[endpoint]}
    judge = JudgeConfig.model_validate(address | changes.pop("judge", {}))
    plain = {"model": "m", "name": "r", "data": str(data), "store": store, "judge": judge}
    return RunConfig.model_validate(address | plain | {"preflight": False} | changes)


def addresses(simulator: Simulator, endpoint: str = "openai", **changes: Any) -> dict[str, Any]:
    """A resume against another server: the host of a mirror may change."""
    url = simulator.url + BASES[endpoint]
    return {"base_url": url, "judge": {"base_url": url}, "preflight": False} | changes


async def calls(simulator: Simulator, role: str = "model") -> list[Record]:
    await simulator.settled()
    return [record for record in simulator.log if record.role == role]


def stored(store: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(store) as connection:
        return connection.execute(query).fetchall()


def replies(store: Path) -> Counter[int]:
    """Replies of the model under test by row."""
    rows = stored(store, "SELECT sample_id FROM call WHERE ok AND judge_id IS NULL")
    return Counter(row for (row,) in rows)


def statuses(result: RunResult) -> Counter[Status]:
    return Counter(row.status for row in result)


async def complete(result: RunResult, store: Path, rows: int = ROWS) -> None:
    """Every row exactly once, scored."""
    assert result.complete
    assert result.exit_code == 0
    assert statuses(result) == {Status.SCORED: rows}
    found = replies(store)
    assert len(found) == rows
    assert set(found.values()) == {1}


async def stops(settings: RunConfig, error: type[MmbuError], code: int) -> MmbuError:
    with pytest.raises(error) as caught:
        await api.evaluate(settings)
    assert caught.value.exit_code == code
    text = str(caught.value)
    assert "\n" not in text
    assert KEY not in text
    return caught.value
