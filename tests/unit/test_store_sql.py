"""The statements in .sql files: each is found, each is valid, none is left over."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from importlib import resources
from pathlib import Path

import pytest

import mmbu_async.store
from mmbu_async.store.connect import connect
from mmbu_async.store.sql import FILES, query

TEXT = "".join(resources.files(mmbu_async.store).joinpath(file).read_text(encoding="utf-8") for file in FILES)
NAMES = re.findall(r"^-- name: (.*)$", TEXT, flags=re.MULTILINE)
COMPLETED = {
    "insert_calls",
    "put_verdicts",
    "judge_replies",
    "put_derived",
    "votes_of_rows",
    "vote_patterns",
    "insert_bench_request",
    "bench_requests",
}
"""Completed by the code with as many rows as it has: proved by the tests of what uses them."""
MADE = "CREATE TEMP (?:TABLE|VIEW) "


def test_names_are_unique() -> None:
    assert sorted(set(NAMES)) == sorted(NAMES)


def test_every_statement_is_used() -> None:
    package = Path(str(resources.files(mmbu_async.store)))
    code = "".join(file.read_text(encoding="utf-8") for file in package.glob("*.py"))
    assert [name for name in NAMES if f'"{name}"' not in code] == []


@pytest.mark.parametrize("name", sorted({*NAMES} - COMPLETED))
def test_every_statement_is_valid(tmp_path: Path, name: str) -> None:
    connect(tmp_path / "theirs.sqlite").close()
    with closing(connect(tmp_path / "store.sqlite")) as connection:
        connection.execute(query("attach_theirs"), {"uri": str(tmp_path / "theirs.sqlite")})
        for each in NAMES:
            if re.search(MADE, query(each)):
                connection.execute(query(each))
        text = re.sub(MADE, r"\g<0>other_", query(name))
        named = set(re.findall(r":(\w+)", text))
        try:
            connection.execute(f"EXPLAIN {text}", dict.fromkeys(named) or [None] * text.count("?"))
        except sqlite3.Error as error:
            pytest.fail(f"{name}: {error}")
