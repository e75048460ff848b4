"""Reply -> committed answer.

The reasoning goes first: what stands in `<think>…</think>` is no part of the reply. Then the text inside the
last complete `<answer>…</answer>` pair counts, even when it is empty; without a complete pair the whole reply
does, and is marked `untagged`.

Where the protocol is silent:

* A `<think>` that is never closed takes the rest of the reply with it: the model was cut off while reasoning.
* A reply whose first think tag is a closing one lost its opening to the server's chat template, so that what
  stands before it is reasoning. Any later `</think>` without an opening is plain text.
* A pair is a closing tag and the nearest opening tag before it: in `use <answer> tags: <answer>x</answer>`
  the commitment is `x`.

Every step is one pass over the text: patterns are possessive, so hostile replies cost no more than others.
"""

from __future__ import annotations

import re

from mmbu_async.model import Answer

TAGGED = "tag"
UNTAGGED = "untagged"

_ANSWER_TAG = re.compile(r"<\s*+(/?+)\s*+(?ai:answer)\s*+>")
_THINK_TAG = re.compile(r"<\s*+(/?+)\s*+(?ai:think)\s*+>")


def committed_answer(reply: str) -> Answer:
    """What the model committed to, stripped; `how` is `tag` or `untagged`."""
    text = without_thinking(reply)
    start: int | None = None
    last: tuple[int, int] | None = None
    for tag in _ANSWER_TAG.finditer(text):
        if not tag[1]:
            start = tag.end()
        elif start is not None:
            last = (start, tag.start())
            start = None
    if last is None:
        return Answer(text=text.strip(), how=UNTAGGED)
    return Answer(text=text[last[0] : last[1]].strip(), how=TAGGED)


def without_thinking(reply: str) -> str:
    """The reply without its think blocks."""
    kept: list[str] = []
    position = 0
    inside = False
    for number, tag in enumerate(_THINK_TAG.finditer(reply)):
        closing = bool(tag[1])
        if closing and (inside or number == 0):
            inside = False
            position = tag.end()
        elif not closing and not inside:
            kept.append(reply[position : tag.start()])
            inside = True
    if not inside:
        kept.append(reply[position:])
    return "".join(kept)
