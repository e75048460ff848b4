"""What a re-score changed: scores are derived and overwritten, so what they were before is kept here."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mmbu_async.model import Answer, Score, Status
from mmbu_async.store.sql import query

ROWS_A_PAGE = 1000


class Cause(StrEnum):
    """Why a score is another one than before."""

    READING = "reading"
    """The reply was read, or the answer scored, by other rules."""
    VERDICT = "verdict"
    """The answer is the same, and a judge's word on it another one, or another judge's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescore:
    """A re-score that changed something."""

    id: int
    at: float
    """Unix seconds."""
    package_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreChange:
    """A row whose score a re-score changed."""

    row_id: str
    cause: Cause
    answer: Answer
    """As it was."""
    score: Score
    """As it was; its detail is not kept."""
    status_now: Status
    correct_now: bool | None
    """Of the score as it is today."""


def keep(connection: sqlite3.Connection, run_id: int, *, package_version: str, now: float) -> int | None:
    """Keep the scores that `temp.new_score` is about to change, inside the transaction that changes them;
    returns the id of the re-score, None where nothing changes."""
    connection.execute(query("changed_scores"))
    values = {"run": run_id, "now": now, "version": package_version}
    noted = connection.execute(query("note_rescore"), values)
    if noted.rowcount:
        connection.execute(query("keep_changed_scores"), {"rescore": noted.lastrowid})
    connection.execute(query("drop_changed_scores"))
    return noted.lastrowid if noted.rowcount else None


def last(connection: sqlite3.Connection, run_id: int) -> Rescore | None:
    found = connection.execute(query("last_rescore"), {"run": run_id}).fetchone()
    return None if found is None else Rescore(id=found[0], at=found[1], package_version=found[2])


def changes(connection: sqlite3.Connection, rescore_id: int) -> Iterator[ScoreChange]:
    """In order of position, streamed."""
    after = 0
    while page := connection.execute(
        query("score_changes"), {"rescore": rescore_id, "after": after, "n": ROWS_A_PAGE}
    ).fetchall():
        yield from map(_change_from, page)
        after = page[-1][0]


def _change_from(values: tuple[Any, ...]) -> ScoreChange:
    _, row_id, cause, answer, how, status, correct, tp, fp, fn, status_now, correct_now = values
    return ScoreChange(
        row_id=row_id,
        cause=Cause(cause),
        answer=Answer(text=answer, how=how),
        score=Score(status=Status(status), correct=_truth(correct), tp=tp, fp=fp, fn=fn),
        status_now=Status(status_now),
        correct_now=_truth(correct_now),
    )


def _truth(value: int | None) -> bool | None:
    return None if value is None else bool(value)
