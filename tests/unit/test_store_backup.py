"""Copies of a store: of one moment, whole or not there, never over another file unasked."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from mmbu_async.errors import StoreError, StoreFullError, StoreLockedError
from mmbu_async.model import Usage
from mmbu_async.store import Store, Writer, backup
from mmbu_async.store.backup import whole_store
from tests.conftest import StoreKit

OLD = sorted((Path(__file__).parents[1] / "migration").glob("store_v*.sql"))


@contextmanager
def writing(path: Path) -> Iterator[list[int]]:
    """Another connection that commits row after row in one table and its twin, as fast as it can."""
    committed: list[int] = []
    done = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
            number = 0
            while not done.is_set():
                number += 1
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO first VALUES (?, zeroblob(20000))", (number,))
                connection.execute("INSERT INTO second VALUES (?)", (number,))
                connection.execute("COMMIT")
                committed.append(number)

    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE first (n, padding); CREATE TABLE second (n);")
    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield committed
    finally:
        done.set()
        thread.join()


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_a_copy_of_a_store_that_is_written_is_of_one_moment(
    kit: StoreKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In steps of a page the copy takes long, and the writer must not notice."""
    monkeypatch.setattr(backup, "PAGES_A_STEP", 1)
    store = kit.open()
    kit.begin(store, 200)
    steps: list[tuple[int, int]] = []
    with writing(kit.path) as committed:

        def progress(done: int, of: int) -> None:
            steps.append((done, of))
            before = len(committed)
            while len(committed) == before:
                assert not deadline.wait(0.001), "the writer waits for the copy"

        deadline = threading.Event()
        timer = threading.Timer(30, deadline.set)
        timer.start()
        at_start = len(committed)
        copied = backup.backup(kit.path, tmp_path / "copy.sqlite", progress=progress)
        timer.cancel()
        at_end = len(committed)
    assert at_end >= at_start + len(steps), "commits go on beside the copy"
    of = steps[0][1]
    assert steps == [(done, of) for done in range(1, of + 1)], "and it never begins anew"
    assert of > 10
    found = rows(tmp_path / "copy.sqlite", "SELECT n FROM first ORDER BY n")
    assert found == rows(tmp_path / "copy.sqlite", "SELECT n FROM second ORDER BY n")
    assert found == [(n,) for n in range(1, len(found) + 1)], "every commit up to a moment, none after it"
    assert at_start <= len(found) < at_end
    assert (copied.runs, copied.size) == (1, (tmp_path / "copy.sqlite").stat().st_size)


async def test_a_copy_holds_what_was_acknowledged_and_is_one_file(kit: StoreKit, tmp_path: Path) -> None:
    store = kit.open()
    run, session = kit.begin(store, 5)
    async with Writer.open(kit.path) as writer:
        await writer.write(kit.reply(run, session, 1, usage=Usage(input_tokens=7)))
        backup.backup(kit.path, tmp_path / "copy.sqlite")
    assert _beside(tmp_path / "copy.sqlite") == ["copy.sqlite"]
    with Store.open(tmp_path / "copy.sqlite", read_only=True) as copy:
        assert copy.counts(copy.run("night").id) == store.counts(run.id)
        assert copy.totals(run.id).infer.input_tokens == 7
    with Store.open(tmp_path / "copy.sqlite") as copy:
        kit.session(copy, copy.run("night"), now=9.0)


def _beside(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.glob(f"{path.name}*"))


@pytest.mark.parametrize("old", OLD, ids=lambda file: file.stem)
def test_a_copy_of_an_older_store_is_as_old(tmp_path: Path, old: Path) -> None:
    """A copy is what one makes before an update."""
    store = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(store)) as connection:
        connection.executescript(old.read_text(encoding="utf-8"))
    before = store.read_bytes()
    backup.backup(store, tmp_path / "copy.sqlite")
    assert store.read_bytes() == before
    version = rows(store, "PRAGMA user_version")
    assert rows(tmp_path / "copy.sqlite", "PRAGMA user_version") == version
    with Store.open(tmp_path / "copy.sqlite") as copy:
        assert copy.run("night").model == "test-vlm"


def test_nothing_is_overwritten_unless_asked(kit: StoreKit, tmp_path: Path) -> None:
    kit.begin(kit.open(), 3)
    out = tmp_path / "copy.sqlite"
    out.write_bytes(b"mine")
    with pytest.raises(StoreError, match="is there already; name another file, or replace it with --force"):
        backup.backup(kit.path, out)
    assert out.read_bytes() == b"mine"
    assert backup.backup(kit.path, out, force=True).runs == 1
    assert rows(out, "SELECT name FROM run") == [("night",)]
    assert [path.name for path in tmp_path.iterdir() if ".part" in path.name] == []


def test_a_file_that_somebody_makes_meanwhile_stays(kit: StoreKit, tmp_path: Path) -> None:
    kit.begin(kit.open(), 3)
    out = tmp_path / "copy.sqlite"

    def progress(done: int, of: int) -> None:
        out.write_bytes(b"theirs")

    with pytest.raises(StoreError, match="is there already"):
        backup.backup(kit.path, out, progress=progress)
    assert out.read_bytes() == b"theirs"
    assert [path.name for path in tmp_path.iterdir() if ".part" in path.name] == []


def test_a_copy_never_takes_the_place_of_a_store_in_use(kit: StoreKit, tmp_path: Path) -> None:
    """Its write-ahead log would be taken for the copy's, and spoil it."""
    kit.begin(kit.open(), 3)
    with Store.open(tmp_path / "other.sqlite") as other:
        other.judge("j", {"model": "j"}, now=1.0)
        with pytest.raises(StoreLockedError, match=r"other\.sqlite-wal lies beside it"):
            backup.backup(kit.path, tmp_path / "other.sqlite", force=True)
    assert backup.backup(kit.path, tmp_path / "other.sqlite", force=True).runs == 1


def test_the_store_itself_is_no_place_for_its_copy(kit: StoreKit, tmp_path: Path) -> None:
    kit.open().close()
    link = tmp_path / "link.sqlite"
    link.symlink_to(kit.path)
    for out in (kit.path, link):
        with pytest.raises(StoreError, match="is the store itself; name another file"):
            backup.backup(kit.path, out, force=True)


def test_places_that_are_none_are_said_in_a_sentence(kit: StoreKit, tmp_path: Path) -> None:
    kit.open().close()
    for out, words in (
        (tmp_path, "is a folder; name a file"),
        (tmp_path / "no" / "copy.sqlite", "the folder .* does not exist; make it first"),
    ):
        with pytest.raises(StoreError, match=words):
            backup.backup(kit.path, out)
    with pytest.raises(StoreError, match="there is no store"):
        backup.backup(tmp_path / "none.sqlite", tmp_path / "copy.sqlite")
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(StoreError, match="is an empty file, not a store"):
        backup.backup(tmp_path / "empty.sqlite", tmp_path / "copy.sqlite")
    (tmp_path / "text.sqlite").write_text("no store at all " * 100)
    with pytest.raises(StoreError, match="is not a store but some other file"):
        backup.backup(tmp_path / "text.sqlite", tmp_path / "copy.sqlite")
    assert not (tmp_path / "copy.sqlite").exists()


def test_a_damaged_store_gives_no_copy(kit: StoreKit, tmp_path: Path) -> None:
    kit.begin(kit.open(), 500)
    with closing(sqlite3.connect(kit.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'sample'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    kit.open().close()
    with kit.path.open("r+b") as file:
        file.seek((root - 1) * size + 3)
        file.write(b"\xff\xff")
    with pytest.raises(StoreError, match="damaged"):
        backup.backup(kit.path, tmp_path / "copy.sqlite")
    assert sorted(tmp_path.glob("copy*")) == sorted(tmp_path.glob(".copy*")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_who_may_read_the_store_may_read_its_copy_and_nobody_else(kit: StoreKit, tmp_path: Path) -> None:
    kit.open().close()
    for mode in (0o600, 0o640):
        kit.path.chmod(mode)
        backup.backup(kit.path, tmp_path / "copy.sqlite", force=True)
        assert stat.S_IMODE((tmp_path / "copy.sqlite").stat().st_mode) == mode


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
def test_a_full_disk_is_said_in_a_sentence_and_leaves_nothing(kit: StoreKit, tmp_path: Path) -> None:
    kit.open().close()
    with (
        pytest.raises(StoreFullError, match=r"copy\.sqlite: the disk is full"),
        whole_store(tmp_path / "copy.sqlite", like=kit.path, force=False),
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        full.write(b"x")
    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == []


def test_without_hard_links_a_copy_is_renamed(
    kit: StoreKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*names: object) -> None:
        raise PermissionError("no hard links here")

    kit.begin(kit.open(), 3)
    monkeypatch.setattr(os, "link", refuse)
    assert backup.backup(kit.path, tmp_path / "copy.sqlite").runs == 1
    with pytest.raises(StoreError, match="is there already"):
        backup.backup(kit.path, tmp_path / "copy.sqlite")


KILLED = """
import os, signal, sys
from pathlib import Path
from mmbu_async.store import backup

def stop(done, pages):
    os.kill(os.getpid(), signal.SIGKILL)

backup.backup(Path(sys.argv[1]), Path(sys.argv[2]), progress=stop)
"""


def test_what_a_killed_copy_left_goes_with_the_next_one(kit: StoreKit, tmp_path: Path) -> None:
    out = tmp_path / "copy[1].sqlite"
    others = tmp_path / ".copy2.sqlite.abc.part"
    others.touch()
    kit.begin(kit.open(), 3)
    done = subprocess.run([sys.executable, "-c", KILLED, str(kit.path), str(out)], check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.glob(".copy[[]1].sqlite.*.part")
    with backup.whole_store(out, like=kit.path, force=False) as under_way:
        assert not left.exists()
        # One that is being made at this moment is no leftover.
        backup.backup(kit.path, out)
        assert under_way.exists()
        out.unlink()
    assert out.exists()
    assert [path.name for path in tmp_path.glob(".*.part")] == [others.name]
