"""Looking through a store, and vacuuming it: each kind of damage is found, and no sound store is accused."""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.errors import StoreError, StoreLockedError, StoreVersionError
from mmbu_async.model import FailureKind
from mmbu_async.store import LeaseOwner, RunRecord, Store, Writer
from mmbu_async.store.connect import connect
from mmbu_async.store.upkeep import check, vacuum
from tests.conftest import OWNER, StoreKit, a_sample
from tests.stored_run import RunMaker

ROWS: list[dict[str, Any]] = [
    {"reply": "<answer>7</answer>", "judged": True, "failures": ["rate_limit", "timeout"]},
    {"reply": "<answer>3</answer>", "judged": False},
    {"reply": "", "judged": None, "finish": "length"},
    {"failures": ["bad_request"]},
    {"failures": ["image"], "unfinished": True},
    {},
]


@pytest.fixture
def store(make_run: RunMaker) -> Path:
    make_run(ROWS)
    make_run([{"reply": "none is needed", "correct": True}], judge=None, name="second", benchmark="vqa")
    return make_run.path


def texts(path: Path, *, damage: bool) -> list[str]:
    return [finding.text for finding in check(path) if finding.damage is damage]


def do(path: Path, *statements: str) -> None:
    """By hand, past all that the program takes care of."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_a_sound_store_has_no_findings_and_is_not_changed(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = store.read_bytes()
    assert check(store) == []
    assert store.read_bytes() == before


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (
            ["DROP INDEX one_reply"],
            "the index one_reply is missing",
        ),
        (["DROP TABLE score_change"], "the table score_change is missing"),
        (
            [
                "INSERT INTO sample SELECT 99, 9, position, 'x', family, route, question, answer, options, "
                "images, strata, fields FROM sample WHERE id = 1"
            ],
            "SQLite: row 99 of sample points to a dataset that is not there",
        ),
        (
            ["INSERT INTO selection VALUES (2, 1)"],
            "1 rows are selected that are not of their run's dataset (first: run 'second', row 'row-0')",
        ),
        (["UPDATE sample SET position = 77 WHERE id = 2"], "1 rows of a dataset are not in their place"),
        (
            ["DELETE FROM selection WHERE sample_id = 1"],
            "calls are about rows that their run does not have (first: run 'test-run', row 'row-0')",
        ),
        (["UPDATE call SET session_id = 2 WHERE id = 1"], "1 calls belong to a session of another run"),
        (["UPDATE call SET kind = 'rained' WHERE id = 1"], "1 calls ended in a way that is unknown"),
        (["UPDATE call SET text = NULL WHERE ok = 1 AND judge_id IS NULL"], "or as replies without a text"),
        (
            ["DELETE FROM call WHERE ok = 1 AND judge_id IS NULL AND sample_id = 2"],
            "1 verdicts are about rows without a reply (first: run 'test-run', row 'row-1')",
        ),
        (
            ["DELETE FROM call WHERE judge_id IS NOT NULL AND sample_id = 1"],
            "1 verdicts have no call of their judge that they came from",
        ),
        (
            ["DELETE FROM verdict", "DELETE FROM call WHERE ok = 1 AND judge_id IS NULL AND sample_id = 1"],
            "1 scores are of rows without a reply",
        ),
        (
            ["UPDATE sample SET question = 'Another?' WHERE id = 1"],
            "its rows are not those that were registered",
        ),
        (
            ["DELETE FROM selection WHERE sample_id = 6", "DELETE FROM sample WHERE id = 6"],
            "has 5 rows, and had 6",
        ),
        (["UPDATE sample SET fields = '{' WHERE id = 1"], "1 values are no JSON (first: row 'row-0')"),
        (["UPDATE run SET config = 'x' WHERE id = 2"], "1 values are no JSON (first: run 'second')"),
    ],
)
def test_damage_is_found(store: Path, statements: list[str], words: str) -> None:
    do(store, *statements)
    found = texts(store, damage=True)
    assert any(words in text for text in found), found
    assert all(text.endswith(".") and "\n" not in text for text in found)


def test_two_replies_of_a_row_are_found_where_the_index_is_back(store: Path) -> None:
    """Made anew by somebody who looked for it by name, without its condition."""
    do(
        store,
        "DROP INDEX one_reply",
        "CREATE TEMP TABLE twice AS SELECT * FROM call WHERE ok = 1 AND judge_id IS NULL AND sample_id = 2",
        "UPDATE temp.twice SET id = 999",
        "INSERT INTO call SELECT * FROM temp.twice",
        "CREATE INDEX one_reply ON call (run_id, sample_id)",
    )
    assert "1 rows have more than one reply (first: run 'test-run', row 'row-1')." in texts(
        store, damage=True
    )


def test_a_damaged_page_is_found(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'verdict'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with store.open("r+b") as file:
        file.seek((root - 1) * size + 3)
        file.write(b"\xff\xff")
    try:
        assert texts(store, damage=True)
    except StoreError as error:
        assert "damaged" in str(error)


def test_files_that_are_no_store_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no store " * 200)
    with pytest.raises(StoreError, match="is not a store but some other file"):
        check(tmp_path / "text")
    with pytest.raises(StoreError, match="there is no store"):
        check(tmp_path / "none")
    do(tmp_path / "foreign", "CREATE TABLE t (x)")
    with pytest.raises(StoreError, match="of another program"):
        check(tmp_path / "foreign")


def test_a_newer_store_is_not_judged(store: Path) -> None:
    do(store, "PRAGMA user_version = 99")
    with pytest.raises(StoreVersionError, match="store version 99"):
        check(store)


def test_an_older_store_is_looked_at_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    old = Path(__file__).parents[1] / "migration" / "store_v1.sql"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(old.read_text(encoding="utf-8"))
    (finding,) = check(path)
    assert not finding.damage
    assert "is of an older version" in finding.text
    do(path, "INSERT INTO selection VALUES (7, 7)")
    assert texts(path, damage=True) == [
        "SQLite: row None of selection points to a sample that is not there.",
        "SQLite: row None of selection points to a run that is not there.",
    ]


# ---------------------------------------------------------------- no damage


async def begun(kit: StoreKit, store: Store, rows: int = 4) -> tuple[RunRecord, int]:
    run, session = kit.begin(store, rows)
    async with Writer.open(kit.path) as writer:
        for key in range(1, rows + 1):
            await writer.write(kit.reply(run, session, key))
    return run, session


async def test_scores_that_are_behind_are_told_and_are_no_damage(kit: StoreKit) -> None:
    store = kit.open()
    _, session = await begun(kit, store)
    store.end_session(session, "done", now=9.0)
    (finding,) = check(kit.path)
    assert not finding.damage
    assert finding.text.startswith("run 'night': replies or verdicts have come since its scores were made")


async def test_sessions_that_died_are_told_and_those_at_work_are_not(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store, 4)
    here = LeaseOwner.current()
    store.acquire_lease(run.id, here, time.time())
    store.begin_session(run.id, kind="run", owner=here, package_version="1", config={}, now=1.0)
    assert check(kit.path) == []
    dead = replace(here, pid=2**22 + 1, process="1")
    with closing(sqlite3.connect(kit.path)) as connection, connection:
        connection.execute("UPDATE run SET lease_pid = ?, lease_process = '1'", (dead.pid,))
    died, lease = check(kit.path)
    assert not died.damage
    assert f"session 2 (run, process {here.pid} on {here.host}) died" in died.text
    assert not lease.damage
    assert f"the process that held it ({dead.pid} on {dead.host}) is dead or silent" in lease.text


def test_a_session_without_any_lease_died(kit: StoreKit) -> None:
    kit.begin(kit.open(), 4)
    # It was closed when the lease was taken; this one never had any.
    (finding,) = check(kit.path)
    assert "its session 1 (run, process 1 on workstation) died" in finding.text


def test_a_run_without_rows_is_told(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 4, limit=0)
    store.end_session(session, "done", now=5.0)
    assert texts(kit.path, damage=False) == [
        "1 runs have no rows: their process ended before it chose them (first: run 'night')."
    ]
    assert run.dataset.rows == 4


async def test_a_verdict_that_another_store_paid_for_is_told(kit: StoreKit) -> None:
    store = kit.open()
    run, session = await begun(kit, store, 2)
    async with Writer.open(kit.path) as writer:
        await writer.write(kit.verdict(run, 1, True, shared=True))
    store.end_session(session, "done", now=9.0)
    assert (
        "1 verdicts were taken from calls that are in another store (first: run 'night', row 'row-0')."
        in texts(kit.path, damage=False)
    )
    assert texts(kit.path, damage=True) == []


def test_rows_with_odd_texts_are_still_those_that_were_registered(kit: StoreKit) -> None:
    """What SQLite and JSON cannot hold is stored otherwise; that must not look like a change."""
    odd = {
        "text": "half \ud83d pair \x00 \u2028",
        "large": 2**70,
        "float": 1e-7,
        "infinite": float("inf"),
        "nested": {"b": [1.5, None, "\udfff"], "a": True},
    }
    samples = [
        (a_sample(0, question="\ud800?", fields=odd, answer="\x00"), "family"),
        (a_sample(3, options=("a", "\udc00"), strata={}), "family"),
    ]
    kit.open().register_dataset("mmbu-public", "odd", "stamp", samples, now=1.0)
    assert check(kit.path) == []


async def test_a_store_can_be_looked_through_while_a_run_writes(kit: StoreKit) -> None:
    """What is on its way is no damage."""
    store = kit.open()
    run, session = kit.begin(store, 300)
    owner = LeaseOwner.current()
    store.acquire_lease(run.id, owner, time.time())
    session = store.begin_session(run.id, kind="run", owner=owner, package_version="1", config={}, now=4.0)
    found: list[str] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            found.extend(texts(kit.path, damage=True))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        async with Writer.open(kit.path) as writer:
            for key in range(1, 301):
                judge: dict[str, Any] = {"judge_id": 1, "prompt_sha": b"p" * 32}
                await writer.write(kit.reply(run, session, key))
                await writer.write(kit.reply(run, session, key, **judge))
                await writer.write(kit.verdict(run, key, True))
    finally:
        done.set()
        thread.join()
    assert found == []


async def test_failures_of_every_kind_are_known(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, len(FailureKind))
    async with Writer.open(kit.path) as writer:
        for key, kind in enumerate(FailureKind, start=1):
            await writer.write(kit.failure(run, session, key, kind))
    assert texts(kit.path, damage=True) == []


# ---------------------------------------------------------------- vacuum


def test_vacuum_gives_space_back_and_changes_nothing_else(store: Path) -> None:
    do(store, "CREATE TABLE waste AS SELECT zeroblob(3000000) AS x")
    do(store, "DROP TABLE waste")
    with closing(sqlite3.connect(store)) as connection:
        before = list(connection.iterdump())
    done = vacuum(store)
    assert done.before > 2_000_000 > done.after == store.stat().st_size
    with closing(sqlite3.connect(store)) as connection:
        assert list(connection.iterdump()) == before
    assert check(store) == []


def test_vacuum_waits_for_no_run_and_is_not_waited_for(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store, 4)
    owner = LeaseOwner.current()
    store.acquire_lease(run.id, owner, time.time())
    with pytest.raises(
        StoreLockedError, match=rf"run 'night' is at work \(process {owner.pid} on {owner.host}\)"
    ):
        vacuum(kit.path)
    store.release_lease(run.id, owner)
    vacuum(kit.path)
    # A dead process holds nobody up.
    store.acquire_lease(run.id, replace(OWNER, host=owner.host, boot=owner.boot, pid=2**22 + 1), time.time())
    vacuum(kit.path)


def test_vacuum_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        vacuum(tmp_path / "none.sqlite")
    assert list(tmp_path.iterdir()) == []
    connect(tmp_path / "new.sqlite").close()
    assert vacuum(tmp_path / "new.sqlite").after > 0
