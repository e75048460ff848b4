"""Taking runs from another store: of another machine, or one run out of many into a file of its own.

What is the same is known by what it says, never by its key: a dataset by the content of its rows, a judge by
its identity, a run by name and identity, a session by process and beginning, a call by session, row and
beginning, a batch by its marker. So merging again adds only what has come since. All is one transaction.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from mmbu_async.errors import RunChangedError, StoreError, StoreLockedError
from mmbu_async.model import FailureKind, Json
from mmbu_async.store import codec, datasets, runs, upkeep
from mmbu_async.store.backup import Copied, damage, single_file, whole_store
from mmbu_async.store.connect import connect, named_errors
from mmbu_async.store.known_run import KnownRun, differences, joined_selection, known_run
from mmbu_async.store.lease import LeaseOwner, leases
from mmbu_async.store.migrations import MIGRATIONS, version_of
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRun:
    """What came of one run of the other store."""

    name: str
    """Its name here."""
    theirs: str
    """Its name there."""
    new: bool
    """Whether there was no such run here."""
    rows: int
    """Rows that the run did not have."""
    calls: int
    """Exchanges with endpoints, failed ones included."""
    second: int
    """Of these, replies for rows that had one: kept as paid for, and not used."""
    verdicts: int
    other_judge: bool
    """Whether it is judged by another judge there than here: the run keeps its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """What a merge added."""

    runs: tuple[MergedRun, ...]
    datasets: int
    judges: int


def merge(store: Path, other: Path, *, rename: bool = False, now: float) -> Merged:
    """Take every run of `other` into `store`, which is made where it is missing.

    The same run continues: rows, calls and verdicts that are missing here are added, and what is here stays.
    Raises RunChangedError where a run of one name is another experiment there (`rename` gives that one a free
    name), StoreLockedError where the run is being worked on here, StoreError for a file that is damaged.
    """
    if store.exists() and other.exists() and store.samefile(other):
        raise StoreError(f"{other}: is the store itself; name another one to take runs from.")
    _bring_up_to_date(other)
    broken = [finding.text for finding in upkeep.check(other) if finding.damage]
    if broken:
        raise StoreError(
            f"{other}: is damaged ({broken[0].rstrip('.')}), so that nothing was taken from it; `mmbu store "
            f"check --store {other}` says more."
        )
    with named_errors(store), closing(connect(store)) as connection:
        return _Merge(connection, other, rename=rename, now=now).take(None)


def export_run(store: Path, name: str, out: Path, *, force: bool = False, now: float) -> Copied:
    """Write one run, with its dataset, sessions, calls, verdicts, judges and scores, into a store of its own
    at `out`, which `force` may replace. The run may be at work: what is there at this moment is taken.

    Raises RunNotFoundError naming runs with a similar name, StoreError where `out` is no place for it.
    """
    _bring_up_to_date(store)
    with closing(connect(store, read_only=True)) as connection, named_errors(store):
        run = runs.get(connection, store, name)
    with whole_store(out, like=store, force=force) as part:
        with named_errors(out), closing(connect(part)) as connection:
            _Merge(connection, store, rename=False, now=now).take(run.name)
            connection.execute("DETACH theirs")
            single_file(connection)
            if found := damage(connection):
                raise StoreError(
                    f"{store}: is damaged ({found[0]}), and so would be what was taken from it; `mmbu store "
                    "check` says more."
                )
        size = part.stat().st_size
    return Copied(runs=1, size=size)


class _Merge:
    """One merge over one connection, which is closed afterwards: its temporary tables go with it."""

    def __init__(self, connection: sqlite3.Connection, other: Path, *, rename: bool, now: float) -> None:
        self._connection = connection
        self._other = other
        self._rename = rename
        self._now = now
        self._datasets: dict[int, int] = {}
        """Key there -> key here."""
        self._new_datasets = 0
        self._new_judges = 0

    def take(self, only: str | None) -> Merged:
        """Take the runs of the other store, or the one of this name."""
        uri = f"{self._other.absolute().as_uri()}?mode=ro"
        self._do("attach_theirs", uri=uri)
        for table in ("new_sample_map", "new_judge_map", "new_session_map", "new_same_reply"):
            self._do(table)
        try:
            # What is attached for reading is read at one moment, and not locked.
            with transaction(self._connection):
                self._take_datasets(only)
                self._take_judges(only)
                found = self._connection.execute(query("their_runs"), {"name": only}).fetchall()
                taken = tuple(self._take_run(*values) for values in found)
        except sqlite3.IntegrityError as error:
            raise StoreError(
                f"{self._other}: holds what no store of ours does ({error}); nothing was taken from it."
            ) from error
        return Merged(runs=taken, datasets=self._new_datasets, judges=self._new_judges)

    def _take_datasets(self, only: str | None) -> None:
        found = self._connection.execute(query("their_datasets"), {"name": only}).fetchall()
        for key, benchmark, fingerprint, rows in found:
            known = datasets.find(self._connection, benchmark, fingerprint=fingerprint)
            here = known.id if known is not None else self._take_dataset(key)
            if self._do("map_samples", **{"from": key, "to": here}) != rows:
                raise StoreError(
                    f"{self._other}: its dataset {benchmark} has not the rows that its fingerprint stands "
                    "for; `mmbu store check` says more."
                )
            self._datasets[key] = here

    def _take_dataset(self, key: int) -> int:
        self._do("take_dataset", **{"from": key})
        (here,) = self._connection.execute(query("last_key")).fetchone()
        self._do("take_samples", **{"from": key, "to": here})
        self._new_datasets += 1
        return int(here)

    def _take_judges(self, only: str | None) -> None:
        found = self._connection.execute(query("their_judges"), {"name": only}).fetchall()
        for key, name, identity in found:
            made, new = runs.find_or_make_judge(self._connection, name, identity, self._now)
            self._new_judges += new
            self._do("map_judge", **{"from": key, "to": made.id})

    def _take_run(self, key: int, theirs: str, dataset: int, identity: str, config: str) -> MergedRun:
        there = known_run(key, self._datasets[dataset], identity, config)
        name, here = self._place(theirs, there)
        if here is not None:
            self._refuse_if_held(here.key)
            self._widen(here, there)
            return self._fill(key, here.key, name=name, theirs=theirs, new=False)
        settings = codec.dump({**there.config, "name": name} if name != theirs else dict(there.config))
        self._do("take_run", **{"from": key, "name": name, "dataset": there.dataset, "config": settings})
        (made,) = self._connection.execute(query("last_key")).fetchone()
        return self._fill(key, made, name=name, theirs=theirs, new=True)

    def _place(self, theirs: str, there: KnownRun) -> tuple[str, KnownRun | None]:
        """Under which name a run comes in, and the run that it continues."""
        name = theirs
        for number in count(2):
            found = self._connection.execute(query("our_run"), {"name": name}).fetchone()
            if found is None:
                break
            here = known_run(*found)
            changes = differences(here, there)
            if not changes:
                return name, here
            if not self._rename:
                raise RunChangedError(
                    f"{self._other}: its run '{theirs}' is another one than that of this name here "
                    f"({'; '.join(changes)}); take it in under another name with --rename.",
                    changes,
                )
            name = f"{theirs}-{number}"
        return name, None

    def _refuse_if_held(self, run: int) -> None:
        for lease in leases(self._connection, LeaseOwner.current(), self._now):
            if lease.run_id == run and lease.alive:
                raise StoreLockedError(
                    f"run '{lease.run}' is at work (process {lease.owner.pid} on {lease.owner.host}), and "
                    "would buy rows that are taken in meanwhile; merge when it has ended."
                )

    def _widen(self, here: KnownRun, there: KnownRun) -> None:
        """The run is about the rows of both from now on, and says so."""
        wider = joined_selection(here.config, there.config) or {}
        if any(here.config.get(setting) != value for setting, value in wider.items()):
            self._do("set_run_config", run=here.key, config=codec.dump({**here.config, **wider}))

    def _fill(self, there: int, here: int, *, name: str, theirs: str, new: bool) -> MergedRun:
        both = {"from": there, "to": here}
        duplicate = FailureKind.DUPLICATE.value
        rows = self._do("take_selection", **both)
        self._do("take_sessions", **both)
        self._do("map_sessions", **both)
        self._do("end_sessions", to=here)
        before = self._count_duplicates(here)
        calls = self._do("take_calls", **both, duplicate=duplicate)
        self._do("take_batches", **both)
        self._do("take_batch_items", **both)
        self._do("forget_same_replies")
        self._do("find_same_replies", **both)
        verdicts = self._do("take_verdicts", **both)
        self._do("take_scores", **both)
        self._do("take_rescores", **both)
        self._do("take_score_changes", **both)
        self._do("take_standing", **both)
        other = self._connection.execute(query("other_judge"), both).fetchone()
        return MergedRun(
            name=name,
            theirs=theirs,
            new=new,
            rows=rows,
            calls=calls,
            second=self._count_duplicates(here) - before if not new else 0,
            verdicts=verdicts,
            other_judge=bool(other and other[0]),
        )

    def _count_duplicates(self, run: int) -> int:
        values = {"run": run, "duplicate": FailureKind.DUPLICATE.value}
        (found,) = self._connection.execute(query("duplicates"), values).fetchone()
        return int(found)

    def _do(self, statement: str, /, **values: Json) -> int:
        """Returns how many rows it wrote."""
        return self._connection.execute(query(statement), values).rowcount


def _bring_up_to_date(store: Path) -> None:
    """An older store gets the newest schema, as by any command; a newest one is not opened for writing."""
    with closing(connect(store, any_version=True)) as connection, named_errors(store):
        older = version_of(connection, store) < len(MIGRATIONS)
    if older:
        connect(store, create=False).close()
