"""Real processes: killed at any moment, out of disk, two at once. What was acknowledged is in the file."""

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
from mmbu_async.errors import StoreFullError
from mmbu_async.store import CallRecord, Writer

run, session, first, last, limit = map(int, sys.argv[2:])

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

if limit:
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    asyncio.run(main())
except* StoreFullError as group:
    sys.exit(str(group.exceptions[0]))
"""


def write(
    kit: StoreKit, run: int, session: int, first: int, last: int, limit: int = 0
) -> subprocess.Popen[bytes]:
    """A process that writes rows and prints the key of each when it is acknowledged."""
    arguments = [str(kit.path), *map(str, (run, session, first, last, limit))]
    return subprocess.Popen(
        [sys.executable, "-c", WRITE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def stored_in(kit: StoreKit) -> dict[int, str]:
    """Texts of the stored replies by key, out of a file that SQLite finds whole."""
    with closing(sqlite3.connect(kit.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return dict(connection.execute("SELECT sample_id, text FROM call"))


@pytest.mark.parametrize("acknowledged_first", [1, 700, 2500])
async def test_every_acknowledged_row_survives(kit: StoreKit, acknowledged_first: int) -> None:
    """Killed in the middle of writing, again and again, each time after some acknowledgements."""
    store = kit.open()
    run, session = kit.begin(store, ROWS)
    acknowledged: set[int] = set()
    for _ in range(2):
        first = max(acknowledged, default=0) + 100
        with write(kit, run.id, session, first, ROWS) as process:
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
    stored = stored_in(kit)
    assert acknowledged - stored.keys() == set()
    assert all(stored[key].startswith(f"reply {key} ") for key in stored)
    # And the next one goes on as if nothing had been.
    async with Writer.open(kit.path) as writer:
        assert await writer.write(kit.reply(run, session, ROWS))
    assert store.counts(run.id).completed == len(stored) + 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file size")
def test_a_disk_that_fills_keeps_what_was_acknowledged(kit: StoreKit) -> None:
    """A real limit of the system, as a quota or a full disk sets one."""
    store = kit.open()
    run, session = kit.begin(store, ROWS)
    store.close()
    with write(kit, run.id, session, 1, ROWS, limit=kit.path.stat().st_size + 300_000) as process:
        out, words = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"store.sqlite: the disk is full or the file may not grow" in words
    assert b"Traceback" not in words
    acknowledged = set(map(int, out.split()))
    assert acknowledged
    assert acknowledged - stored_in(kit).keys() == set()
    # With space again, the store goes on.
    with write(kit, run.id, session, ROWS - 100, ROWS) as process:
        out, _ = process.communicate(timeout=60)
    assert len(out.split()) == 100


def test_two_processes_can_write_two_runs_at_once(kit: StoreKit) -> None:
    store = kit.open()
    one, session = kit.begin(store, 2000, name="one")
    two, other = kit.begin(store, 2000, name="two")
    with (
        write(kit, one.id, session, 1, 2001) as first,
        write(kit, two.id, other, 1, 2001) as second,
    ):
        for process in (first, second):
            out, words = process.communicate(timeout=60)
            assert (process.returncode, words) == (0, b"")
            assert sorted(map(int, out.split())) == list(range(1, 2001))
    assert [store.counts(run.id).completed for run in (one, two)] == [2000, 2000]
