"""The money cap as the endpoint sees it: what it charged, by the simulator's own log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.errors import BudgetReachedError
from mmbu_async.simulator import Simulator
from tests.whole_run import config, simulated

pytestmark = pytest.mark.usefixtures("keys", "short_waits")

CAP = 4.0
INPUT, OUTPUT = 1_000.0, 2_000.0
"""US dollars a million tokens: a row costs about a third of a dollar."""
PRICES: dict[str, Any] = {"input_price": INPUT, "output_price": OUTPUT}


async def charged(simulator: Simulator) -> float:
    await simulator.settled()
    billed = [record for record in simulator.log if record.charged]
    return sum(record.input_tokens * INPUT + record.output_tokens * OUTPUT for record in billed) / 1e6


@pytest.mark.parametrize("fault", ["cut_mid_body", "malformed_json", "no_usage"])
async def test_replies_that_were_lost_count_in_later_sessions_too(
    data: Path, store: Path, fault: str
) -> None:
    async with simulated(f"{fault}=0.5") as simulator:
        judge = {"max_tokens": 64, **PRICES}
        settings = config(simulator, store, data, max_tokens=64, max_cost=CAP, judge=judge, **PRICES)
        result = await api.evaluate(settings, check=False)
        for _ in range(3):
            assert isinstance(result.stopped, BudgetReachedError)
            result = await api.resume("r", store=store, check=False)
        assert CAP / 2 < await charged(simulator) <= CAP
        spent = result.report()
        assert spent.model_spend.cost_unknown > 0
