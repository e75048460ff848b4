"""What a comparison of runs reads: scores by the key of their row, and the rows on which two runs part."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import orjson

from mmbu_async.model import Json, Status
from mmbu_async.store import codec
from mmbu_async.store.sql import query

ROWS_A_PAGE = 2000
FLIPS_A_PAGE = 200
"""Few, since their answers come along, and an answer can be long."""
STRATA_KEPT = 10_000
"""Parsed strata that are kept for the next row with the same; a benchmark has far fewer combinations."""

Strata = Mapping[str, tuple[str, ...]]


class Result(NamedTuple):
    """One selected row's score. A tuple, since a comparison makes one for each of many thousand rows."""

    key: int
    """The same in all runs over one dataset; rises with the row's position."""
    row_id: str
    family: str
    strata: Strata
    status: Status | None
    """That of the score; None without one."""
    correct: bool
    """False, as the counts are 0, where there is no score."""
    tp: int
    fp: int
    fn: int
    detail: Mapping[str, Json]
    fields: Mapping[str, Json] | None
    """The dataset's columns, where asked for."""


class FlipRecord(NamedTuple):
    """A row that one of two runs has right and the other wrong."""

    row_id: str
    family: str
    truth: str
    first_correct: bool
    first_answer: str
    second_answer: str


class JointCounts(NamedTuple):
    """Rows with a score in both of two runs."""

    right: int
    """In both."""
    wrong: int
    """In both."""
    first_only: int
    """Right in the first run alone."""
    second_only: int
    first_rows: int
    """Rows that the first run is about, with and without a score."""
    second_rows: int

    @property
    def n(self) -> int:
        return self.right + self.wrong + self.first_only + self.second_only


def results(connection: sqlite3.Connection, run_id: int, *, columns: bool) -> Iterator[Result]:
    """The selected rows in order of position, streamed; `columns` brings `fields` along."""
    known: dict[str, Strata] = {}
    after = 0
    values = {"run": run_id, "n": ROWS_A_PAGE, "columns": columns}
    while page := connection.execute(query("result_page"), values | {"after": after}).fetchall():
        for key, family, strata, status, correct, tp, fp, fn, detail, row_id, fields in page:
            found = known.get(strata)
            if found is None:
                found = {name: tuple(given) for name, given in codec.load(strata).items()}
                if len(known) < STRATA_KEPT:
                    known[strata] = found
            yield Result(
                key,
                row_id,
                family,
                found,
                None if status is None else Status(status),
                bool(correct),
                tp or 0,
                fp or 0,
                fn or 0,
                {} if detail is None or detail == "{}" else codec.load(detail),
                None if fields is None else codec.load(fields),
            )
        after = page[-1][0]


def flips(
    connection: sqlite3.Connection, first: int, second: int, among: Sequence[int]
) -> Iterator[FlipRecord]:
    """Rows that came out otherwise in run `second` than in `first`, of those with a score in all of `among`,
    in order of position, streamed."""
    after = 0
    runs = {"first": first, "second": second, "runs": orjson.dumps(list(among)).decode()}
    while page := connection.execute(
        query("flip_page"), runs | {"after": after, "n": FLIPS_A_PAGE}
    ).fetchall():
        for _, row_id, family, truth, correct, one, other in page:
            yield FlipRecord(row_id, family, truth, bool(correct), one, other)
        after = page[-1][0]


def joint_counts(connection: sqlite3.Connection, first: int, second: int) -> JointCounts:
    """Counted by the store, for those who need no more than right and wrong."""
    values = {"first": first, "second": second}
    found = {
        (bool(one), bool(other)): count
        for one, other, count in connection.execute(query("joint_counts"), values)
    }
    rows = [connection.execute(query("selected"), {"run": run}).fetchone()[0] for run in (first, second)]
    return JointCounts(
        right=found.get((True, True), 0),
        wrong=found.get((False, False), 0),
        first_only=found.get((True, False), 0),
        second_only=found.get((False, True), 0),
        first_rows=rows[0],
        second_rows=rows[1],
    )
