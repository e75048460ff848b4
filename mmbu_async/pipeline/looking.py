"""Opening a store to look at it, also where nothing may be written.

A report brings scores up to date first, and SQLite itself wants to write beside the file. A store on a medium
that is read-only, or in somebody else's folder, is looked at in a copy that lives as long as the look.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmbu_async.errors import StoreError
from mmbu_async.pipeline.opening import open_existing
from mmbu_async.store import Store

log = logging.getLogger(__name__)

_LOG = "-wal"
"""What SQLite calls the log beside a store, in which its newest commits may lie."""


@contextmanager
def open_to_look(path: Path) -> Iterator[Store]:
    """A store that must be there; what is brought up to date in it may not last."""
    with to_look_at(path) as there, open_existing(there) as store:
        yield store


@contextmanager
def to_look_at(path: Path) -> Iterator[Path]:
    """Where the store can be looked at: where it lies, or in a copy. A file that is not there stays so."""
    if not path.is_file() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="mmbu-") as folder:
        log.info("%s: nothing may be written there, so that a copy is looked at", path)
        yield _copied(path, Path(folder))


def _copied(path: Path, folder: Path) -> Path:
    files = [path, path.with_name(path.name + _LOG)]
    before = [_mark(file) for file in files]
    try:
        for file, mark in zip(files, before, strict=True):
            if mark is not None:
                shutil.copyfile(file, folder / file.name)
    except OSError as error:
        raise StoreError(
            f"{path}: nothing may be written there, and it cannot be copied to {folder.parent} to be looked "
            f"at ({error.strerror}); make room, or set TMPDIR to a folder that has some."
        ) from error
    if [_mark(file) for file in files] != before:
        raise StoreError(
            f"{path}: somebody is writing it, and nothing may be written here: look at it on the machine "
            "that writes, or at a copy that `mmbu store backup` makes there."
        )
    return folder / path.name


def _mark(file: Path) -> tuple[int, int] | None:
    """What changes when a file is written; None: there is no such file."""
    try:
        stat = file.stat()
    except FileNotFoundError:
        return None
    return stat.st_size, stat.st_mtime_ns
