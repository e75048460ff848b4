"""One flat record a sample, with everything known of it: the row of every export format.

A value that is not known is None, never 0 or an empty text.
"""

from __future__ import annotations

from collections.abc import Iterator

from mmbu_async.model import Completion, Json
from mmbu_async.store import RowDetail, RowRecord, StoredCall

DATA = "data."
"""Goes before the names of the dataset's own columns, which could be any."""


def record(detail: RowDetail, run: str, judge: str | None) -> dict[str, Json]:
    """`judge`: the name of the judge whose verdicts make the scores. The dataset's columns are under
    `fields`."""
    row = detail.record
    sample, verdict = row.sample, row.verdicts.get(judge or "")
    return {
        "run": run,
        "row_id": sample.id,
        "position": sample.position,
        "family": row.family,
        "route": sample.route,
        "question": sample.question,
        "true_answer": sample.answer,
        "options": list(sample.options),
        "images": [image.locator for image in sample.images],
        "strata": {name: list(values) for name, values in sample.strata.items()},
        **_score(row),
        **_reply(row),
        "judge": judge if verdict else None,
        "verdict": verdict.correct if verdict else None,
        "judge_reply": verdict.reply if verdict else None,
        "verdicts": [
            {"judge": name, "correct": given.correct, "reply": given.reply}
            for name, given in row.verdicts.items()
        ],
        **_spending(row),
        "image_scale": row.image_scale,
        "image_sha256": row.image_sha256 or None,
        "image_note": row.image_note or None,
        "calls": list(_calls(detail)),
        "fields": dict(sample.fields),
    }


def _score(row: RowRecord) -> dict[str, Json]:
    score, answer = row.score, row.answer
    return {
        "status": row.status.value,
        "correct": score.correct if score else None,
        "answer": answer.text if answer else None,
        "answer_how": answer.how if answer else None,
        "tp": score.tp if score else None,
        "fp": score.fp if score else None,
        "fn": score.fn if score else None,
        "score_detail": dict(score.detail) if score else None,
    }


def _reply(row: RowRecord) -> dict[str, Json]:
    reply, timing, failure = row.completion, row.timing, row.failure
    return {
        "reply": reply.text if reply else None,
        "reasoning": (reply.reasoning or None) if reply else None,
        "finish": reply.finish.value if reply else None,
        "finish_raw": reply.finish_raw if reply else None,
        "reported_model": (reply.model or None) if reply else None,
        "request_id": (reply.request_id or None) if reply else None,
        "started_at": timing.started_at if timing else None,
        "total_s": timing.total_s if timing else None,
        "first_token_s": timing.first_token_s if timing else None,
        "failure_kind": failure.kind.value if failure else None,
        "failure_message": failure.message if failure else None,
        "failure_status": failure.status if failure else None,
    }


def _spending(row: RowRecord) -> dict[str, Json]:
    """All exchanges about the row. Tokens are None where an endpoint did not report them all."""
    own, judge = row.usage, row.judge_usage
    known = row.cost_usd or not row.cost_unknown
    return {
        "attempts": row.attempts,
        "input_tokens": own.input_tokens if own.reported else None,
        "output_tokens": own.output_tokens if own.reported else None,
        "reasoning_tokens": own.reasoning_tokens if own.reported else None,
        "cached_tokens": own.cached_tokens if own.reported else None,
        "cache_write_tokens": own.cache_write_tokens if own.reported else None,
        "judge_attempts": row.judge_attempts,
        "judge_input_tokens": judge.input_tokens if judge.reported else None,
        "judge_output_tokens": judge.output_tokens if judge.reported else None,
        "cost_usd": row.cost_usd if known else None,
        "cost_unknown": row.cost_unknown,
    }


def _calls(detail: RowDetail) -> Iterator[dict[str, Json]]:
    """Every exchange in the order in which it was stored. The reply's text is not repeated here."""
    for call in detail.calls:
        attempt = call.attempt
        yield {
            "session": call.session_id,
            "judge": call.judge,
            "attempt": attempt.number,
            "started_at": attempt.timing.started_at,
            "total_s": attempt.timing.total_s,
            "first_token_s": attempt.timing.first_token_s,
            **_outcome(call),
            "cost_usd": attempt.cost_usd,
        }


def _outcome(call: StoredCall) -> dict[str, Json]:
    outcome = call.attempt.outcome
    usage = outcome.usage
    tokens = {
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
    }
    if isinstance(outcome, Completion):
        found: dict[str, Json] = {"finish": outcome.finish.value, "request_id": outcome.request_id}
        if call.judge is not None:
            found["text"] = outcome.text
    else:
        found = {
            "failure": outcome.kind.value,
            "message": outcome.message,
            "status": outcome.status,
            "request_id": outcome.request_id,
        }
    return {**found, **tokens}
