"""A store of every older version opens, keeps all it held, and ends in the schema of a new one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mmbu_async.errors import StoreError, StoreVersionError
from mmbu_async.model import Answer, Completion, FailureKind, Score, Status, Verdict
from mmbu_async.store import Reader, Store, migrations
from mmbu_async.store.connect import connect
from mmbu_async.store.migrations import MIGRATIONS, bring_up_to_date

OLD = sorted(Path(__file__).parent.glob("store_v*.sql"), key=lambda file: file.name)


@pytest.fixture(params=OLD, ids=lambda file: file.stem)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store as an older version left it."""
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(request.param.read_text(encoding="utf-8"))
    return path


def shape(path: Path) -> dict[str, object]:
    """Tables with their columns, and indexes, as SQLite understands them."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT type, name FROM sqlite_master ORDER BY type, name").fetchall()
        found: dict[str, object] = {}
        for kind, name in names:
            pragma = "table_xinfo" if kind == "table" else "index_xinfo"
            found[f"{kind} {name}"] = connection.execute(f"PRAGMA {pragma}({name})").fetchall()
            if kind == "table":
                keys = connection.execute(f"PRAGMA foreign_key_list({name})").fetchall()
                found[f"foreign keys of {name}"] = sorted(key[2:5] for key in keys)
        found["version"] = connection.execute("PRAGMA user_version").fetchone()
        found["migrations"] = connection.execute("SELECT name FROM migration ORDER BY name").fetchall()
    return found


def test_every_version_has_its_store() -> None:
    assert [file.stem for file in OLD] == [f"store_v{number}" for number in range(1, len(MIGRATIONS) + 1)]


def test_an_old_store_becomes_like_a_new_one(old: Path, tmp_path: Path) -> None:
    Store.open(old).close()
    Store.open(tmp_path / "new.sqlite").close()
    assert shape(old) == shape(tmp_path / "new.sqlite")
    assert list(MIGRATIONS) == sorted(MIGRATIONS)


async def test_an_old_store_keeps_all_it_held(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    with Store.open(old) as store:
        run = store.run("night")
        assert (run.model, run.dataset.rows, run.judge.name if run.judge else "") == (
            "test-vlm",
            3,
            "claude-sonnet-5",
        )
        counts = store.counts(run.id)
        assert (counts.selected, counts.completed, counts.failed, counts.pending) == (3, 1, 1, 1)
        totals = store.totals(run.id)
        assert (totals.infer.calls, totals.infer.rate_limited, totals.cost_usd) == (3, 1, 0.1875)
        assert totals.wall_s == 86.0
        one, two, three = store.rows(run.id)
        assert one.answer == Answer(text="7", how="tag")
        assert one.score == Score(status=Status.SCORED, correct=True, tp=1, detail={"reason": "listed"})
        assert isinstance(one.completion, Completion)
        assert (one.completion.text, one.image_scale, one.image_sha256) == ("<answer>7</answer>", 0.5, "abcd")
        assert one.verdicts["claude-sonnet-5"] == Verdict(
            correct=True, reply="As listed. [RESULT] 1", judge="claude-sonnet-5"
        )
        assert two.failure is not None
        assert (two.status, two.failure.kind) == (Status.FAILED, FailureKind.BAD_REQUEST)
        assert (three.status, three.sample.options) == (Status.PENDING, ("3", "7"))
        assert len(store.row(run.id, "a").calls) == 3
        assert not store.scores_stale(run.id, 1)
        rescore = store.last_rescore(run.id)
        assert (rescore is None) == (version < 2)
        if rescore is not None:
            (change,) = store.score_changes(rescore.id)
            assert (change.row_id, change.cause, change.correct_now) == ("a", "reading", True)
            assert change.answer == Answer(text="seven", how="untagged")
    async with Reader.open(old) as reader:
        assert [stored.sample.id for stored in await reader.pending(run.id, -1, 9)] == ["b", "c"]
        assert await reader.judge_replies(1, [b"\xaa"]) == {b"\xaa": ["As listed. [RESULT] 1"]}


# ---------------------------------------------------------------- the mechanism


def m998_nickname(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE run ADD COLUMN nickname TEXT")


def m999_broken(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE run ADD COLUMN half TEXT")
    connection.execute("this is no SQL")


LATER: dict[str, Callable[[sqlite3.Connection], None]] = {
    **MIGRATIONS,
    "m998_nickname": m998_nickname,
}


def columns(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[1] for row in connection.execute("PRAGMA table_info(run)")}


@pytest.fixture
def store_v1(tmp_path: Path) -> Path:
    path = tmp_path / "v1.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD[0].read_text(encoding="utf-8"))
    return path


def bare(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def test_a_store_runs_the_steps_it_lacks_once(store_v1: Path) -> None:
    for now in (10.0, 20.0):
        with closing(bare(store_v1)) as connection:
            bring_up_to_date(connection, store_v1, read_only=False, now=now, steps=LATER)
            noted = dict(connection.execute("SELECT name, applied_at FROM migration"))
            assert connection.execute("PRAGMA user_version").fetchone() == (len(LATER),)
    assert noted == {"m001_first": 1790000000.5} | dict.fromkeys(list(LATER)[1:], 10.0)
    assert "nickname" in columns(store_v1)
    # To today's program this is a newer store.
    with pytest.raises(StoreVersionError, match=f"store version {len(LATER)}"):
        Store.open(store_v1)


def test_a_step_that_fails_leaves_the_store_as_it_was(store_v1: Path) -> None:
    before = shape(store_v1)
    with closing(bare(store_v1)) as connection, pytest.raises(sqlite3.OperationalError):
        bring_up_to_date(
            connection, store_v1, read_only=False, now=10.0, steps={**LATER, "m999_broken": m999_broken}
        )
    assert shape(store_v1) == before
    Store.open(store_v1).close()


def test_a_step_that_another_process_runs_meanwhile_is_not_run_again(
    store_v1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(bare(store_v1)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    look = migrations._is_newest
    looks: list[bool] = []

    def look_and_let_another_in(connection: sqlite3.Connection, path: Path, newest: int) -> bool:
        looks.append(look(connection, path, newest))
        if len(looks) == 1:
            with closing(bare(store_v1)) as other:
                migrations._apply(other, 5.0, LATER)
        return looks[-1]

    monkeypatch.setattr(migrations, "_is_newest", look_and_let_another_in)
    with closing(bare(store_v1)) as connection:
        bring_up_to_date(connection, store_v1, read_only=False, now=10.0, steps=LATER)
        noted = dict(connection.execute("SELECT name, applied_at FROM migration"))
    assert looks == [False, True]
    assert noted["m998_nickname"] == 5.0


def test_a_store_opened_for_reading_is_not_migrated(store_v1: Path) -> None:
    before = store_v1.read_bytes()
    with (
        closing(bare(store_v1)) as connection,
        pytest.raises(StoreError, match="open it once with a command"),
    ):
        bring_up_to_date(connection, store_v1, read_only=True, now=10.0, steps=LATER)
    assert store_v1.read_bytes() == before


def test_a_new_store_has_all_steps_noted(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
    with closing(connect(path)) as connection:
        noted = [name for (name,) in connection.execute("SELECT name FROM migration ORDER BY name")]
    assert noted == list(MIGRATIONS)
