"""Whole runs on a Dask cluster: the results of one process, and nothing lost with a worker."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.errors import ClusterError
from mmbu_async.pipeline.cluster import afar, fleet, opening
from mmbu_async.simulator import Latency, Simulator
from tests.dask_kit import Cluster, cluster
from tests.endurance.invariants import bought_once, reading, sound
from tests.whole_run import KEY, MINI, ROWS, calls, complete, config, simulated, stored

pytestmark = pytest.mark.usefixtures("keys", "short_waits")

CONCURRENCY = 8
FACTS = """
SELECT row_id, text, image_scale, image_sha256, image_note, score.answer, how, score.status, correct, detail
FROM call JOIN sample ON sample.id = call.sample_id JOIN score ON score.sample_id = sample.id
WHERE ok AND call.judge_id IS NULL ORDER BY row_id
"""


def facts(store: Path) -> list[tuple[Any, ...]]:
    return stored(store, FACTS)


async def test_the_same_as_here_with_or_without_sight_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Real images, some of which are converted; a judge; keys that the workers do not have."""
    with cluster(tmp_path, 2, DASK_LOGGING__DISTRIBUTED="debug") as dask:
        async with simulated(latency=Latency.parse("0.05"), keys=frozenset({KEY})) as simulator:
            here, seeing, blind = (tmp_path / f"{name}.sqlite" for name in ("here", "seeing", "blind"))
            await api.evaluate(config(simulator, here, MINI))
            afar_: dict[str, Any] = {"dask_scheduler": dask.address, "concurrency": CONCURRENCY}
            await api.evaluate(config(simulator, seeing, MINI, **afar_))
            assert "images are sent" not in caplog.text
            seen = caplog.text.count("takes part")
            monkeypatch.setattr(afar, "_shared", lambda *anything: None)
            await api.evaluate(config(simulator, blind, MINI, **afar_))
            assert caplog.text.count("images are sent") == caplog.text.count("takes part") - seen > 0
        assert len(facts(here)) == 33
        assert facts(seeing) == facts(here)
        assert facts(blind) == facts(here)
        assert "dask" not in json.dumps(stored(seeing, "SELECT config FROM run"))
        _assert_the_key_is_nowhere(dask, caplog)


def _assert_the_key_is_nowhere(dask: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """Workers were sent it, and wrote down all that Dask can."""
    for name in ("scheduler", "worker0", "worker1"):
        assert "DEBUG" in dask.log(name)
        assert KEY not in dask.log(name)
    assert KEY not in caplog.text


async def test_workers_that_are_killed(tmp_path: Path, data: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One of two, then the other one too, then the run goes on here."""
    store = tmp_path / "store.sqlite"
    with cluster(tmp_path, 2) as dask:
        async with simulated(latency=Latency.parse("uniform:0.2,0.6")) as simulator:
            settings = config(
                simulator, store, data, dask_scheduler=dask.address, concurrency=CONCURRENCY, name="r"
            )
            working = asyncio.create_task(api.evaluate(settings, check=False))
            await _until(lambda: caplog.text.count("takes part") == 2 and _asked(simulator) >= 12, working)
            dask.kill("worker0")
            further = _asked(simulator) + 6
            await _until(lambda: _asked(simulator) >= further, working)
            dask.kill("worker1")
            result = await working
            assert isinstance(result.stopped, ClusterError)
            assert "everything so far is kept" in str(result.stopped)
            failures = stored(store, "SELECT kind, words, cost_usd FROM call WHERE NOT ok")
            assert {kind for kind, *_ in failures} == {"connection"}
            lost = [cost for _, words, cost in failures if "was lost in mid-call" in words]
            unsent = [cost for _, words, cost in failures if "no worker of the cluster is left" in words]
            assert len(lost) + len(unsent) == len(failures)
            assert 0 < len(lost) <= 2 * 2 * CONCURRENCY
            assert set(lost) == {None}, "what they cost is not known"
            assert set(unsent) <= {0.0}
            whole = await api.resume("r", store=store, changes={"preflight": False})
            await complete(whole, store)
            # What a worker took with it may have come to the endpoint; nothing else came there twice.
            assert len(await calls(simulator)) <= ROWS + len(lost)
    with reading(store) as connection:
        assert sound(connection) == []
        assert bought_once(connection) == []


async def test_jobs_of_a_batch_system(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No SLURM is at hand: two scripts stand in for it, which run the job that is submitted and end it."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, script in {"sbatch": SBATCH, "scancel": SCANCEL}.items():
        (commands / name).write_text(script)
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("HOME", str(tmp_path))
    store = tmp_path / "store.sqlite"
    options = {"interface": "lo", "walltime": "01:00:00", "local_directory": str(tmp_path)}
    async with simulated(latency=Latency.parse("0.02"), keys=frozenset({KEY})) as simulator:
        jobs: dict[str, Any] = {"dask_jobqueue": "slurm", "dask_workers": 1, "dask_options": options}
        await complete(await api.evaluate(config(simulator, store, data, **jobs)), store)
    assert "takes part" in caplog.text
    job = (commands / "job").read_text()
    assert "#SBATCH -t 01:00:00" in job
    assert KEY not in job
    assert (commands / "cancelled").read_text() == (commands / "submitted").read_text()


SBATCH = """#!/bin/bash
cd "$(dirname "$0")"
cp "$1" job
setsid bash job > log 2>&1 < /dev/null &
echo $! > submitted
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/bash
echo "$@" >> "$(dirname "$0")/cancelled"
kill -- -"$1"
"""


def _asked(simulator: Simulator) -> int:
    return len(simulator.log)


async def _until(condition: Any, working: asyncio.Task[Any]) -> None:
    while not condition():
        assert not working.done(), working
        await asyncio.sleep(0.02)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="mmbu_async")
    monkeypatch.setattr(opening, "PATIENCE_S", 0.5)
    monkeypatch.setattr(opening, "CONNECT_S", 0.5)
    monkeypatch.setattr(fleet, "LOOK_S", 0.1)
