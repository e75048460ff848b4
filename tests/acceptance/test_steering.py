"""Other limits, pause and continue from another terminal, counted in the log of the simulator."""

from __future__ import annotations

import itertools
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.simulator.demo import draw_split
from tests.acceptance.program import Simulated, kill, mmbu, simulator, start, wait_until

ROWS = 120


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_split(tmp_path_factory.mktemp("split"), rows=ROWS, seed=3)


def begin(server: Simulated, data: Path, store: Path, *more: str) -> Any:
    return start(
        *("run", "mmbu-public", "--name", "r", "--model", "m", "--data", str(data), "--store", str(store)),
        *("--concurrency", "8", "--judge-concurrency", "8", *more),
        *server.flags(),
    )


def tell(store: Path, *command: str) -> str:
    """A command from another terminal, done."""
    done = mmbu(*command, "--store", str(store))
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(server: Simulated, since: float = 0.0) -> list[float]:
    """When the model was asked, in order."""
    found = [one["arrived_at"] for one in server.requests() if one["role"] == "model"]
    return sorted(moment for moment in found if moment > since)


def lease_beat(store: Path) -> float:
    with closing(sqlite3.connect(store)) as connection:
        (beat,) = connection.execute("SELECT lease_beat FROM run").fetchone()
    return float(beat or 0.0)


def assert_whole(server: Simulated, store: Path, rows: int = ROWS) -> None:
    """Every row once, and nothing was asked twice."""
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute(
            "SELECT count(*), count(DISTINCT sample_id) FROM call WHERE ok = 1 AND judge_id IS NULL"
        ).fetchone() == (rows, rows)
        assert connection.execute("SELECT count(*) FROM score WHERE status = 'scored'").fetchone() == (rows,)
    contents = Counter((one["role"], one["content"]) for one in server.requests())
    assert set(contents.values()) == {1}


def test_a_run_is_steered_from_another_terminal(tmp_path: Path, split: Path) -> None:
    store = tmp_path / "s.sqlite"
    with simulator(tmp_path / "log.jsonl", "--latency", "0.02") as server:
        process = begin(server, split, store, "--rpm", "60")
        assert wait_until(lambda: len(asked(server)) >= 4, process)

        faster = tell(store, "limit", "r", "--rpm", "1200")
        told = time.time()
        assert "model: at most 8 calls at once, 1,200 requests a minute, any number of tokens\n" in faster
        assert faster.endswith(f"in force (process {process.pid} on {_host(store)})\n")
        assert wait_until(lambda: len(asked(server, told)) >= 20, process)
        took = asked(server, told)[19] - told
        assert took < 10, "at the rate before it would have been 20 s"

        tell(store, "limit", "r", "--rpm", "60")
        told = time.time()
        assert wait_until(lambda: len(asked(server, told)) >= 3, process)
        gaps = [after - before for before, after in itertools.pairwise(asked(server, told)[:3])]
        assert min(gaps) > 0.8, gaps

        assert tell(store, "pause", "r").startswith("paused: calls under way finish and are kept (process")
        told = time.time()
        # Whatever could go out now would go out at once.
        tell(store, "limit", "r", "--rpm", "none", "--judge-rpm", "none")
        assert "paused: no call is started (process" in tell(store, "status", "r")
        assert tell(store, "status").rstrip().endswith("paused")
        assert wait_until(lambda: lease_beat(store) > told, process), "the run stays held"
        assert asked(server, told) == []
        assert len(asked(server)) < ROWS

        assert tell(store, "continue", "r").startswith("going on (process")
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert "Report" in out or "run" in out
        assert_whole(server, store)

    kept = tell(store, "limit", "r")
    assert kept.startswith("model: at most 8 calls at once, any number of requests, any number of tokens\n")
    for command, words in (("pause", "there is nothing to pause"), ("continue", "nothing that could go on")):
        refused = mmbu(command, "r", "--store", str(store))
        assert refused.returncode == 2
        assert f"no process is at work on run 'r', so {'' if command == 'pause' else 'there is '}{words}" in (
            refused.stderr
        )


def _host(store: Path) -> str:
    with closing(sqlite3.connect(store)) as connection:
        (host,) = connection.execute("SELECT host FROM session").fetchone()
    return str(host)


def test_killed_while_paused_a_resume_goes_on(tmp_path: Path, split: Path) -> None:
    store = tmp_path / "s.sqlite"
    with simulator(tmp_path / "log.jsonl") as server:
        process = begin(server, split, store, "--rpm", "240")
        assert wait_until(lambda: len(asked(server)) >= 6, process)
        tell(store, "pause", "r")
        kill(process)
        before = len(asked(server))
        # The pause was of the process that is gone; its limits are the run's.
        assert "no process is at work on the run" in tell(store, "limit", "r", "--rpm", "6000")
        resumed = mmbu("resume", "r", "--store", str(store))
        assert resumed.returncode == 0, resumed.stderr
        assert len(asked(server)) == ROWS
        assert before < ROWS
        assert_whole(server, store)


def test_a_paused_run_can_be_ended(tmp_path: Path, split: Path) -> None:
    store = tmp_path / "s.sqlite"
    with simulator(tmp_path / "log.jsonl") as server:
        process = begin(server, split, store, "--rpm", "240")
        assert wait_until(lambda: len(asked(server)) >= 6, process)
        tell(store, "pause", "r")
        before = len(asked(server))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "`mmbu resume r` continues" in errors
        assert len(asked(server)) == before


def test_limits_of_a_run_that_rests_hold_for_its_next_session(tmp_path: Path, split: Path) -> None:
    store = tmp_path / "s.sqlite"
    with simulator(tmp_path / "log.jsonl") as server:
        first = begin(server, split, store, "--limit", "3")
        assert first.communicate(timeout=60) and first.returncode == 0
        tell(store, "limit", "r", "--rpm", "90", "--concurrency", "2", "--judge-rpm", "80")
        before = time.time()
        more = mmbu("resume", "r", "--store", str(store), "--limit", "8")
        assert more.returncode == 0, more.stderr
        moments = asked(server, before)
        assert len(moments) == 5
        assert min(after - earlier for earlier, after in itertools.pairwise(moments)) > 0.55
        judged = sorted(
            one["arrived_at"]
            for one in server.requests()
            if one["role"] == "judge" and one["arrived_at"] > before
        )
        assert all(after - earlier > 0.6 for earlier, after in itertools.pairwise(judged))
