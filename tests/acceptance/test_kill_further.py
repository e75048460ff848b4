"""Every further benchmark as a process, killed in the middle and resumed: each row exactly once."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.acceptance.program import kill, mmbu, simulator, start, wait_until
from tests.integration.test_further_benchmarks import LAYOUTS, ROWS, built


@pytest.mark.parametrize("number", range(len(LAYOUTS)), ids=list(LAYOUTS))
def test_killed_and_resumed(tmp_path: Path, number: int) -> None:
    benchmark = list(LAYOUTS)[number]
    # Each in one of the two formats: what differs between these is tested where it differs.
    endpoint = "anthropic" if number % 2 else "openai"
    built(tmp_path, LAYOUTS[benchmark])
    store = str(tmp_path / "s.sqlite")
    with simulator(tmp_path / "log.jsonl", "--latency", "0.1") as server:
        flags = ["--name", "r", "--model", "m", "--data", str(tmp_path / "data"), "--store", store]
        process = start("run", benchmark, *flags, "--concurrency", "1", *server.flags(endpoint))
        assert wait_until(lambda: len(server.requests()) >= 2, process)
        kill(process)
        done = mmbu("resume", "r", "--store", store)
        assert done.returncode == 0, done.stderr
        asked = len(server.requests())
    assert ROWS <= asked <= ROWS + 1, "at most the call in flight is repeated"
    with sqlite3.connect(store) as connection:
        kept = connection.execute(
            "SELECT count(*), count(DISTINCT sample_id) FROM call WHERE ok = 1"
        ).fetchone()
    assert kept == (ROWS, ROWS)
