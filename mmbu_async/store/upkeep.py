"""Whether a store holds together, and giving back the space that it does not need.

SQLite's own checks know pages and keys. What a row of a run may be is known here: one reply a row, calls and
verdicts of selected rows only, rows that are still those which were registered.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmbu_async.errors import StoreLockedError
from mmbu_async.model import FailureKind, Finish
from mmbu_async.store import codec, datasets, scores
from mmbu_async.store.backup import damage
from mmbu_async.store.connect import connect, named_errors
from mmbu_async.store.lease import Lease, LeaseOwner, leases
from mmbu_async.store.migrations import MIGRATIONS, raise_if_newer, version_of
from mmbu_async.store.sql import query, schema
from mmbu_async.store.transactions import transaction

SHOWN = 20
"""Of SQLite's findings; a damaged page can have thousands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something about a store that its owner should know."""

    damage: bool
    """False: the next command that works on the run puts it right by itself."""
    text: str
    unlooked: bool = False
    """Something could not be looked at because of this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuumed:
    """Bytes of the file and its write-ahead log, before and after."""

    before: int
    after: int


_DAMAGE = {
    "check_selection": "rows are selected that are not of their run's dataset",
    "check_positions": "rows of a dataset are not in their place",
    "check_one_reply": "rows have more than one reply",
    "check_calls_selected": "calls are about rows that their run does not have",
    "check_calls_session": "calls belong to a session of another run",
    "check_calls_kind": "calls ended in a way that is unknown, or as replies without a text",
    "check_verdicts_replied": "verdicts are about rows without a reply",
    "check_verdicts_bought": "verdicts have no call of their judge that they came from",
    "check_scores_replied": "scores are of rows without a reply",
}
"""Query -> what it counts."""
_NOTES = {
    "check_verdicts_shared": "verdicts were taken from calls that are in another store",
    "check_empty_runs": "runs have no rows: their process ended before it chose them",
}


def check(store: Path) -> list[Finding]:
    """Look through the whole file and change nothing; empty where all is well. The store may be in use.

    Raises StoreError where the file cannot be opened as a store.
    """
    connecting = connect(store, any_version=True)
    # At one moment: a run that begins between two looks would seem to have no process.
    with named_errors(store), closing(connecting) as connection, transaction(connection, "DEFERRED"):
        return list(_findings(connection, store))


def vacuum(store: Path, *, busy_timeout_s: float = 60.0) -> Vacuumed:
    """Rewrite the file without gaps. Raises StoreLockedError while a run is at work: it would have to wait
    for that."""
    connecting = connect(store, create=False, busy_timeout_s=busy_timeout_s)
    before = _size(store)
    with named_errors(store), closing(connecting) as connection:
        for lease in leases(connection, LeaseOwner.current(), time.time()):
            if lease.alive:
                raise StoreLockedError(
                    f"{store}: run '{lease.run}' is at work (process {lease.owner.pid} on "
                    f"{lease.owner.host}) and would have to wait; try again when it has ended."
                )
        connection.execute("VACUUM")
        # The new pages went through the write-ahead log, which is as large as the file until it is emptied.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return Vacuumed(before=before, after=_size(store))


def _size(store: Path) -> int:
    files = (store, store.with_name(f"{store.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _findings(connection: sqlite3.Connection, store: Path) -> Iterator[Finding]:
    version = version_of(connection, store)
    raise_if_newer(version, store)
    broken = damage(connection)
    for line in broken[:SHOWN]:
        yield Finding(damage=True, text=f"SQLite: {line}.")
    if len(broken) > SHOWN:
        yield Finding(damage=True, text=f"SQLite: and {len(broken) - SHOWN:,} more.")
    if version < len(MIGRATIONS):
        yield Finding(
            damage=False,
            text="is of an older version: the next command that may write, like `mmbu status`, brings it up "
            "to date; check it again then, for what runs are made of was not looked at.",
            unlooked=True,
        )
        return
    for thing in sorted(_things_of_a_new_store() - _things(connection)):
        yield Finding(damage=True, text=f"the {thing} is missing.")
        broken.append(thing)
    if not broken and (found := _counted(connection, "check_json", "values are no JSON", damage=True)):
        yield found
        broken.append(found.text)
    if broken:
        text = "what runs are made of was not looked at, because of that."
        yield Finding(damage=False, text=text, unlooked=True)
        return
    yield from _of_runs(connection)


def _of_runs(connection: sqlite3.Connection) -> Iterator[Finding]:
    for name, text in _DAMAGE.items():
        if found := _counted(connection, name, text, damage=True):
            yield found
    yield from _changed_datasets(connection)
    for name, text in _NOTES.items():
        if found := _counted(connection, name, text, damage=False):
            yield found
    for run, name, judge in connection.execute(query("scored_runs")).fetchall():
        if scores.stale(connection, run, judge):
            yield Finding(
                damage=False,
                text=f"run '{name}': replies or verdicts have come since its scores were made; the next "
                "report brings them up to date.",
            )
    yield from _dead(connection)


def _changed_datasets(connection: sqlite3.Connection) -> Iterator[Finding]:
    for dataset, benchmark, source, fingerprint, rows in connection.execute(query("all_datasets")).fetchall():
        (found,) = connection.execute(query("rows_of_dataset"), {"dataset": dataset}).fetchone()
        where = f"dataset {dataset} ({benchmark}, {source})"
        if found != rows:
            yield Finding(damage=True, text=f"{where}: has {found:,} rows, and had {rows:,}.")
        elif datasets.fingerprint(connection, dataset) != fingerprint:
            yield Finding(damage=True, text=f"{where}: its rows are not those that were registered.")


def _dead(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Processes that ended without a word."""
    held = {lease.run_id: lease for lease in leases(connection, LeaseOwner.current(), time.time())}
    for session, kind, host, pid, run, name in connection.execute(query("open_sessions")):
        if not _works(held.get(run), host, pid):
            yield Finding(
                damage=False,
                text=f"run '{name}': its session {session} ({kind}, process {pid} on {host}) died; `mmbu "
                "resume` or `mmbu rejudge` goes on, and notes it.",
            )
    for lease in held.values():
        if not lease.alive:
            yield Finding(
                damage=False,
                text=f"run '{lease.run}': the process that held it ({lease.owner.pid} on {lease.owner.host}) "
                "is dead or silent; the next one takes it over.",
            )


def _works(lease: Lease | None, host: str, pid: int) -> bool:
    return lease is not None and lease.alive and (lease.owner.host, lease.owner.pid) == (host, pid)


def _counted(connection: sqlite3.Connection, name: str, text: str, *, damage: bool) -> Finding | None:
    values: dict[str, Any] = {"finishes": _json(Finish), "failures": _json(FailureKind)}
    wanted = {key: value for key, value in values.items() if f":{key}" in query(name)}
    count, run, sample = connection.execute(query(name), wanted).fetchone()
    if not count:
        return None
    run_name, row = connection.execute(query("place"), {"run": run, "sample": sample}).fetchone()
    where = ", ".join(
        f"{what} '{named}'" for what, named in (("run", run_name), ("row", row)) if named is not None
    )
    return Finding(damage=damage, text=f"{count:,} {text}" + (f" (first: {where})." if where else "."))


def _json(words: type[Finish] | type[FailureKind]) -> str:
    return codec.dump([word.value for word in words])


def _things(connection: sqlite3.Connection) -> set[str]:
    """Tables and indexes."""
    return {name for (name,) in connection.execute(query("made_things"))}


def _things_of_a_new_store() -> set[str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema())
        return _things(connection)
