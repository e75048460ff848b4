"""Worker processes of this machine: they listen to it alone, let Ctrl-C drain, and end with their run."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import psutil

from tests.acceptance.program import KEYS, MINI, Simulated, kill, mmbu, simulator, wait_until

ROWS = 33
CONCURRENCY = 6


def test_drained_then_killed_then_finished(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    with simulator(tmp_path / "log.jsonl", "--latency", "0.4") as server:
        first = _start("run", "mmbu-public", *_flags(server, store), "--dask-workers", "2")
        assert wait_until(lambda: len(server.requests()) >= 6, first)
        _assert_loopback_alone(psutil.Process(first.pid))
        # As a terminal does it: every process there is told.
        os.killpg(first.pid, signal.SIGINT)
        _, told = first.communicate(timeout=60)
        assert first.returncode == 130, told
        assert "mmbu resume r" in told
        drained = _count(store, "ok")
        assert drained >= 6
        assert _count(store, "NOT ok") == 0, "calls under way were finished"

        second = _start("resume", "r", "--store", str(store), "--dask-workers", "2")
        assert wait_until(lambda: _count(store, "ok") >= drained + 3, second)
        workers = psutil.Process(second.pid).children(recursive=True)
        assert workers
        kill(second)
        _, alive = psutil.wait_procs(workers, timeout=30)
        assert alive == [], "nobody stays behind"

        last = mmbu("resume", "r", "--store", str(store))
        assert last.returncode == 0, last.stderr
        asked = [one for one in server.requests() if one["role"] == "model"]
    assert ROWS <= len(asked) <= ROWS + CONCURRENCY, "only what was under way at the kill was asked again"
    with sqlite3.connect(store) as connection:
        replies = "SELECT count(*), count(DISTINCT sample_id) FROM call WHERE ok AND judge_id IS NULL"
        assert connection.execute(replies).fetchone() == (ROWS, ROWS)


def test_a_scheduler_that_does_not_answer(tmp_path: Path) -> None:
    """One sentence, an exit code of its own, and a run that can be gone on with."""
    store = tmp_path / "store.sqlite"
    flags = ["--name", "r", "--model", "m", "--data", str(MINI), "--store", str(store)]
    done = mmbu("run", "mmbu-public", *flags, "--dask-scheduler", "tcp://127.0.0.1:1")
    assert done.returncode == 8
    assert done.stderr.count("\n") == 1
    assert "no Dask scheduler can be used at tcp://127.0.0.1:1" in done.stderr


def _flags(server: Simulated, store: Path) -> list[str]:
    return [
        *("--name", "r", "--model", "m", "--data", str(MINI), "--store", str(store), "--no-preflight"),
        *("--concurrency", str(CONCURRENCY), "--judge-concurrency", str(CONCURRENCY)),
        *server.flags(),
    ]


def _start(*arguments: str) -> Any:
    """The program in a session of its own, as a terminal has it."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MMBU_")}
    return subprocess.Popen(
        [sys.executable, "-m", "mmbu_async", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**plain, **KEYS},
        start_new_session=True,
    )


def _assert_loopback_alone(program: psutil.Process) -> None:
    listening = [
        connection.laddr.ip
        for process in (program, *program.children(recursive=True))
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 3, "the scheduler and two workers at least"
    assert all(ip_address(ip).is_loopback for ip in listening), listening


def _count(store: Path, condition: str) -> int:
    if not store.exists():
        return 0
    with sqlite3.connect(store) as connection:
        found = connection.execute(f"SELECT count(*) FROM call WHERE {condition}").fetchone()  # noqa: S608
        return int(found[0])
