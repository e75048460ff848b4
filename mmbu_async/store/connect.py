"""Opening the file, and naming what can go wrong with it.

Every connection is WAL with foreign keys. Under `full` a commit is on the disk when it returns and survives
a power cut; under `normal` it survives the end of the process only. All of SQLite's errors leave this
package as named errors whose sentence holds the file.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Literal, Self, TypeVar, cast

import aiosqlite
import orjson

from mmbu_async.errors import StoreError, StoreFullError, StoreLockedError
from mmbu_async.store import migrations

T = TypeVar("T")

Synchronous = Literal["full", "normal"]

BUSY_TIMEOUT_S = 60.0
"""How long a statement waits for another process's transaction. Ours last milliseconds."""

PAGE_BYTES = 8192
"""A reply of usual length and its columns fit several times into a page."""

LOG_BYTES_KEPT = 64 * 2**20
"""Of the write-ahead log, once SQLite has emptied it."""

OLDEST_SQLITE = (3, 32, 0)
"""The first that takes the 32,766 parameters which a statement for many rows needs."""


def connect(
    path: Path,
    *,
    create: bool = True,
    read_only: bool = False,
    any_version: bool = False,
    synchronous: Synchronous = "full",
    busy_timeout_s: float = BUSY_TIMEOUT_S,
) -> sqlite3.Connection:
    """A connection to the store at `path`, made or migrated where that is needed and allowed; `any_version`:
    as it is, for reading only. It is in autocommit mode: `transaction()` joins statements."""
    read_only = read_only or any_version
    with named_errors(path):
        _check_place(path, create=create and not read_only)
        mode = "ro" if read_only else "rwc" if create else "rw"
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            if any_version:
                migrations.version_of(connection, path)
            else:
                _set_up(connection, path, read_only=read_only, synchronous=synchronous, wait_s=busy_timeout_s)
        except BaseException:
            connection.close()
            raise
    return connection


def _check_place(path: Path, *, create: bool) -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreError(
            f"this Python's SQLite is {sqlite3.sqlite_version}, and the store needs "
            f"{'.'.join(map(str, OLDEST_SQLITE))} or newer; use a newer Python."
        )
    try:
        if path.is_dir():
            raise StoreError(f"{path}: is a folder, not a store; name a file with --store.")
        if not path.exists():
            if not create:
                raise StoreError(f"{path}: there is no store; name the right file with --store.")
            if not path.parent.is_dir():
                raise StoreError(f"{path}: the folder {path.parent} does not exist; make it first.")
        elif not path.is_file():
            raise StoreError(f"{path}: is no regular file, as a store must be; name another with --store.")
        elif not create and path.stat().st_size == 0:
            # Whoever only reads would make a store of it, which hides that the name was wrong.
            raise StoreError(f"{path}: is an empty file, not a store; name the right file with --store.")
    except OSError as error:
        raise StoreError(f"{path}: cannot be looked at ({error.strerror}); name another file.") from error


def _set_up(
    connection: sqlite3.Connection, path: Path, *, read_only: bool, synchronous: Synchronous, wait_s: float
) -> None:
    if not read_only:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    connection.execute("PRAGMA foreign_keys = ON")
    # Temporary tables are written once and read once, in order: of the usual 2 MB in memory half will do.
    connection.execute("PRAGMA temp.cache_size = -1000")
    migrations.bring_up_to_date(connection, path, read_only=read_only, now=time.time())
    if not read_only:
        _use_wal(connection, wait_s)
        connection.execute(f"PRAGMA synchronous = {'FULL' if synchronous == 'full' else 'NORMAL'}")
        # An fsync alone leaves the data in the drive's cache on macOS; elsewhere this changes nothing.
        connection.execute(f"PRAGMA fullfsync = {'ON' if synchronous == 'full' else 'OFF'}")
        # What a long read beside a busy writer made the log grow to is given back afterwards.
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT}")


def _use_wal(connection: sqlite3.Connection, wait_s: float) -> None:
    """Switch to WAL. SQLite does not wait here for others that open the file, so the wait is ours."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _primary(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


class AsyncConnection(aiosqlite.Connection):
    """aiosqlite's connection with one more call.

    A call crosses to the connection's thread and back, which costs 70 to 80 µs whatever it does. Its own
    methods run one statement a call; `run_in_thread` runs a function of any number of them, so that a
    transaction costs one crossing. It is built on what those methods are built on. (Not named `run`: up to
    aiosqlite 0.21 a connection is a Thread.)
    """

    @classmethod
    @asynccontextmanager
    async def open(
        cls, path: Path, *, synchronous: Synchronous = "full", busy_timeout_s: float = BUSY_TIMEOUT_S
    ) -> AsyncIterator[Self]:
        """A connection to a store that exists."""
        # Opened outside of aiosqlite: where its own opening fails, its thread may outlive the event loop.
        inner = await asyncio.to_thread(
            connect, path, create=False, synchronous=synchronous, busy_timeout_s=busy_timeout_s
        )
        connection = cls(lambda: inner, iter_chunk_size=64)
        async with connection:
            yield connection

    async def run_in_thread(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """What `function` returns, run on the connection's thread."""
        return cast(T, await self._execute(function, self._conn))  # type: ignore[no-untyped-call]


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours, and those of values that no store holds: SQLite does not notice damage
    inside of texts."""
    try:
        yield
    except sqlite3.Error as error:
        raise named(error, path) from error
    except (orjson.JSONDecodeError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{path}: holds a value that cannot be read ({error}): the file is damaged or was changed by "
            "hand; go on with an earlier copy."
        ) from error


def named(error: sqlite3.Error, path: Path) -> StoreError:
    """The named error for one of SQLite's: what, where, what to do."""
    code = _primary(error)
    extended = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_FULL or extended in _MAY_NOT_GROW:
        return StoreFullError(
            f"{path}: the disk is full or the file may not grow ({error}); free space or lift the quota, "
            "then resume: everything acknowledged is kept."
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreLockedError(
            f"{path}: another process holds the store locked; wait for it or stop it, then try again."
        )
    if code == sqlite3.SQLITE_NOTADB:
        return StoreError(f"{path}: is not a store but some other file; name another file with --store.")
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreError(
            f"{path}: the file is damaged ({error}); keep a copy, and recover it with "
            "`sqlite3 FILE .recover` into a new file."
        )
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StoreError(
            f"{path}: cannot be opened for this ({error}); check that file and folder exist and that you "
            "may write to them."
        )
    return StoreError(f"{path}: SQLite says: {error}; check the disk, then resume.")


_MAY_NOT_GROW = frozenset({sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})
"""A quota or a file size limit shows as one of these, not as a full disk."""


def _primary(error: sqlite3.Error) -> int:
    """SQLite's error code without its extension; 0 where the error is not SQLite's own."""
    return cast(int, getattr(error, "sqlite_errorcode", 0)) & 0xFF
