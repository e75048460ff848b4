"""MMBU's judge `open_per_dataset_v3`: its prompt, and how its reply is read.

The prompt is sent exactly as the card prints it, although its second gate speaks of a policy 'above' that it
does not print, and its first asks for one concept where segmentation rows can hold several labels.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import resources

from mmbu_async.model import JudgeItem, Prompt

NAME = "open_per_dataset_v3"
PROMPT_SHA256 = "c24a05faadcb87e6d5ad4eecf6e5697f6ba50a7d8dc7614fc510e6a491f8cd7b"
"""Of the prompt text that the package carries; a test compares them."""

_PLACES = re.compile(r"\{(label_set|question|true_answer|model_answer)\}")


def fill(item: JudgeItem) -> Prompt:
    """One user message, no system message.

    The template is cut at its places first and then joined with the values, so that a value that looks like a
    place, or like a result, stays plain text.
    """
    values = {
        "label_set": "\n".join(f"- {label}" for label in item.labels),
        "question": item.question,
        "true_answer": item.true_answer,
        "model_answer": item.model_answer,
    }
    return Prompt(parts=(_join(values),))


def read_verdict(reply: str) -> bool | None:
    """True or False where the last line that is not empty ends in `[RESULT] 1` or `[RESULT] 0`, else None."""
    line = reply.rstrip()
    if line.endswith("[RESULT] 1"):
        return True
    if line.endswith("[RESULT] 0"):
        return False
    return None


@functools.cache
def template() -> str:
    """The prompt text, places included. Read once: a constant of the package."""
    folder = resources.files("mmbu_async.judging") / "prompts"
    return (folder / f"mmbu_judge_{NAME}.txt").read_bytes().decode()


@functools.cache
def _pieces() -> tuple[str, ...]:
    """Texts and names of places in turn."""
    return tuple(_PLACES.split(template()))


def _join(values: Mapping[str, str]) -> str:
    return "".join(values[piece] if number % 2 else piece for number, piece in enumerate(_pieces()))
