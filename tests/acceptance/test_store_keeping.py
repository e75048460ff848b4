"""Looking after a store through the program: copies of a running run, two machines at one run, damage."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.simulator.demo import draw_split
from tests.acceptance.program import MINI, Simulated, kill, mmbu, simulator, start, wait_until

ROWS = 60


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_split(tmp_path_factory.mktemp("split"), rows=ROWS, seed=3)


def flags(server: Simulated, data: Path, store: Path, *more: str) -> list[str]:
    return [
        *("--name", "r", "--model", "m", "--data", str(data), "--store", str(store)),
        *("--concurrency", "6", "--judge-concurrency", "6", *more),
        *server.flags(),
    ]


def scores(store: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute(
            "SELECT row_id, score.answer, how, status, correct, tp, fp, fn, detail "
            "FROM score JOIN sample ON sample.id = sample_id ORDER BY row_id"
        ).fetchall()


def test_a_copy_of_a_running_run_goes_on_like_the_run(tmp_path: Path, split: Path) -> None:
    store, copy = tmp_path / "s.sqlite", tmp_path / "copy.sqlite"
    fast = ("--rpm", "1000000")
    with simulator(tmp_path / "log.jsonl") as server:
        # A row a second, so that it is at work for longer than the commands beside it take.
        process = start("run", "mmbu-public", *flags(server, split, store, "--rpm", "60"))
        assert wait_until(lambda: len(server.requests()) >= 6, process)
        copied = mmbu("store", "backup", str(copy), "--store", str(store))
        assert copied.returncode == 0, copied.stderr
        assert copied.stdout.startswith(f"wrote {copy}: 1 run, ")
        refused = mmbu("store", "vacuum", "--store", str(store))
        assert refused.returncode == 7
        assert "run 'r' is at work" in refused.stderr
        checked = mmbu("store", "check", "--store", str(store))
        assert checked.returncode == 0, checked.stdout
        assert process.poll() is None, "all of this beside the run"
        kill(process)
        asked = len(server.requests())
        last = mmbu("resume", "r", "--store", str(copy), *fast)
        assert last.returncode == 0, last.stderr
        assert asked < len(server.requests())
        last = mmbu("resume", "r", "--store", str(store), *fast)
        assert last.returncode == 0, last.stderr
    assert scores(copy) == scores(store)
    assert len(scores(store)) == ROWS
    again = mmbu("store", "backup", str(copy), "--store", str(store))
    assert again.returncode == 7
    assert "is there already; name another file, or replace it with --force" in again.stderr
    assert mmbu("store", "backup", str(copy), "--store", str(store), "--force").returncode == 0
    assert mmbu("store", "vacuum", "--store", str(store)).returncode == 0
    sound = mmbu("store", "check", "--store", str(store))
    assert (sound.returncode, sound.stdout.splitlines()[-1]) == (0, f"{store} is sound.")


def test_two_machines_at_one_run_become_one(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "metadata.jsonl").write_bytes((MINI / "metadata.jsonl").read_bytes())
    shutil.copytree(MINI / "images", data / "images")
    one, two, whole = (tmp_path / f"{name}.sqlite" for name in ("one", "two", "whole"))
    tasks = [("--task", "classification"), ("--task", "object detection")]
    with simulator(tmp_path / "log.jsonl") as server:
        for store, chosen in ((one, tasks[0]), (two, tasks[1]), (whole, tasks[0] + tasks[1])):
            done = mmbu("run", "mmbu-public", *flags(server, data, store, *chosen))
            assert done.returncode == 0, done.stderr
        merged = mmbu("store", "merge", str(two), "--store", str(one))
        assert merged.returncode == 0, merged.stderr
        assert merged.stdout.startswith("r: ")
        assert "more rows" in merged.stdout
        again = mmbu("store", "merge", str(two), "--store", str(one))
        assert again.stdout.strip() == "r: nothing new"
        before = len(server.requests())
        # Nothing is left to buy, and the run says that it is about the rows of both.
        resumed = mmbu("resume", "r", "--store", str(one))
        assert resumed.returncode == 0, resumed.stderr
        assert len(server.requests()) == before
    assert scores(one) == scores(whole) != []
    assert mmbu("store", "check", "--store", str(one)).returncode == 0
    # Taken out again, it is a store like any other.
    out = tmp_path / "out.sqlite"
    assert mmbu("store", "export", "r", str(out), "--store", str(one)).returncode == 0
    assert scores(out) == scores(one)
    reports = [mmbu("report", "r", "--store", str(store), "--format", "markdown") for store in (one, out)]
    assert reports[0].returncode == 0, reports[0].stderr
    assert reports[0].stdout == reports[1].stdout


def test_another_experiment_of_the_same_name_is_not_mixed_in(tmp_path: Path, split: Path) -> None:
    one, two = tmp_path / "one.sqlite", tmp_path / "two.sqlite"
    with simulator(tmp_path / "log.jsonl") as server:
        assert mmbu("run", "mmbu-public", *flags(server, split, one, "--limit", "3")).returncode == 0
        other = flags(server, split, two, "--limit", "3", "--max-tokens", "77")
        assert mmbu("run", "mmbu-public", *other).returncode == 0
    refused = mmbu("store", "merge", str(two), "--store", str(one))
    assert refused.returncode == 2
    assert "max_tokens: 2048 here, 77 there" in refused.stderr
    assert refused.stderr.count("\n") == 1
    for words in ("r-2 (r there): new, 3 rows", "r-2 (r there): nothing new"):
        merged = mmbu("store", "merge", str(two), "--store", str(one), "--rename")
        assert (merged.returncode, merged.stdout[: len(words)]) == (0, words)


def test_a_damaged_store_is_called_so(tmp_path: Path, split: Path) -> None:
    store = tmp_path / "s.sqlite"
    with simulator(tmp_path / "log.jsonl") as server:
        assert mmbu("run", "mmbu-public", *flags(server, split, store, "--limit", "3")).returncode == 0
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE sample SET answer = 'another' WHERE position = 1")
    found = mmbu("store", "check", "--store", str(store))
    assert found.returncode == 7
    assert found.stdout.startswith("damage: dataset 1 (mmbu-public")
    assert "its rows are not those that were registered.\nThe store is damaged" in found.stdout
    taken = mmbu("store", "merge", str(store), "--store", str(tmp_path / "here.sqlite"))
    assert taken.returncode == 7
    assert "nothing was taken from it" in taken.stderr
