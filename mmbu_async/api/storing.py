"""Upkeep of store files."""

from __future__ import annotations

import time
from pathlib import Path

from mmbu_async.pipeline.looking import to_look_at
from mmbu_async.store import backup, merge, upkeep
from mmbu_async.store.backup import Copied
from mmbu_async.store.merge import Merged
from mmbu_async.store.upkeep import Finding as StoreFinding
from mmbu_async.store.upkeep import Vacuumed


def store_backup(out: Path, *, store: Path = Path("mmbu.sqlite"), force: bool = False) -> Copied:
    """Copy a store, also one that is being written, to the file `out`; `force` may replace that. See
    `store.backup`."""
    with to_look_at(store) as there:
        return backup.backup(there, out, force=force)


def store_check(*, store: Path = Path("mmbu.sqlite")) -> list[StoreFinding]:
    """Look through the whole store and change nothing; empty where all is well."""
    with to_look_at(store) as there:
        return upkeep.check(there)


def store_vacuum(*, store: Path = Path("mmbu.sqlite")) -> Vacuumed:
    """Give back the space that the file does not need. Raises StoreLockedError while a run is at work."""
    return upkeep.vacuum(store)


def store_export(run: str, out: Path, *, store: Path = Path("mmbu.sqlite"), force: bool = False) -> Copied:
    """Write one run with all that belongs to it into a store of its own."""
    with to_look_at(store) as there:
        return merge.export_run(there, run, out, force=force, now=time.time())


def store_merge(other: Path, *, store: Path = Path("mmbu.sqlite"), rename: bool = False) -> Merged:
    """Take every run of another store into this one; a second time only what has come since.

    Raises RunChangedError where a run of one name is another experiment there, unless `rename`.
    """
    with to_look_at(other) as there:
        return merge.merge(store, there, rename=rename, now=time.time())
