"""Batches as their user meets them: a run that is left while they are out, and what the commands say."""

from __future__ import annotations

import signal
from contextlib import closing, suppress
from pathlib import Path
from sqlite3 import Error, connect

from tests.acceptance.program import MINI, mmbu, simulator, start, wait_until


def out(store: Path) -> int:
    with suppress(Error), closing(connect(store)) as connection:
        found = connection.execute("SELECT count(*) FROM batch WHERE state = 'submitted'").fetchone()
        return int(found[0])
    return 0


def test_a_run_is_left_while_its_batches_are_out(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    of = ("r", "--store", str(store))
    with simulator(tmp_path / "log", "--batch-latency", "60") as endpoint:
        process = start(
            *("run", "--data", str(MINI), "--model", "m", "--name", "r", "--store", str(store)),
            *("--batch", "--batch-poll", "0.3", *endpoint.flags()),
        )
        assert wait_until(lambda: out(store) == 1, process)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "model: 1 batch stays with the provider" in told
        assert "1 out (" in mmbu("status", *of).stdout
        assert mmbu("batches", *of, "--cancel").returncode == 3
        assert out(store) == 0
        done = mmbu("resume", *of, "--no-batch")
        assert done.returncode == 0, done.stderr
        models = [record for record in endpoint.requests() if record["role"] == "model"]
        charged = [record["content"] for record in models if record["charged"]]
        assert len(charged) == len(set(charged))
