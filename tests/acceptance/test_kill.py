"""SIGKILL at many random moments: every row exactly once, nothing lost, nearly nothing asked twice."""

from __future__ import annotations

import itertools
import random
import shutil
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.simulator.demo import draw_split
from tests.acceptance.program import MINI, Simulated, kill, mmbu, simulator, start, wait_until

CONCURRENCY = 6
KILLS = 6
ROWS = 72
ON_THE_WIRE_S = 0.5
"""A request that was sent before a kill can be read by the simulator a little after it."""
SETTLED_S = 1.0
"""A reply that came this long before a kill must be on disk: a commit takes milliseconds."""


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_split(tmp_path_factory.mktemp("split"), rows=ROWS, seed=3)


@pytest.mark.parametrize("endpoint", ["openai", "anthropic"])
def test_killed_many_times(tmp_path: Path, split: Path, endpoint: str) -> None:
    undisturbed = _run_undisturbed(tmp_path, split, endpoint)
    draw = random.Random(f"kill {endpoint}")
    store = tmp_path / "killed.sqlite"
    moments: list[float] = []
    with simulator(tmp_path / "killed.jsonl", "--latency", "uniform:0.02,0.2", "--seed", "5") as server:
        arguments = ["run", "mmbu-public", *_flags(server, split, store, endpoint)]
        while len(moments) < KILLS:
            process = start(*arguments)
            wanted = len(server.requests()) + draw.randint(1, 2 * ROWS // KILLS)
            if not wait_until(lambda n=wanted: len(server.requests()) >= n, process):
                process.communicate()
                break
            moments.append(kill(process))
            arguments = ["resume", "r", "--store", str(store)]
        assert len(moments) >= KILLS // 2, "the run must be long enough to be killed often"
        last = mmbu("resume", "r", "--store", str(store))
        assert last.returncode == 0, last.stderr
        requests = server.requests()

    assert _scores(store) == undisturbed
    _assert_each_row_once(store, ROWS)
    _assert_few_repeats(requests, moments)


def test_killed_on_real_images(tmp_path: Path) -> None:
    """The main job on the mini split, in both forms of its table, with a kill in the middle."""
    found = {}
    for table in ("metadata.jsonl", "metadata.tsv"):
        data = tmp_path / table
        data.mkdir()
        (data / table).write_bytes((MINI / table).read_bytes())
        shutil.copytree(MINI / "images", data / "images")
        store = tmp_path / f"{table}.sqlite"
        with simulator(tmp_path / f"{table}.log", "--latency", "0.05") as server:
            process = start("run", "mmbu-public", *_flags(server, data, store, "openai"))
            assert wait_until(lambda server=server: len(server.requests()) >= 10, process)
            kill(process)
            last = mmbu("resume", "r", "--store", str(store))
            assert last.returncode == 0, last.stderr
        _assert_each_row_once(store, 33)
        found[table] = _scores(store)
    assert found["metadata.jsonl"] == found["metadata.tsv"]


def _flags(server: Simulated, data: Path, store: Path, endpoint: str) -> list[str]:
    return [
        *("--name", "r", "--model", "m", "--data", str(data), "--store", str(store)),
        *("--concurrency", str(CONCURRENCY), "--judge-concurrency", str(CONCURRENCY)),
        *server.flags(endpoint),
    ]


def _run_undisturbed(tmp_path: Path, split: Path, endpoint: str) -> list[tuple[Any, ...]]:
    store = tmp_path / "undisturbed.sqlite"
    with simulator(tmp_path / "undisturbed.jsonl", "--seed", "5") as server:
        done = mmbu("run", "mmbu-public", *_flags(server, split, store, endpoint))
    assert done.returncode == 0, done.stderr
    return _scores(store)


def _scores(store: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(store) as connection:
        return connection.execute(
            "SELECT row_id, score.answer, how, status, correct, tp, fp, fn, detail "
            "FROM score JOIN sample ON sample.id = sample_id ORDER BY row_id"
        ).fetchall()


def _assert_each_row_once(store: Path, rows: int) -> None:
    with sqlite3.connect(store) as connection:
        replies = connection.execute(
            "SELECT count(*), count(DISTINCT sample_id) FROM call WHERE ok = 1 AND judge_id IS NULL"
        ).fetchone()
        assert replies == (rows, rows)
        assert connection.execute("SELECT count(*) FROM selection").fetchone() == (rows,)
        assert connection.execute("SELECT count(*) FROM score WHERE status = 'scored'").fetchone() == (rows,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def _assert_few_repeats(requests: list[dict[str, Any]], moments: list[float]) -> None:
    """Counted in the simulator's log: repeated are at most the calls that a kill found in flight."""
    by_content: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for request in requests:
        by_content[request["role"], request["content"]].append(request)
    repeats = 0
    for asked in by_content.values():
        asked.sort(key=lambda request: request["arrived_at"])
        for before, after in itertools.pairwise(asked):
            repeats += 1
            sent = before["arrived_at"] - ON_THE_WIRE_S
            killed = [m for m in moments if sent <= m <= after["arrived_at"]]
            assert killed, f"asked again although nothing was killed between: {moments} {before} {after}"
            late = killed[0] - before["ended_at"]
            assert late < SETTLED_S, f"a reply was lost {late:.2f} s after it came: {before}"
    assert repeats <= len(moments) * 2 * CONCURRENCY
