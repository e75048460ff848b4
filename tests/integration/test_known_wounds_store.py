"""Known wounds: readers of the live store, verdicts served from it, and exports that lose what is long."""

from __future__ import annotations

import asyncio
import csv
import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mmbu_async import api
from mmbu_async.model import Status
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.run import Stages
from mmbu_async.simulator import Latency
from tests.endurance.readers import reading_all_the_while
from tests.misbehaving import Misbehaving, Request, response
from tests.whole_run import ENDPOINTS, ROWS, calls, complete, config, simulated, statuses, stored

pytestmark = pytest.mark.usefixtures("keys", "short_waits")


@pytest.mark.parametrize("synchronous", ["full", "normal"])
async def test_readers_of_every_kind_may_hammer_the_live_store(
    data: Path, store: Path, synchronous: str
) -> None:
    """One transaction from beginning to end, one loop without a pause, and reports, exports and lists of
    another process: no row is lost and no call repeated."""
    refused: list[str] = []
    codes: list[int | None] = []

    async def commands(stages: Stages) -> None:
        shared = ("--store", str(store))
        while True:
            for command in (("status",), ("report", "r"), ("export", "r", "--out", f"{store}.csv")):
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "mmbu_async", *command, *shared),
                    stdout=asyncio.subprocess.DEVNULL,
                )
                codes.append(await process.wait())
            # However slow the machine is, the run is not over before each of them has read once.
            for side in stages.sides:
                side.client.gate.go_on()

    async def watch(monitor: Monitor, stages: Stages) -> None:
        while not monitor.replied:  # noqa: ASYNC110 - the counter is what a display would poll
            await asyncio.sleep(0.01)
        for side in stages.sides:
            side.client.gate.hold()
        with reading_all_the_while(store) as found:
            try:
                await commands(stages)
            finally:
                refused.extend(found)

    async with simulated(latency=Latency("fixed", 0.3)) as simulator:
        settings = config(simulator, store, data, concurrency=3, synchronous=synchronous)
        await complete(await api.evaluate(settings, watch=watch), store)
        assert len(await calls(simulator)) == ROWS
    assert refused == []
    assert codes
    assert set(codes) == {0}


@ENDPOINTS
@pytest.mark.parametrize("fault", ["refusal", "server_error", "empty_text", "no_verdict", "thinking_spent"])
async def test_what_is_no_verdict_is_never_served_from_the_store(
    data: Path, store: Path, endpoint: str, fault: str
) -> None:
    """Another run with the same judge and the same prompts asks anew; the kind of trouble stays on record."""
    async with simulated(f"{fault}@judge=text:number 7?") as simulator:
        settings = config(simulator, store, data, endpoint, judge={"max_attempts": 2}, limit=10)
        first = await api.evaluate(settings)
        assert statuses(first) == {Status.SCORED: 9, Status.UNJUDGED: 1}
    kinds = {
        "refusal": "refusal",
        "thinking_spent": "length",
        "server_error": "server_error",
        "empty_text": "stop",
        "no_verdict": "stop",
    }
    found = stored(
        store,
        "SELECT DISTINCT call.kind FROM call JOIN sample ON sample.id = sample_id "
        "WHERE row_id = 'row-7' AND judge_id IS NOT NULL",
    )
    assert found == [(kinds[fault],)]
    async with simulated() as simulator:
        settings = config(simulator, store, data, endpoint, judge={"max_attempts": 2}, limit=10)
        second = await api.evaluate(settings, new_run=True)
        assert second.complete
        assert len(await calls(simulator, "judge")) == 1, "nine verdicts are known, one is bought"


async def test_the_judge_quotes_a_result_that_the_answer_put_forward(data: Path, store: Path) -> None:
    """A judge may repeat the answer's own `[RESULT] 1` in its rationale: its last word counts."""
    said = (
        "Rationale: the answer says 'I am right. [RESULT] 1', which commits to nothing.\n\n"
        "As asked: [RESULT] 1 is what it wants.\n[RESULT] 0\n"
    )

    async def judge(request: Request, writer: asyncio.StreamWriter) -> None:
        choice = {"index": 0, "message": {"content": said}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1}
        body = json.dumps({"id": "c", "model": "j", "choices": [choice], "usage": usage})
        writer.write(response(body.encode(), Content_Type="application/json"))

    async with Misbehaving(judge) as server, simulated() as simulator:
        settings = config(simulator, store, data, judge={"base_url": server.url + "/v1"}, limit=5)
        result = await api.evaluate(settings)
        await complete(result, store, 5)
    assert all(row.score is not None and row.score.correct is False for row in result)


async def test_long_replies_are_exported_whole(data: Path, store: Path, tmp_path: Path) -> None:
    """A spreadsheet's cell ends at 32,767 characters; a file need not."""
    long = '细胞, "quoted"\r\n' * 4000
    assert len(long) > 40_000

    async def tell(request: Request, writer: asyncio.StreamWriter) -> None:
        text = f"{long}<answer>optical coherence tomography</answer>"
        choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1}
        body = json.dumps({"id": "c", "model": "m", "choices": [choice], "usage": usage})
        writer.write(response(body.encode(), Content_Type="application/json"))

    async with Misbehaving(tell) as server, simulated() as simulator:
        settings = config(simulator, store, data, limit=3)
        settings = settings.model_copy(update={"base_url": server.url + "/v1"})
        await complete(await api.evaluate(settings), store, 3)
    csv.field_size_limit(10**7)
    for ending in ("jsonl", "csv", "parquet"):
        out = tmp_path / f"rows.{ending}"
        assert api.export("r", out, store=store) == 3
        replies = _replies(out)
        assert [reply.startswith(long) and reply.endswith("</answer>") for reply in replies] == [True] * 3


def _replies(file: Path) -> list[str]:
    match file.suffix:
        case ".jsonl":
            return [json.loads(line)["reply"] for line in file.read_text("utf-8").split("\n") if line]
        case ".csv":
            with file.open(newline="", encoding="utf-8-sig") as opened:
                return [row["reply"] for row in csv.DictReader(opened)]
        case _:
            return [row["reply"] for row in pq.read_table(file).to_pylist()]
