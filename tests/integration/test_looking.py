"""Reports of a store that lies where nothing may be written."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.errors import StoreError
from mmbu_async.store import Store
from tests.whole_run import complete, config, simulated

pytestmark = pytest.mark.usefixtures("keys", "short_waits")

ROWS = 4


@pytest.fixture
async def read_only(data: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run whose scores are out of date, its newest commits in the log beside the file. Permissions
    do not hold back root, as which containers run tests: that writing is refused is told by `os.access`."""
    async with simulated() as simulator:
        await complete(await api.evaluate(config(simulator, store, data, limit=ROWS)), store, ROWS)
    folder = tmp_path / "theirs"
    folder.mkdir()
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("DELETE FROM score")
        for file in store.parent.glob(f"{store.name}*"):
            shutil.copyfile(file, folder / file.name)
    access = os.access
    monkeypatch.setattr(
        "os.access", lambda path, mode: folder not in (path, path.parent) and access(path, mode)
    )

    def refuse(path: Path, **options: Any) -> Store:
        assert folder not in path.parents, "nothing is opened there"
        return opened(path, **options)

    opened = Store.open
    monkeypatch.setattr(Store, "open", refuse)
    return folder / store.name


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


async def test_it_is_looked_at_in_a_copy(read_only: Path, tmp_path: Path) -> None:
    before = contents(read_only.parent)
    assert before[f"{read_only.name}-wal"], "or nothing is tested"
    report = api.report("r", store=read_only)
    assert (report.complete, report.rows.scored) == (True, ROWS)
    assert [one.counts.scored for one in api.status(store=read_only)] == [0]
    assert len(list(api.rows("r", store=read_only))) == ROWS
    assert api.export("r", tmp_path / "rows.jsonl", store=read_only) == ROWS
    assert api.card("r", store=read_only)
    assert api.show("r", "row-1", store=read_only).detail.record.sample.id == "row-1"
    assert not any(finding.damage for finding in api.store_check(store=read_only))
    assert api.store_backup(tmp_path / "copy.sqlite", store=read_only).runs == 1
    assert api.store_export("r", tmp_path / "one.sqlite", store=read_only).runs == 1
    assert api.store_merge(read_only, store=tmp_path / "all.sqlite").runs[0].new
    assert contents(read_only.parent) == before


async def test_one_that_is_written_meanwhile_is_not_guessed_at(
    read_only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copyfile = shutil.copyfile

    def busy(source: Path, target: Path) -> object:
        done = copyfile(source, target)
        with source.open("ab") as file:
            file.write(b"x")
        return done

    monkeypatch.setattr("shutil.copyfile", busy)
    with pytest.raises(StoreError, match="somebody is writing it"):
        api.report("r", store=read_only)
