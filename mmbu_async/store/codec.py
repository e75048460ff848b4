"""Between the nouns and the columns: JSON, texts, samples, calls.

Lone surrogates are the one kind of text that SQLite cannot hold. Looking for them in every text would cost
more than storing it, so texts are bound as they are, and only where that fails `clean_values` replaces them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from mmbu_async.model import (
    Attempt,
    Completion,
    Failure,
    FailureKind,
    Finish,
    ImageRef,
    Json,
    Sample,
    Timing,
    Usage,
)

INT64 = 2**63


def dump(value: Json) -> str:
    """Canonical JSON: the same value gives the same text whatever the order of its keys."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        return orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS).decode()


def load(text: str) -> Json:
    return orjson.loads(text)


def clean(text: str) -> str:
    """The text with halves of a surrogate pair joined and lone ones replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean_values(values: Sequence[Any]) -> tuple[Any, ...]:
    """A row of values as SQLite can hold them: texts cleaned, integers kept within 64 bits."""
    return tuple(_clean_value(value) for value in values)


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int):
        return max(-INT64, min(value, INT64 - 1))
    return value


def _plain(value: Json) -> Json:
    """What orjson refuses, made acceptable: surrogates, integers over 64 bits (as text), tuples, odd keys."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -INT64 <= value < 2 * INT64 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return clean(str(value))


# ---------------------------------------------------------------- samples


def sample_values(sample: Sample, family: str) -> tuple[Any, ...]:
    """The columns of `sample` from position on."""
    return (
        sample.position,
        sample.id,
        family,
        sample.route,
        sample.question,
        sample.answer,
        dump(sample.options),
        dump([image.locator for image in sample.images]),
        dump(dict(sample.strata)),
        dump(dict(sample.fields)),
    )


def sample_from(values: Sequence[Any]) -> tuple[Sample, str]:
    """Sample and family from the columns in the order of `sample_values`."""
    position, row_id, family, route, question, answer, options, images, strata, fields = values
    sample = Sample(
        id=row_id,
        position=position,
        question=question,
        answer=answer,
        options=tuple(load(options)),
        route=route,
        images=tuple(ImageRef(locator=locator) for locator in load(images)),
        strata={name: tuple(found) for name, found in load(strata).items()},
        fields=load(fields),
    )
    return sample, family


SAMPLE_WIDTH = 10


# ---------------------------------------------------------------- calls

_NO_USAGE = (None, None, None, None, None, None)


def attempt_values(attempt: Attempt) -> tuple[Any, ...]:
    """The columns of `call` that an attempt fills, in the order of `attempt_from`."""
    timing, outcome = attempt.timing, attempt.outcome
    usage = outcome.usage
    tokens = (
        _NO_USAGE
        if usage is None
        else (
            usage.input_tokens,
            usage.output_tokens,
            usage.reasoning_tokens,
            usage.cached_tokens,
            usage.cache_write_tokens,
            int(usage.reported),
        )
    )
    head = (attempt.number, timing.started_at, timing.total_s, timing.first_token_s)
    if isinstance(outcome, Completion):
        return (
            *head,
            1,
            outcome.finish.value,
            outcome.finish_raw,
            None,
            None,
            outcome.request_id,
            outcome.model,
            *tokens,
            attempt.cost_usd,
            outcome.text,
            outcome.reasoning,
        )
    return (
        *head,
        0,
        outcome.kind.value,
        outcome.message,
        outcome.status,
        outcome.retry_after_s,
        outcome.request_id,
        "",
        *tokens,
        attempt.cost_usd,
        None,
        None,
    )


def attempt_from(values: Sequence[Any]) -> Attempt:
    """An attempt from the columns in the order of `attempt_values`."""
    number, started_at, total_s, first_token_s, ok, kind, words, status, retry_after_s = values[:9]
    request_id, model = values[9:11]
    tokens, (cost_usd, text, reasoning) = values[11:17], values[17:20]
    usage = usage_from(tokens)
    outcome: Completion | Failure
    if ok:
        outcome = completion_from((text, kind, words, reasoning, model, request_id, *tokens))
    else:
        outcome = Failure(
            kind=FailureKind(kind),
            message=words,
            status=status,
            request_id=request_id,
            retry_after_s=retry_after_s,
            usage=usage,
        )
    timing = Timing(started_at=started_at, total_s=total_s, first_token_s=first_token_s)
    return Attempt(number=number, timing=timing, outcome=outcome, cost_usd=cost_usd)


ATTEMPT_WIDTH = 20


def usage_from(tokens: Sequence[Any]) -> Usage | None:
    if tokens[0] is None:
        return None
    return Usage(
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        reasoning_tokens=tokens[2],
        cached_tokens=tokens[3],
        cache_write_tokens=tokens[4],
        reported=bool(tokens[5]),
    )


def completion_from(values: Sequence[Any]) -> Completion:
    """A reply from text, kind, words, reasoning, model, request_id and the six columns of usage."""
    text, kind, words, reasoning, model, request_id = values[:6]
    return Completion(
        text=text,
        finish=Finish(kind),
        finish_raw=words,
        reasoning=reasoning,
        usage=usage_from(values[6:12]) or Usage(reported=False),
        model=model,
        request_id=request_id,
    )


COMPLETION_WIDTH = 12
