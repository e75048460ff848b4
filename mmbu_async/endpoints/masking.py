"""A key that an endpoint repeats, in its complaint, in a header or in a reply, goes no further."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mmbu_async.model import Completion, Failure

MASK = "***"
SHORTEST_PART = 6
"""Characters of a key that give something away."""
_TEXTS_OF_FAILURE = ("message", "request_id")
_TEXTS_OF_COMPLETION = ("text", "reasoning", "finish_raw", "model", "request_id")


def masked(outcome: Completion | Failure, key: str) -> Completion | Failure:
    """The same without the key in any of its texts, also where one was cut inside of it."""
    if len(key) < SHORTEST_PART:
        # What stands in for a key where none is wanted (`x`, `none`) is in many words.
        return outcome
    names = _TEXTS_OF_FAILURE if isinstance(outcome, Failure) else _TEXTS_OF_COMPLETION
    texts = {name: getattr(outcome, name) for name in names}
    start = key[:SHORTEST_PART]
    if not any(start in text for text in texts.values()):
        # Nearly always: one look at each text is what a call pays for this.
        return outcome
    clean: dict[str, Any] = {name: _without(text, key) for name, text in texts.items()}
    return replace(outcome, **clean)


def _without(text: str, key: str) -> str:
    # Half of a key is taken for the key wherever it stands; at the end, where texts are cut, less is.
    half = max(SHORTEST_PART, len(key) // 2)
    for length in range(len(key), half - 1, -1):
        text = text.replace(key[:length], MASK)
    for length in range(half - 1, SHORTEST_PART - 1, -1):
        if text.endswith(key[:length]):
            return text[:-length] + MASK
    return text
