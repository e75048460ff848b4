"""The preflight stops a run that cannot work, and no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmbu_async import api
from mmbu_async.errors import EndpointDownError
from mmbu_async.model import FailureKind, Status
from mmbu_async.pipeline import preflight
from tests.whole_run import ROWS, addresses, config, simulated, statuses, stops

pytestmark = pytest.mark.usefixtures("keys", "short_waits")

REFUSED = 4


async def test_a_resume_is_not_held_up_by_rows_that_were_refused_before(data: Path, store: Path) -> None:
    rules = (f"content_policy@model=text:number {number}?" for number in range(REFUSED))
    async with simulated(*rules) as simulator:
        first = await api.evaluate(config(simulator, store, data, limit=REFUSED + 2))
        assert statuses(first) == {Status.FAILED: REFUSED, Status.SCORED: 2}
        changes = addresses(simulator, preflight=True, limit=ROWS)
        second = await api.resume("r", store=store, changes=changes)
        assert statuses(second) == {Status.FAILED: REFUSED, Status.SCORED: ROWS - REFUSED}


async def test_broken_images_say_nothing_of_the_endpoint(data: Path, store: Path) -> None:
    (data / "images" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nno more than this")
    file = data / "metadata.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows[:REFUSED]:
        row["file_name"] = "images/broken.png"
    file.write_text("\n".join(map(json.dumps, rows)))
    async with simulated() as simulator:
        result = await api.evaluate(config(simulator, store, data, preflight=True))
        assert statuses(result) == {Status.FAILED: REFUSED, Status.SCORED: ROWS - REFUSED}
        assert {row.failure.kind for row in result if row.failure is not None} == {FailureKind.IMAGE}


async def test_a_new_run_that_is_refused_row_after_row_is_not_begun(data: Path, store: Path) -> None:
    async with simulated("bad_request@model=1.0") as simulator:
        error = await stops(config(simulator, store, data, preflight=True), EndpointDownError, 5)
        (words,) = {row.failure.message for row in api.rows("r", store=store) if row.failure is not None}
        assert f"the model did not answer the first 3 rows ({words})" in str(error)


PANEL = ("first", "second", "third")


@pytest.mark.parametrize("side", ["model", "judge"])
async def test_an_endpoint_that_never_answers_costs_one_attempt_each(
    data: Path, store: Path, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default 300 s: not six attempts of that for each of three rows, one judge after the other."""
    monkeypatch.setattr(preflight, "PATIENCE_S", 0.2)
    async with simulated(f"timeout@{side}=1.0") as simulator:
        url = simulator.url + "/v1"
        judges = [
            {"name": name, "model": name, "endpoint": "openai", "base_url": url, "idle_timeout": 0.4}
            for name in PANEL
        ]
        settings = config(
            simulator, store, data, preflight=True, idle_timeout=0.4, judge=judges[0], panel=judges[1:]
        )
        error = await stops(settings, EndpointDownError, 5)
        await simulator.settled()
        if side == "model":
            assert "the model did not answer the first row (no byte for 0.4 s)" in str(error)
            assert len(simulator.log) == 1
        else:
            assert f"the judge {', '.join(PANEL)} gave no verdict on the first row" in str(error)
            assert len(simulator.log) == 4
            arrived = [record.arrived_at for record in simulator.log if record.role == "judge"]
            assert max(arrived) - min(arrived) < 0.4, "side by side"
