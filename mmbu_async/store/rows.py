"""Everything known of a row, for reports, exports and `mmbu show`. Streamed a page at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mmbu_async.model import (
    Answer,
    Attempt,
    Completion,
    Failure,
    Sample,
    Score,
    Status,
    Timing,
    Usage,
    Verdict,
)
from mmbu_async.store import codec
from mmbu_async.store.scores import verdict_from
from mmbu_async.store.sql import query

ROWS_A_PAGE = 50
"""Few: a row can hold some 100 KB, and Python walks again and again over what is kept of a larger page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCall:
    """One exchange about a row, as it was stored."""

    session_id: int
    judge: str | None
    """Name of the judge that was asked; None: the model under test."""
    attempt: Attempt
    final: bool
    image_scale: float
    image_sha256: str
    image_note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRecord:
    """Everything known of a row."""

    key: int
    sample: Sample
    family: str
    status: Status
    """That of the score. Without one: UNJUDGED where there is a reply, FAILED where the row was given up,
    else PENDING."""
    completion: Completion | None
    timing: Timing | None
    """Of the exchange that gave the reply."""
    failure: Failure | None
    """The last failed exchange, where the row has no reply."""
    attempts: int
    """Exchanges with the model under test, over all sessions."""
    usage: Usage
    """Summed over these exchanges."""
    judge_attempts: int
    judge_usage: Usage
    cost_usd: float
    """Known costs of the row, model and judges."""
    cost_unknown: int
    """Exchanges of the row that were charged for at an unknown price."""
    image_scale: float
    """Sent size / original size."""
    image_sha256: str
    image_note: str
    answer: Answer | None
    score: Score | None
    verdicts: Mapping[str, Verdict]
    """By the judge's name, earlier judges included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDetail:
    """A row with each exchange about it."""

    record: RowRecord
    calls: tuple[StoredCall, ...]
    """In the order in which they were stored."""


def details(connection: sqlite3.Connection, run_id: int) -> Iterator[RowDetail]:
    """The selected rows in order of position."""
    after = 0
    while page := _page(connection, run_id, after, ROWS_A_PAGE):
        yield from page
        after = page[-1].record.key


def row(connection: sqlite3.Connection, run_id: int, row_id: str) -> RowDetail | None:
    """One row by its id; None where the run has none of this id."""
    found = connection.execute(query("key_of_row"), {"run": run_id, "row": codec.clean(row_id)}).fetchone()
    return None if found is None else by_key(connection, run_id, found[0])


def by_key(connection: sqlite3.Connection, run_id: int, key: int) -> RowDetail | None:
    """One row by its key; None where the run has none of this key."""
    page = _page(connection, run_id, key - 1, 1)
    return page[0] if page and page[0].record.key == key else None


def _page(connection: sqlite3.Connection, run_id: int, after: int, n: int) -> list[RowDetail]:
    heads = connection.execute(query("row_page"), {"run": run_id, "after": after, "n": n}).fetchall()
    if not heads:
        return []
    span = {"run": run_id, "first": heads[0][0], "last": heads[-1][0]}
    calls: dict[int, list[StoredCall]] = {}
    for key, *values in connection.execute(query("calls_of_span"), span):
        calls.setdefault(key, []).append(_call_from(values))
    verdicts: dict[int, dict[str, Verdict]] = {}
    for key, judge, correct, reply in connection.execute(query("verdicts_of_span"), span):
        verdicts.setdefault(key, {})[judge] = verdict_from(correct, reply, judge)
    return [_detail(head, calls.get(head[0], []), verdicts.get(head[0], {})) for head in heads]


def _call_from(values: Sequence[Any]) -> StoredCall:
    session_id, final, judge, image_scale, image_sha256, image_note, *attempt = values
    return StoredCall(
        session_id=session_id,
        judge=judge,
        attempt=codec.attempt_from(attempt),
        final=bool(final),
        image_scale=image_scale,
        image_sha256=(image_sha256 or b"").hex(),
        image_note=image_note,
    )


def _detail(head: Sequence[Any], calls: list[StoredCall], verdicts: Mapping[str, Verdict]) -> RowDetail:
    sample, family = codec.sample_from(head[1 : 1 + codec.SAMPLE_WIDTH])
    answer, score = _score_from(head[1 + codec.SAMPLE_WIDTH :])
    own = [call for call in calls if call.judge is None]
    judges = [call for call in calls if call.judge is not None]
    reply = next((call for call in own if isinstance(call.attempt.outcome, Completion)), None)
    shown = reply or (own[-1] if own else None)
    outcome = shown.attempt.outcome if shown else None
    record = RowRecord(
        key=head[0],
        sample=sample,
        family=family,
        status=score.status if score else _status_unscored(own),
        completion=outcome if isinstance(outcome, Completion) else None,
        timing=reply.attempt.timing if reply else None,
        failure=outcome if isinstance(outcome, Failure) else None,
        # An image that could not be sent is stored as attempt 0: no exchange took place.
        attempts=sum(call.attempt.number > 0 for call in own),
        usage=_sum_usage(own),
        judge_attempts=len(judges),
        judge_usage=_sum_usage(judges),
        cost_usd=sum(call.attempt.cost_usd or 0.0 for call in calls),
        cost_unknown=sum(_cost_unknown(call.attempt) for call in calls),
        image_scale=shown.image_scale if shown else 1.0,
        image_sha256=shown.image_sha256 if shown else "",
        image_note=shown.image_note if shown else "",
        answer=answer,
        score=score,
        verdicts=verdicts,
    )
    return RowDetail(record=record, calls=tuple(calls))


def _status_unscored(own: Sequence[StoredCall]) -> Status:
    if any(isinstance(call.attempt.outcome, Completion) for call in own):
        return Status.UNJUDGED
    return Status.FAILED if any(call.final for call in own) else Status.PENDING


def _score_from(values: Sequence[Any]) -> tuple[Answer | None, Score | None]:
    answer, how, status, correct, tp, fp, fn, detail = values
    if status is None:
        return None, None
    score = Score(
        status=Status(status),
        correct=None if correct is None else bool(correct),
        tp=tp,
        fp=fp,
        fn=fn,
        detail=codec.load(detail),
    )
    return Answer(text=answer, how=how), score


def _sum_usage(calls: Sequence[StoredCall]) -> Usage:
    """Tokens over all exchanges. `reported` is False where a reply came without a count."""
    found = [call.attempt.outcome.usage for call in calls]
    if len(found) == 1:
        return found[0] or Usage()
    usages = [usage for usage in found if usage is not None]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        cache_write_tokens=sum(usage.cache_write_tokens for usage in usages),
        reported=all(usage.reported for usage in usages),
    )


def _cost_unknown(attempt: Attempt) -> bool:
    return attempt.cost_usd is None
