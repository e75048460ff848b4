"""Power loss, as far as a process can test it.

Two halves of the promise. Under `full` every acknowledgement comes after the log was made durable, which the
system calls show. And whatever part of the log a power cut leaves, the store opens and holds a beginning of
what was written, which copies with torn logs show: under `normal` the last commits may be missing, and no
more than that.
"""

from __future__ import annotations

import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from mmbu_async.store import Store
from tests.conftest import StoreKit

REPOSITORY = Path(__file__).parents[2]
WRITES = 30
WRITER = """
import asyncio, os, sys
from contextlib import ExitStack
from pathlib import Path
from mmbu_async.store import Store, Writer
from tests.conftest import StoreKit

async def main(path, synchronous, writes):
    kit = StoreKit(path, ExitStack())
    with Store.open(path) as store:
        run = store.run("night")
        session = store.sessions(run.id)[0].id
    async with Writer.open(path, synchronous=synchronous) as writer:
        for key in range(1, writes + 1):
            await writer.write(kit.reply(run, session, key, text=f"reply {key} " + "x" * 900))
            os.write(1, b"ack %d\\n" % key)
        os.read(0, 1)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
"""


@pytest.fixture
def prepared(kit: StoreKit) -> Path:
    with Store.open(kit.path) as store:
        kit.begin(store, WRITES)
    return kit.path


def command(store: Path, synchronous: str) -> list[str]:
    return [sys.executable, "-c", WRITER, str(store), synchronous, str(WRITES)]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("synchronous", ["full", "normal"])
def test_acknowledged_is_after_durable(prepared: Path, tmp_path: Path, synchronous: str) -> None:
    trace = tmp_path / "trace"
    traced = ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync,pwrite64,write", "-o", str(trace)]
    done = subprocess.run(
        [*traced, *command(prepared, synchronous)],
        input=b"x",
        capture_output=True,
        cwd=REPOSITORY,
        check=False,
    )
    if b"ptrace" in done.stderr or b"Operation not permitted" in done.stderr:
        pytest.skip("this machine lets no process be traced")
    assert done.returncode == 0, done.stderr
    durable = [state for state in _at_acknowledgements(trace) if state]
    assert len(durable) == (WRITES if synchronous == "full" else 0)


def _at_acknowledgements(trace: Path) -> Iterator[bool]:
    """At each acknowledgement: whether all that was written to the log had been made durable by then."""
    written = False
    seen = False
    for line in trace.read_text("utf-8", "replace").split("\n"):
        if re.search(r"p?write(64)?\(.*store\.sqlite-wal", line):
            written, seen = True, True
        elif re.search(r"f(data)?sync\(.*store\.sqlite-wal", line):
            written = False
        elif "ack " in line and seen:
            yield not written


def test_whatever_is_left_of_the_log_is_a_beginning(prepared: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        command(prepared, "normal"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY
    ) as process:
        assert process.stdout is not None
        for number, line in zip(range(1, WRITES + 1), process.stdout, strict=False):
            assert line == b"ack %d\n" % number
        process.send_signal(signal.SIGKILL)
    log = prepared.with_name(f"{prepared.name}-wal")
    whole = log.read_bytes()
    assert len(whole) > WRITES * 1000
    random = Random(5)
    counts = {_open_copy(prepared, whole, tmp_path / "whole")}
    assert counts == {WRITES}, "a killed process loses nothing"
    for number in range(25):
        torn = bytearray(whole)
        cut = random.randrange(len(torn))
        # What was not made durable may be missing, be old, or be nonsense, in any order of blocks.
        if number % 3 == 0:
            del torn[cut:]
        elif number % 3 == 1:
            torn[cut : cut + 512] = bytes(len(torn[cut : cut + 512]))
        else:
            torn[cut : cut + 64] = random.randbytes(len(torn[cut : cut + 64]))
        counts.add(_open_copy(prepared, bytes(torn), tmp_path / f"torn-{number}"))
    assert len(counts) > 10, "the cuts were at different places"


def _open_copy(store: Path, log: bytes, folder: Path) -> int:
    """Open a copy as it would be after the power came back; how many calls it has: the first so many."""
    folder.mkdir()
    copy = folder / store.name
    shutil.copy(store, copy)
    copy.with_name(f"{copy.name}-wal").write_bytes(log)
    with Store.open(copy) as opened:
        replies = [row.completion for row in opened.rows(opened.run("night").id)]
    kept = [reply is not None for reply in replies]
    count = sum(kept)
    assert kept == [True] * count + [False] * (len(kept) - count)
    assert all(
        reply is None or reply.text.startswith(f"reply {number} ")
        for number, reply in enumerate(replies, start=1)
    )
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    return count
