"""How each row came out, and nothing more: what a report counts. Leaves texts and exchanges on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mmbu_async.model import FailureKind, Finish, Json, Score, Status
from mmbu_async.store import codec
from mmbu_async.store.sql import query

ROWS_A_PAGE = 2000
STRATA_KEPT = 10_000
"""Parsed strata that are kept for the next row with the same; a benchmark has far fewer combinations."""


# Calling an enum takes five times as long as looking its members up, which counts with many thousand rows.
_STATUSES = {member.value: member for member in Status}
_FINISHES = {member.value: member for member in Finish}


class Spent(NamedTuple):
    """Time and tokens of one reply; those that the endpoint did not report are None."""

    total_s: float
    first_token_s: float | None
    input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None


class Outcome(NamedTuple):
    """How one row came out. A tuple, since a report makes one for each of many thousand rows."""

    family: str
    strata: Mapping[str, tuple[str, ...]]
    status: Status
    """That of the score. Without one: UNJUDGED where there is a reply, FAILED where the row was given up,
    else PENDING."""
    score: Score | None
    how: str | None
    """The rung of the ladder that found the answer; None without a score."""
    answered: bool
    """Whether the answer holds more than white space; True without a score."""
    finish: Finish | None
    """How the reply ended; None where the row has none."""
    model: str
    """As the endpoint reported it with the reply."""
    failure: FailureKind | None
    """Of the last exchange, where the row was given up."""
    image_scale: float
    spent: Spent | None
    """What the reply took; None where the row has none."""


def outcomes(connection: sqlite3.Connection, run_id: int) -> Iterator[Outcome]:
    """The selected rows in order of position, streamed."""
    known: dict[str, Mapping[str, tuple[str, ...]]] = {}
    after = 0
    while page := connection.execute(
        query("outcome_page"), {"run": run_id, "after": after, "n": ROWS_A_PAGE}
    ).fetchall():
        for values in page:
            yield _outcome_from(values, known)
        after = page[-1][0]


def _outcome_from(values: tuple[Any, ...], known: dict[str, Mapping[str, tuple[str, ...]]]) -> Outcome:
    _, family, strata, finish, model, scale = values[:6]
    status, correct, tp, fp, fn, how, answer, detail, failure = values[11:]
    found = known.get(strata)
    if found is None:
        found = {name: tuple(given) for name, given in codec.load(strata).items()}
        if len(known) < STRATA_KEPT:
            known[strata] = found
    score = None
    if status is not None:
        score = Score(
            status=_STATUSES[status],
            correct=None if correct is None else bool(correct),
            tp=tp,
            fp=fp,
            fn=fn,
            detail=_detail(detail),
        )
    return Outcome(
        family=family,
        strata=found,
        status=_status(score, replied=finish is not None, given_up=failure is not None),
        score=score,
        how=how,
        answered=answer is None or bool(answer.strip()),
        finish=None if finish is None else _FINISHES[finish],
        model=model or "",
        failure=None if failure is None else FailureKind(failure),
        image_scale=1.0 if scale is None else scale,
        spent=None if finish is None else Spent._make(values[6:11]),
    )


def _status(score: Score | None, *, replied: bool, given_up: bool) -> Status:
    if score is not None:
        return score.status
    if replied:
        return Status.UNJUDGED
    return Status.FAILED if given_up else Status.PENDING


def _detail(text: str) -> Mapping[str, Json]:
    return {} if text == "{}" else codec.load(text)
