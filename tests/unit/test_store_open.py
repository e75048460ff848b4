"""Opening: whatever is wrong with the file is one sentence that names it and says what to do."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mmbu_async.errors import StoreError, StoreFullError, StoreLockedError, StoreVersionError
from mmbu_async.store import Store
from mmbu_async.store.connect import connect, named
from mmbu_async.store.migrations import MIGRATIONS

if TYPE_CHECKING:
    from tests.conftest import StoreKit


def test_a_store_is_made_and_found_again(kit: StoreKit) -> None:
    with Store.open(kit.path) as store:
        run, _ = kit.begin(store)
    with Store.open(kit.path, create=False) as store:
        assert store.run("night") == run


def not_a_database(path: Path) -> None:
    path.write_text("question\tanswer\n" * 100)


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (text)")


def a_folder(path: Path) -> None:
    path.mkdir()


def newer(path: Path) -> None:
    with Store.open(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 3}")


def damaged(path: Path) -> None:
    with Store.open(path) as store:
        store.judge("j", {}, now=1.0)
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * len(content[8192:])
    content[100:108] = b"\xff" * 8
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (not_a_database, StoreError, "is not a store but some other file; name another file with --store"),
        (of_another_program, StoreError, "is an SQLite file of another program, not a store"),
        (a_folder, StoreError, "is a folder, not a store"),
        (damaged, StoreError, "the file is damaged"),
        (
            newer,
            StoreVersionError,
            rf"newer version of mmbu-async \(store version {len(MIGRATIONS) + 3}, this program knows "
            rf"{len(MIGRATIONS)}\); update",
        ),
    ],
)
def test_a_file_that_is_no_store_of_ours_is_left_alone(
    tmp_path: Path, spoil: Callable[[Path], None], error: type[StoreError], words: str
) -> None:
    path = tmp_path / "mmbu.sqlite"
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(error, match=rf"mmbu\.sqlite: .*{words}") as caught:
        Store.open(path)
    assert "\n" not in str(caught.value)
    assert before == (path.read_bytes() if path.is_file() else b"")


@pytest.mark.parametrize("value", ["'{\"model\": '", "CAST(x'7be87d' AS TEXT)"])
def test_damage_inside_of_a_text_is_a_named_error(kit: StoreKit, value: str) -> None:
    """SQLite keeps no checksums: it gives back whatever stands there."""
    with Store.open(kit.path) as store:
        kit.begin(store)
    with closing(sqlite3.connect(kit.path)) as connection:
        connection.execute(f"UPDATE run SET config = {value}")  # noqa: S608 - constants
        connection.commit()
    with Store.open(kit.path) as store, pytest.raises(StoreError) as caught:
        store.run("night")
    assert str(kit.path) in str(caught.value)


@pytest.mark.parametrize("create", [True, False])
def test_what_is_no_regular_file_is_named_so(create: bool) -> None:
    with pytest.raises(StoreError, match="is no regular file, as a store must be"):
        Store.open(Path(os.devnull), create=create)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"the folder .*nowhere does not exist; make it first"):
        Store.open(tmp_path / "nowhere" / "mmbu.sqlite")


def test_a_path_that_the_system_refuses_is_a_named_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be looked at"):
        Store.open(tmp_path / ("x" * 300))


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_no_store_is_made_where_none_is_wanted(tmp_path: Path, options: dict[str, bool]) -> None:
    path = tmp_path / "mmbu.sqlite"
    with pytest.raises(StoreError, match=r"mmbu\.sqlite: there is no store"):
        Store.open(path, **options)  # type: ignore[arg-type]
    assert not path.exists()


@pytest.mark.parametrize("name", ["a b.sqlite", "50%?x#y.sqlite", "mémoire é.sqlite"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    with Store.open(tmp_path / name) as store:
        store.judge("j", {}, now=1.0)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_relative_path_is_that_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Store.open(Path("mmbu.sqlite")).close()
    assert (tmp_path / "mmbu.sqlite").exists()


def test_reading_only_changes_nothing(kit: StoreKit) -> None:
    run, _ = kit.begin(kit.open())
    store = kit.open(read_only=True)
    assert store.run("night") == run
    assert len(list(store.rows(run.id))) == 10
    with pytest.raises(StoreError, match=r"cannot be opened for this"):
        store.set_run_judge(run.id, None)


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_an_empty_file_becomes_a_store_only_where_one_may_be_made(
    tmp_path: Path, options: dict[str, bool]
) -> None:
    path = tmp_path / "mmbu.sqlite"
    path.touch()
    with pytest.raises(StoreError, match=r"mmbu\.sqlite: is an empty file, not a store; name the right file"):
        Store.open(path, **options)  # type: ignore[arg-type]
    assert path.stat().st_size == 0
    Store.open(path).close()
    Store.open(path, read_only=True).close()


def test_a_store_locked_by_another_process_is_a_named_error(kit: StoreKit) -> None:
    store = kit.open(busy_timeout_s=0.05)
    run, _ = kit.begin(store)
    with closing(sqlite3.connect(kit.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLockedError, match=r"store\.sqlite: another process holds the store locked"):
            store.set_run_judge(run.id, None)
        assert store.run("night").judge is not None
        Store.open(kit.path, busy_timeout_s=0.05).close()


@pytest.mark.parametrize("round_", range(5))
def test_many_can_make_the_same_store_at_once(tmp_path: Path, round_: int) -> None:
    path = tmp_path / f"{round_}.sqlite"
    start = threading.Barrier(6)
    errors: list[BaseException] = []

    def make(number: int) -> None:
        try:
            start.wait()
            with Store.open(path) as store:
                store.judge(f"judge {number}", {"number": number}, now=1.0)
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with closing(connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM judge").fetchone() == (6,)


def test_the_switch_to_the_log_waits_for_others(kit: StoreKit) -> None:
    """SQLite itself gives up at once where another process reads a store that has no log yet."""
    kit.open().close()
    with closing(sqlite3.connect(kit.path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM run").fetchone()
        with pytest.raises(StoreLockedError):
            Store.open(kit.path, busy_timeout_s=0.02)
        opening = threading.Thread(target=lambda: Store.open(kit.path).close())
        opening.start()
        opening.join(0.05)
        assert opening.is_alive()
        other.execute("COMMIT")
        opening.join(10)
        assert not opening.is_alive()
    with closing(sqlite3.connect(kit.path)) as again:
        assert again.execute("PRAGMA journal_mode").fetchone() == ("wal",)


GROW = """
import resource, signal, sys
from pathlib import Path
from mmbu_async.errors import StoreFullError
from mmbu_async.model import Sample
from mmbu_async.store import Store

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Store.open(Path(sys.argv[1])) as store:
    store.judge("before", {}, now=1.0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    samples = (
        (Sample(id=f"r{n}", position=n, question="x" * 100, answer="a", route="r"), "f") for n in range(5000)
    )
    try:
        store.register_dataset("bench", "here", "s", samples, now=1.0)
    except StoreFullError as error:
        print(error)
    assert store.find_dataset("bench") is None
    assert store.judge("before", {}, now=1.0).id == 1
"""


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on file size")
def test_a_file_that_may_not_grow_is_a_named_error(tmp_path: Path) -> None:
    """A real limit of the system, as a quota or a full disk sets one."""
    path = tmp_path / "mmbu.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", GROW, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "mmbu.sqlite: the disk is full or the file may not grow" in done.stdout
    with closing(connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, StoreFullError),
        (sqlite3.SQLITE_IOERR_WRITE, StoreFullError),
        (sqlite3.SQLITE_IOERR_READ, StoreError),
        (sqlite3.SQLITE_BUSY, StoreLockedError),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreLockedError),
        (sqlite3.SQLITE_LOCKED, StoreLockedError),
        (None, StoreError),
    ],
)
def test_errors_of_sqlite_have_names(code: int | None, kind: type[StoreError]) -> None:
    error = sqlite3.OperationalError("words of SQLite")
    if code is not None:
        error.sqlite_errorcode = code
    found = named(error, Path("mmbu.sqlite"))
    assert type(found) is kind
    assert str(found).startswith("mmbu.sqlite: ")
