"""A copy of a store, also of one that is written at this moment, and files that are whole or not there.

The copy is of one moment: a read transaction holds it while pages are copied, so that neither a writer waits
for the copy nor the copy begins anew with each of its commits (SQLite's online backup does that where another
connection writes). Until the copy ends the write-ahead log grows by what is written meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from mmbu_async.errors import StoreError, StoreFullError, StoreLockedError
from mmbu_async.store.connect import connect, named_errors
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import transaction

if sys.platform != "win32":
    import fcntl

PAGES_A_STEP = 2048
"""16 MB: the interpreter can hear Ctrl-C between two steps, and a progress display be told."""

BESIDE = ("-wal", "-journal")
"""What SQLite keeps beside a file that is in use, or whose last user died."""

PART = ".part"
"""How the name of a copy ends that is not done."""

Progress = Callable[[int, int], None]
"""Told of pages copied, and of all pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A copy that was made."""

    runs: int
    size: int
    """Bytes."""


def backup(store: Path, out: Path, *, force: bool = False, progress: Progress | None = None) -> Copied:
    """Copy the store to the file `out`, which `force` may replace. The store may be of any version, and in
    use.

    The copy is one file without anything beside it, looked through by SQLite's integrity check before it gets
    its name. Raises StoreError where the place is no good or the store is damaged.
    """
    with (
        closing(connect(store, any_version=True)) as source,
        whole_store(out, like=store, force=force) as part,
    ):
        with closing(_bare(part)) as target:
            _copy(source, target, store, out, progress)
            with named_errors(out):
                runs = _finish(target, store)
        size = part.stat().st_size
    return Copied(runs=runs, size=size)


def damage(connection: sqlite3.Connection) -> list[str]:
    """What SQLite's own checks say against the file, in its words; empty where it is sound."""
    found = [line for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        found.append(f"row {row} of {table} points to a {parent} that is not there")
    return found


@contextmanager
def whole_store(out: Path, *, like: Path, force: bool) -> Iterator[Path]:
    """Gives an empty file beside `out` to make a store of, which takes its place at the end: what breaks off
    leaves nothing half. Who may read it is taken from the file `like`, which `out` must not be.

    A process that is killed leaves its file behind: the next one that makes `out` takes it away.

    Raises StoreError where `out` is no place for it, and StoreFullError where the disk is full.
    """
    part = None
    handle = -1
    try:
        _check_place(out, like, force=force)
        _clear_leftovers(out)
        handle, name = tempfile.mkstemp(prefix=f".{out.name}.", suffix=PART, dir=out.parent)
        part = Path(name)
        _mark_in_use(handle)
        part.chmod(like.stat().st_mode & 0o777)
        yield part
        _put(part, out, force=force)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreFullError(f"{out}: the disk is full; make room or choose another one.") from error
        reason = error.strerror or error
        raise StoreError(f"{out}: cannot be written ({reason}); choose another place.") from error
    finally:
        if part is not None:
            _remove(part)
        if handle >= 0:
            os.close(handle)


def _remove(part: Path) -> None:
    for end in ("", *BESIDE, "-shm"):
        part.with_name(part.name + end).unlink(missing_ok=True)


def _mark_in_use(handle: int) -> bool:
    """Whether nobody else uses the file; the mark goes with the process, however that ends."""
    if sys.platform == "win32":
        return False
    try:
        # Not with lockf: closing any handle of the file would take SQLite's own locks away.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _clear_leftovers(out: Path) -> None:
    """Take away what processes that died while they made `out` left beside it."""
    for part in out.parent.glob(f".{glob.escape(out.name)}.*{PART}"):
        with contextlib.suppress(OSError):
            handle = os.open(part, os.O_RDONLY)
            try:
                if _mark_in_use(handle):
                    _remove(part)
            finally:
                os.close(handle)


def single_file(connection: sqlite3.Connection) -> None:
    """Let the store be one file: it can be moved, and read where nothing may be written beside it. The next
    one that opens it for writing has it as before."""
    connection.execute("PRAGMA journal_mode = DELETE")


def _copy(
    source: sqlite3.Connection,
    target: sqlite3.Connection,
    store: Path,
    out: Path,
    progress: Progress | None,
) -> None:
    with named_errors(store), transaction(source, "DEFERRED"):
        # The snapshot begins with the first read, not with BEGIN.
        (tables,) = source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables:
            raise StoreError(f"{store}: is empty, and there is nothing to copy.")
        with named_errors(out):
            source.backup(target, pages=PAGES_A_STEP, progress=_told(progress))


def _finish(target: sqlite3.Connection, store: Path) -> int:
    single_file(target)
    if found := damage(target):
        raise StoreError(
            f"{store}: is damaged ({found[0]}), and so would be its copy, which was not kept; `mmbu store "
            "check` says more."
        )
    (runs,) = target.execute(query("run_count")).fetchone()
    return int(runs)


def _bare(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def _told(progress: Progress | None) -> Callable[[int, int, int], None] | None:
    if progress is None:
        return None
    return lambda status, left, all_pages: progress(all_pages - left, all_pages)


def _check_place(out: Path, like: Path, *, force: bool) -> None:
    if out.is_dir():
        raise StoreError(f"{out}: is a folder; name a file.")
    if not out.parent.is_dir():
        raise StoreError(f"{out}: the folder {out.parent} does not exist; make it first.")
    if out.exists() and like.exists() and out.samefile(like):
        raise StoreError(f"{out}: is the store itself; name another file.")
    for end in BESIDE:
        # SQLite would take it for the new file's, and spoil that.
        if out.with_name(out.name + end).exists():
            raise StoreLockedError(
                f"{out}: {out.name + end} lies beside it, so that a store of this name is in use, or was "
                "when its process died; name another file."
            )
    if out.exists() and not force:
        raise _exists(out)


def _exists(out: Path) -> StoreError:
    return StoreError(f"{out}: is there already; name another file, or replace it with --force.")


def _put(part: Path, out: Path, *, force: bool) -> None:
    if force:
        part.replace(out)
    else:
        try:
            # Unlike a rename this fails where somebody made the file meanwhile.
            os.link(part, out)
        except FileExistsError:
            raise _exists(out) from None
        except OSError:
            # A file system without hard links.
            if out.exists():
                raise _exists(out) from None
            part.replace(out)
    # The new name is safe from a power cut once the folder is; systems that cannot open folders need nothing.
    with contextlib.suppress(OSError):
        folder = os.open(out.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
