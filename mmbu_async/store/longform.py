"""What the long form of a run says of each row: strata and score. Texts and exchanges stay on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

from mmbu_async.model import Status
from mmbu_async.store import codec
from mmbu_async.store.sql import query

ROWS_A_PAGE = 2000
STRATA_KEPT = 10_000
"""Parsed strata that are kept for the next row with the same; a benchmark has far fewer combinations."""

Strata = tuple[tuple[str, tuple[str, ...]], ...]
"""Attributes with the values that a row has; a key of mappings, since many rows have the same."""


class LongRow(NamedTuple):
    """One row. A tuple, since an export makes one for each of many thousand rows."""

    key: int
    position: int
    row_id: str
    family: str
    strata: Strata
    status: Status
    correct: bool | None
    """The counts below are 0 without a score."""
    tp: int
    fp: int
    fn: int
    judged: bool
    """Whether the score was made from a verdict."""
    cluster: str | None
    """Name of the cluster that the row is in, where its benchmark has clusters."""


def long_rows(connection: sqlite3.Connection, run_id: int) -> Iterator[LongRow]:
    """The selected rows in order of position, streamed."""
    known: dict[str, Strata] = {}
    after = 0
    while page := connection.execute(
        query("long_page"), {"run": run_id, "after": after, "n": ROWS_A_PAGE}
    ).fetchall():
        for values in page:
            yield _row_from(values, known)
        after = page[-1][0]


def _row_from(values: tuple[Any, ...], known: dict[str, Strata]) -> LongRow:
    key, position, row_id, family, text, status, correct, tp, fp, fn, judged, detail, replied, given_up = (
        values
    )
    strata = known.get(text)
    if strata is None:
        strata = tuple((name, tuple(dict.fromkeys(given))) for name, given in codec.load(text).items())
        if len(known) < STRATA_KEPT:
            known[text] = strata
    if status is not None:
        standing = Status(status)
    elif replied:
        standing = Status.UNJUDGED
    else:
        standing = Status.FAILED if given_up else Status.PENDING
    return LongRow(
        key,
        position,
        row_id,
        family,
        strata,
        standing,
        None if correct is None else bool(correct),
        tp or 0,
        fp or 0,
        fn or 0,
        bool(judged),
        _cluster(detail),
    )


def _cluster(detail: str | None) -> str | None:
    found = None if detail is None else codec.load(detail).get("cluster")
    return None if found is None else str(found)
