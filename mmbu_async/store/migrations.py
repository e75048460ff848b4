"""Bringing an older store to the newest schema, in numbered steps whose names are kept in the store.

A new store is made from schema.sql; an old one runs the steps it lacks, each in the one transaction that
also notes it. Both ways end in the same schema: a test compares them. `user_version` is the number of the
newest step, so that an older program recognises a newer store and leaves it alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from mmbu_async.errors import StoreError, StoreVersionError
from mmbu_async.store.sql import schema
from mmbu_async.store.transactions import transaction

APPLICATION_ID = 0x4D4D4255
"""`MMBU` in ASCII: marks the file as a store."""

Migration = Callable[[sqlite3.Connection], None]


def m001_first(connection: sqlite3.Connection) -> None:
    """The first schema. Nothing to do: no store is older than it."""


def m002_score_changes(connection: sqlite3.Connection) -> None:
    """What scores were before a re-score changed them. Of re-scores before this step nothing is known."""
    run_script(
        connection,
        """
        CREATE TABLE rescore (
            id INTEGER PRIMARY KEY,
            run_id INTEGER NOT NULL REFERENCES run (id),
            at REAL NOT NULL,
            package_version TEXT NOT NULL
        );
        CREATE INDEX rescore_of_run ON rescore (run_id);
        CREATE TABLE score_change (
            rescore_id INTEGER NOT NULL REFERENCES rescore (id),
            sample_id INTEGER NOT NULL REFERENCES sample (id),
            cause TEXT NOT NULL,
            answer TEXT NOT NULL,
            how TEXT NOT NULL,
            status TEXT NOT NULL,
            correct INTEGER,
            tp INTEGER NOT NULL,
            fp INTEGER NOT NULL,
            fn INTEGER NOT NULL,
            PRIMARY KEY (rescore_id, sample_id)
        ) WITHOUT ROWID;
        """,
    )


def m003_control(connection: sqlite3.Connection) -> None:
    """What other processes ask of the one that works on a run."""
    run_script(
        connection,
        """
        CREATE TABLE control (
            run_id INTEGER PRIMARY KEY REFERENCES run (id),
            asked INTEGER NOT NULL,
            asked_at REAL NOT NULL,
            seen INTEGER NOT NULL,
            paused INTEGER NOT NULL,
            limits TEXT NOT NULL
        );
        """,
    )


def m004_bench(connection: sqlite3.Connection) -> None:
    """Measurements of endpoints."""
    run_script(
        connection,
        """
        CREATE TABLE bench (
            id INTEGER PRIMARY KEY,
            name TEXT NOT NULL UNIQUE,
            config TEXT NOT NULL,
            host TEXT NOT NULL,
            package_version TEXT NOT NULL,
            created_at REAL NOT NULL,
            ended_at REAL,
            ended TEXT,
            result TEXT
        );
        CREATE TABLE bench_stage (
            id INTEGER PRIMARY KEY,
            bench_id INTEGER NOT NULL REFERENCES bench (id),
            number INTEGER NOT NULL,
            part INTEGER NOT NULL,
            role TEXT NOT NULL,
            target TEXT NOT NULL,
            plan TEXT NOT NULL,
            began_at REAL NOT NULL,
            begin_s REAL NOT NULL,
            end_s REAL NOT NULL,
            ended TEXT NOT NULL,
            drained_s REAL NOT NULL,
            gaps TEXT NOT NULL,
            lags TEXT NOT NULL,
            ticks TEXT NOT NULL,
            UNIQUE (bench_id, number)
        );
        CREATE TABLE bench_request (
            stage_id INTEGER NOT NULL REFERENCES bench_stage (id),
            number INTEGER NOT NULL,
            intended_s REAL NOT NULL,
            delay_s REAL NOT NULL,
            connect_s REAL,
            sent_s REAL,
            upload_s REAL,
            first_byte_s REAL,
            first_thought_s REAL,
            first_output_s REAL,
            last_token_s REAL,
            total_s REAL NOT NULL,
            phase TEXT NOT NULL,
            message TEXT NOT NULL,
            status INTEGER,
            request_id TEXT NOT NULL,
            finish TEXT NOT NULL,
            events INTEGER NOT NULL,
            longest_gap_s REAL NOT NULL,
            in_one_piece INTEGER NOT NULL,
            bytes_up INTEGER NOT NULL,
            bytes_down INTEGER NOT NULL,
            images INTEGER NOT NULL,
            pixels INTEGER NOT NULL,
            input_tokens INTEGER NOT NULL,
            output_tokens INTEGER NOT NULL,
            reasoning_tokens INTEGER NOT NULL,
            cached_tokens INTEGER NOT NULL,
            estimated INTEGER NOT NULL,
            cost_usd REAL,
            in_flight INTEGER NOT NULL,
            row TEXT NOT NULL,
            text TEXT,
            correct INTEGER,
            PRIMARY KEY (stage_id, number)
        ) WITHOUT ROWID;
        """,
    )


def m005_jobs(connection: sqlite3.Connection) -> None:
    """What the service was asked to run."""
    run_script(
        connection,
        """
        CREATE TABLE job (
            id INTEGER PRIMARY KEY,
            run TEXT NOT NULL,
            kind TEXT NOT NULL,
            state TEXT NOT NULL,
            priority INTEGER NOT NULL,
            settings TEXT NOT NULL,
            failed_only INTEGER NOT NULL,
            created_at REAL NOT NULL,
            started_at REAL,
            ended_at REAL,
            message TEXT NOT NULL,
            exit_code INTEGER
        );
        CREATE UNIQUE INDEX job_open ON job (run) WHERE state IN ('queued', 'running', 'paused');
        CREATE TABLE service (
            id INTEGER PRIMARY KEY CHECK (id = 1),
            host TEXT NOT NULL,
            boot TEXT NOT NULL,
            pid INTEGER NOT NULL,
            process TEXT NOT NULL,
            since REAL NOT NULL,
            beat REAL NOT NULL
        );
        """,
    )


def m006_batches(connection: sqlite3.Connection) -> None:
    """Batches that went to providers, with their exact rows."""
    run_script(
        connection,
        """
        CREATE TABLE batch (
            id INTEGER PRIMARY KEY,
            run_id INTEGER NOT NULL REFERENCES run (id),
            session_id INTEGER NOT NULL REFERENCES session (id),
            judge_id INTEGER REFERENCES judge (id),
            marker TEXT NOT NULL UNIQUE,
            url TEXT NOT NULL,
            state TEXT NOT NULL,
            requests INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            worst_usd REAL,
            created_at REAL NOT NULL,
            sent_at REAL,
            ended_at REAL,
            remote_id TEXT NOT NULL,
            status TEXT NOT NULL,
            finished INTEGER NOT NULL,
            words TEXT NOT NULL
        );
        CREATE INDEX batch_of_run ON batch (run_id);
        CREATE TABLE batch_item (
            batch_id INTEGER NOT NULL REFERENCES batch (id),
            number INTEGER NOT NULL,
            sample_id INTEGER NOT NULL REFERENCES sample (id),
            attempt INTEGER NOT NULL,
            prompt_sha TEXT NOT NULL,
            raw_input INTEGER NOT NULL,
            image_scale REAL NOT NULL,
            image_sha256 TEXT NOT NULL,
            image_note TEXT NOT NULL,
            fate TEXT,
            PRIMARY KEY (batch_id, number)
        ) WITHOUT ROWID;
        CREATE INDEX open_batch_item ON batch_item (sample_id) WHERE fate IS NULL;
        """,
    )


MIGRATIONS: Mapping[str, Migration] = {
    step.__name__: step
    for step in (m001_first, m002_score_changes, m003_control, m004_bench, m005_jobs, m006_batches)
}
"""Name -> step, in order. Only ever added to: a name that a store has noted must keep its meaning."""


def bring_up_to_date(
    connection: sqlite3.Connection,
    path: Path,
    *,
    read_only: bool,
    now: float,
    steps: Mapping[str, Migration] = MIGRATIONS,
) -> None:
    """Make the schema in an empty file, or run the steps that the store lacks. The connection is in
    autocommit mode. Raises StoreVersionError for a newer store, StoreError for a foreign file."""
    # In one transaction, for another process may be making the store between two looks.
    with transaction(connection, "DEFERRED"):
        if _is_newest(connection, path, len(steps)):
            return
    if read_only:
        raise StoreError(
            f"{path}: was written by an older version, and cannot be brought up to date while it is opened "
            "for reading only; open it once with a command that may write, like `mmbu status`."
        )
    with transaction(connection, "EXCLUSIVE"):
        # Another process may have done it while this one waited for the lock.
        if not _is_newest(connection, path, len(steps)):
            _apply(connection, now, steps)


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The number of the newest step that the store has; 0 for an empty file. Raises StoreError for a file of
    another program."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables == 0 and application in (0, APPLICATION_ID):
        return 0
    if application != APPLICATION_ID:
        raise StoreError(
            f"{path}: is an SQLite file of another program, not a store; name another file with --store."
        )
    return int(version)


def _is_newest(connection: sqlite3.Connection, path: Path, newest: int) -> bool:
    """False for an empty file and for an older store."""
    version = version_of(connection, path)
    raise_if_newer(version, path, newest)
    return version == newest


def raise_if_newer(version: int, path: Path, newest: int = len(MIGRATIONS)) -> None:
    """Raises StoreVersionError for a store of a version that this program does not know."""
    if version > newest:
        raise StoreVersionError(
            f"{path}: was written by a newer version of mmbu-async (store version {version}, this program "
            f"knows {newest}); update with `pip install --upgrade mmbu-async`."
        )


def _apply(connection: sqlite3.Connection, now: float, steps: Mapping[str, Migration]) -> None:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables == 0:
        run_script(connection, schema())
        done = set[str]()
        todo: Mapping[str, Migration] = {}
    else:
        done = {name for (name,) in connection.execute("SELECT name FROM migration")}
        todo = {name: step for name, step in steps.items() if name not in done}
    for step in todo.values():
        step(connection)
    connection.executemany(
        "INSERT INTO migration (name, applied_at) VALUES (?, ?)",
        [(name, now) for name in steps if name not in done],
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {len(steps)}")


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Run several statements inside the open transaction (`executescript` would commit it first)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
