"""JSON as servers write it, and texts as a store can hold them. A reply that was paid for is not bought again
because of a character.

Some servers cut a text between the halves of a surrogate pair, write bytes that are no UTF-8, or numbers that
JSON does not know (NaN, as the logarithm of a probability). orjson refuses all of these, as it should, and is
some ten times as fast, so that it comes first.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson

from mmbu_async.model import Completion, Failure, Json

_TEXTS_OF_FAILURE = ("message", "request_id")
_TEXTS_OF_COMPLETION = ("text", "reasoning", "finish_raw", "model", "request_id")


def parsed(body: bytes) -> Json:
    """Raises ValueError for what is no JSON. Texts may hold half a surrogate pair: the other half may come
    with the next event of a stream, and `whole_texts` deals with the rest."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        try:
            return json.loads(body.decode("utf-8", "replace"), parse_constant=lambda _: None)
        except (RecursionError, ValueError):
            raise error from None


def whole_texts(outcome: Completion | Failure) -> Completion | Failure:
    """The same with the halves of surrogate pairs joined in all of its texts, and U+FFFD for lone ones."""
    names = _TEXTS_OF_FAILURE if isinstance(outcome, Failure) else _TEXTS_OF_COMPLETION
    broken = [name for name in names if not _is_text(getattr(outcome, name))]
    if not broken:
        return outcome
    mended: dict[str, Any] = {name: _joined(getattr(outcome, name)) for name in broken}
    return replace(outcome, **mended)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _joined(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
