"""kill -9 at any moment: what was acknowledged is in the file, and the file is whole."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from mmbu_async.store import Writer

if TYPE_CHECKING:
    from tests.conftest import StoreKit

ROWS = 30_000

WRITE = """
import asyncio, os, sys
from pathlib import Path
from mmbu_async.model import Attempt, Completion, Finish, Timing
from mmbu_async.store import CallRecord, Writer

run, session, first, last = map(int, sys.argv[2:])

def record(key):
    outcome = Completion(text=f"reply {key} " + "x" * 600, finish=Finish.STOP)
    attempt = Attempt(number=1, timing=Timing(started_at=1.0, total_s=1.0), outcome=outcome)
    return CallRecord(run_id=run, session_id=session, sample_key=key, attempt=attempt, final=True)

async def main():
    keys = iter(range(first, last))
    async with Writer.open(Path(sys.argv[1])) as writer:
        async def caller():
            for key in keys:
                await writer.write(record(key))
                os.write(1, b"%d\\n" % key)
        await asyncio.gather(*(caller() for _ in range(32)))

asyncio.run(main())
"""


@pytest.mark.parametrize("acknowledged_first", [1, 700, 2500])
async def test_every_acknowledged_row_survives(kit: StoreKit, acknowledged_first: int) -> None:
    """Killed in the middle of writing, again and again, each time after some acknowledgements."""
    store = kit.open()
    run, session = kit.begin(store, ROWS)
    acknowledged: set[int] = set()
    for _ in range(2):
        first = max(acknowledged, default=0) + 100
        arguments = [str(kit.path), str(run.id), str(session), str(first), str(ROWS)]
        with subprocess.Popen([sys.executable, "-c", WRITE, *arguments], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(acknowledged_first):
                acknowledged.add(int(process.stdout.readline()))
            process.send_signal(signal.SIGKILL)
            # Whole lines only: a line without its end is no acknowledgement.
            rest = process.stdout.read().rpartition(b"\n")[0]
            acknowledged.update(map(int, rest.split()))
        assert process.returncode == -signal.SIGKILL
    assert len(acknowledged) >= 2 * acknowledged_first
    assert len(acknowledged) < ROWS / 2, "it was not killed in the middle"
    with closing(sqlite3.connect(kit.path)) as connection:
        stored = dict(connection.execute("SELECT sample_id, text FROM call"))
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert acknowledged - stored.keys() == set()
    assert all(stored[key].startswith(f"reply {key} ") for key in stored)
    # And the next one goes on as if nothing had been.
    async with Writer.open(kit.path) as writer:
        assert await writer.write(kit.reply(run, session, ROWS))
    assert store.counts(run.id).completed == len(stored) + 1
