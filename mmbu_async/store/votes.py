"""How the judges of a run voted: by row, and counted over rows with the same votes."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from mmbu_async.store import codec
from mmbu_async.store.sql import query

ROWS_A_PAGE = 1000


class Standing(StrEnum):
    """What the judges have to do with a row."""

    JUDGED = "judged"
    """A judge decides, or should."""
    RIGHT = "right"
    WRONG = "wrong"
    """Scored by rule, whoever judges."""
    UNGRADED = "ungraded"
    """Its answer is not public."""
    OPEN = "open"
    """It has no reply."""


class Votes(NamedTuple):
    """Rows that are alike in these are counted together."""

    standing: Standing
    votes: tuple[tuple[int, bool], ...]
    """Judge and whether it found the answer right, in the order of the judges' ids; empty unless JUDGED. A
    judge without a usable verdict on the reply as it is read today is not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VotedRow:
    """A row with the votes on it."""

    row_id: str
    family: str
    truth: str
    answer: str
    """As committed; '' where there is none."""
    standing: Standing
    votes: Mapping[int, bool]


def patterns(connection: sqlite3.Connection, run_id: int) -> Counter[Votes]:
    """Over all selected rows."""
    found: Counter[Votes] = Counter()
    sql = _with_votes("vote_patterns")
    for standing, votes, count in connection.execute(sql, {"run": run_id, "after": 0, "n": -1}):
        found[Votes(Standing(standing), tuple(sorted(_votes(votes).items())))] += count
    return found


def rows(connection: sqlite3.Connection, run_id: int) -> Iterator[VotedRow]:
    """All selected rows in order of position, streamed."""
    sql, after = _with_votes("votes_of_rows"), 0
    while page := connection.execute(sql, {"run": run_id, "after": after, "n": ROWS_A_PAGE}).fetchall():
        for _, row_id, family, truth, answer, standing, votes in page:
            yield VotedRow(
                row_id=row_id,
                family=family,
                truth=truth,
                answer=answer or "",
                standing=Standing(standing),
                votes=_votes(votes),
            )
        after = page[-1][0]


def _with_votes(name: str) -> str:
    return query(name).replace("/* row_votes */", query("row_votes").rstrip(";"))


def _votes(text: str | None) -> dict[int, bool]:
    return {int(judge): bool(correct) for judge, correct in codec.load(text or "{}").items()}
