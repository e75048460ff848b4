"""Two runs of the service on one key: together under its limit, fair to each other, and home after a kill."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from mmbu_async.service.jobs import JobState
from mmbu_async.service.scheduler import Scheduler
from mmbu_async.simulator import Latency
from tests.endurance import invariants
from tests.scheduler_kit import PATIENCE_S, asked, ends, service_config, until
from tests.whole_run import KEY, MINI, ROWS, simulated, stored

pytestmark = pytest.mark.usefixtures("keys")

REPOSITORY = Path(__file__).parents[2]
MANY = 240


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Rows that need no judge: lesions to be marked, which differ in a number in their question."""
    folder = tmp_path / "many"
    (folder / "images").mkdir(parents=True)
    source = next(
        row
        for row in map(json.loads, (MINI / "metadata.jsonl").read_text().splitlines())
        if row["unique_id"] == "mini-class-retina"
    )
    (folder / "images" / "retina.jpg").write_bytes((MINI / "images" / "retina.jpg").read_bytes())
    lines = [
        source | {"unique_id": f"row-{n}", "question": f"Which imaging technique made picture number {n}?"}
        for n in range(MANY)
    ]
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


async def test_two_runs_stay_under_the_limit_of_their_key_and_get_on_alike(many: Path, store: Path) -> None:
    rpm = 9_000.0
    # The judge is another endpoint: its calls are not what is limited.
    limited = simulated(rpm=rpm, limit_burst_s=0.5, latency=Latency("fixed", 0.05), vision=False)
    async with limited as simulator, simulated() as judging:
        config = service_config(simulator, store, many, limits={"rpm": rpm})
        model, _ = config.endpoint
        _, judge = service_config(judging, store, many).endpoint
        config = config.model_copy(update={"endpoint": (model, judge)})
        async with Scheduler(config, look_s=0.05) as desk:
            for run in ("one", "two"):
                await desk.submit(asked(run, model=run, concurrency=40))
            assert {job.state for job in await ends(desk, "one", "two")} == {JobState.DONE}
        await simulator.settled()
        refused = sum(record.status == 429 for record in simulator.log)
        assert len(simulator.log) - refused == 2 * MANY
        assert refused <= 0.005 * len(simulator.log)
        one, two = ([record for record in simulator.log if record.model == run] for run in ("one", "two"))
        # While both were at work.
        began, ended = two[0].arrived_at, one[-1].arrived_at
        beside = [sum(began <= record.arrived_at <= ended for record in run) for run in (one, two)]
        assert min(beside) >= 0.8 * max(beside) - 5


async def test_a_429_of_one_run_holds_back_the_other(many: Path, store: Path) -> None:
    async with simulated("rate_limit@model=requests:20-40", retry_after_s=2.0) as simulator:
        async with Scheduler(service_config(simulator, store, many), look_s=0.05) as desk:
            for run in ("one", "two"):
                await desk.submit(asked(run, concurrency=8, rpm=6000))
            assert {job.state for job in await ends(desk, "one", "two")} == {JobState.DONE}
        await simulator.settled()
        times = sorted(record.arrived_at for record in simulator.log if record.role == "model")
        gaps = [later - earlier for earlier, later in pairwise(times)]
        # All calls on the key stood still for what it asked, not only those of the run that was told.
        assert max(gaps) >= 1.0
        (line,) = [one for one in desk._turns._shared._lines.values() if one.concurrency.state.episode]
        assert line.concurrency.state.in_flight == 0


@asynccontextmanager
async def process(settings: Path, *runs: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Killed at the end, if it lives."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.service_process",
        str(settings),
        *runs,
        cwd=REPOSITORY,
        env={**os.environ, "OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def test_both_runs_finish_after_the_service_was_killed_and_started_again(
    data: Path, store: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.json"
    async with simulated(latency=Latency("fixed", 0.1)) as simulator:
        service = service_config(simulator, store, data).model_dump(mode="json")
        run = asked(concurrency=4)
        settings.write_text(json.dumps({"service": service, "run": run}))
        for calls in (20, 60):
            async with process(settings, "one", "two") as killed:
                await until(lambda calls=calls: len(simulator.log) >= calls or killed.returncode is not None)  # type: ignore[misc]
                assert killed.returncode is None
                killed.send_signal(signal.SIGKILL)
                await killed.wait()
            with invariants.reading(store) as connection:
                assert invariants.sound(connection) == []
        async with process(settings, "one", "two") as last:
            out, told = await asyncio.wait_for(last.communicate(), PATIENCE_S)
        assert last.returncode == 0, told.decode()
        assert json.loads(out) == {"one": ["done", ""], "two": ["done", ""]}
    _check_store(store)
    paid = Counter(record.path for record in simulator.log if record.status == 200)
    assert paid["/v1/chat/completions"] >= 2 * ROWS


def _check_store(store: Path) -> None:
    with invariants.reading(store) as connection:
        assert invariants.sound(connection) == []
        assert invariants.bought_once(connection) == []
        for query in (
            "SELECT count(*), count(DISTINCT sample_id) FROM selection GROUP BY run_id",
            "SELECT count(*), count(DISTINCT sample_id) FROM call WHERE ok = 1 AND judge_id IS NULL "
            "GROUP BY run_id",
            "SELECT count(*), count(DISTINCT sample_id) FROM score WHERE status = 'scored' GROUP BY run_id",
        ):
            assert connection.execute(query).fetchall() == [(ROWS, ROWS)] * 2
    ends = Counter(ended for (ended,) in stored(store, "SELECT ended FROM session"))
    assert ends["done"] == 2
    assert ends["died"] >= 2
    assert set(ends) == {"done", "died"}
    assert not stored(store, "SELECT 1 FROM run WHERE lease_pid IS NOT NULL")
