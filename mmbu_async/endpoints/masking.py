"""A key that an endpoint repeats in its complaint goes no further."""

from __future__ import annotations

from dataclasses import replace

from mmbu_async.model import Failure

MASK = "***"
SHORTEST_PART = 6
"""Characters of a key that give something away."""


def masked(failure: Failure, key: str) -> Failure:
    """The failure without the key; where the message was cut, perhaps without its beginning."""
    if len(key) < SHORTEST_PART:
        # What stands in for a key where none is wanted (`x`, `none`) is in many words.
        return failure
    message = failure.message.replace(key, MASK)
    for length in range(len(key) - 1, SHORTEST_PART - 1, -1):
        if message.endswith(key[:length]):
            message = message[:-length] + MASK
            break
    return replace(failure, message=message, request_id=failure.request_id.replace(key, MASK))
