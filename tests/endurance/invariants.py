"""What must hold of a store, looked at with SQLite alone and from outside of the program."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Scores = list[tuple[Any, ...]]

_VERDICT = re.compile(r"\[RESULT\]\s*[01]\s*$")


@contextmanager
def reading(store: Path) -> Iterator[sqlite3.Connection]:
    """A connection that changes nothing but what SQLite itself recovers."""
    with closing(sqlite3.connect(store, timeout=30)) as connection:
        yield connection


def sound(connection: sqlite3.Connection) -> list[str]:
    """After every session, however it ended."""
    broken = []
    if (found := connection.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
        broken.append(f"integrity_check: {found[:3]}")
    if found := connection.execute("PRAGMA foreign_key_check").fetchall():
        broken.append(f"foreign_key_check: {found[:3]}")
    twice = connection.execute(
        "SELECT run_id, sample_id, count(*) FROM call WHERE ok = 1 AND judge_id IS NULL "
        "GROUP BY run_id, sample_id HAVING count(*) > 1"
    ).fetchall()
    if twice:
        broken.append(f"rows with more than one reply: {twice[:3]}")
    return broken


def history(connection: sqlite3.Connection, last: int) -> str:
    """A hash over every call up to `last`: what was stored once never changes and never goes away."""
    digest = hashlib.sha256()
    for row in connection.execute("SELECT * FROM call WHERE id <= ? ORDER BY id", (last,)):
        digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def scores(connection: sqlite3.Connection) -> Scores:
    """What a report is made from, by the rows' own ids."""
    return connection.execute(
        "SELECT row_id, score.answer, how, status, correct, tp, fp, fn, detail "
        "FROM score JOIN sample ON sample.id = sample_id ORDER BY row_id"
    ).fetchall()


def replies(connection: sqlite3.Connection) -> Scores:
    return connection.execute(
        "SELECT row_id, call.text, call.kind FROM call JOIN sample ON sample.id = sample_id "
        "WHERE ok = 1 AND judge_id IS NULL ORDER BY row_id"
    ).fetchall()


def complete(connection: sqlite3.Connection, rows: int) -> list[str]:
    """Every row exactly once: selected, replied, scored."""
    broken = []
    for what, query in (
        ("selected", "SELECT count(*), count(DISTINCT sample_id) FROM selection"),
        ("replied", "SELECT count(*), count(DISTINCT sample_id) FROM call WHERE ok = 1 AND judge_id IS NULL"),
        ("scored", "SELECT count(*), count(DISTINCT sample_id) FROM score WHERE status = 'scored'"),
    ):
        found = connection.execute(query).fetchone()
        if found != (rows, rows):
            broken.append(f"{found[1]} of {rows} rows are {what}, in {found[0]} records")
    open_sessions = connection.execute("SELECT count(*) FROM session WHERE ended IS NULL").fetchone()
    if open_sessions != (0,):
        broken.append(f"{open_sessions[0]} sessions have no end")
    return broken


def bought_once(connection: sqlite3.Connection) -> list[str]:
    """No judge is paid twice for a usable verdict on one and the same prompt."""
    bought: Counter[tuple[int, bytes]] = Counter()
    for judge, sha, text in connection.execute(
        "SELECT judge_id, prompt_sha, text FROM call WHERE ok = 1 AND judge_id IS NOT NULL"
    ):
        if _VERDICT.search(text):
            bought[judge, sha] += 1
    twice = sum(count > 1 for count in bought.values())
    return [f"{twice} prompts have more than one usable verdict of the same judge"] if twice else []


def exported(files: Sequence[Path], expected: Scores) -> list[str]:
    """Each row once, in every format, with the reply that the store has."""
    broken = []
    wanted = [(row_id, text) for row_id, text, _ in expected]
    for file in files:
        found = sorted((row["row_id"], row["reply"] or "") for row in _rows(file))
        if found != wanted:
            ids = Counter(row_id for row_id, _ in found)
            twice = [row_id for row_id, count in ids.items() if count > 1]
            broken.append(f"{file.name}: {len(found)} rows for {len(wanted)}; twice: {twice[:3]}")
    return broken


def _rows(file: Path) -> list[dict[str, Any]]:
    match file.suffix:
        case ".jsonl":
            return [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]
        case ".csv":
            with file.open(newline="", encoding="utf-8-sig") as opened:
                return list(csv.DictReader(opened))
        case _:
            return list(pq.read_table(file).to_pylist())
