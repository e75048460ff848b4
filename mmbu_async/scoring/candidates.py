"""The candidate box that a reply to closed object detection commits to.

The ladder of `choices` goes first: letters, and boxes spelled as the candidate is. Numbers can be spelled in
many ways, though (`[15,20,30,40]`, `15.0`, an object with four names), so what the ladder cannot place is
read as boxes. Where these are the boxes of one candidate, that is the answer, by the rung `box`. A box that
is no candidate is out of the set, however near it may lie.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmbu_async.model import Answer
from mmbu_async.scoring.answers import without_thinking
from mmbu_async.scoring.boxes import ExactBox, read_boxes
from mmbu_async.scoring.choices import read_choice
from mmbu_async.scoring.commitments import last_enclosed
from mmbu_async.scoring.letters import letters
from mmbu_async.scoring.wording import denied, one_width

BOX = "box"


def read_candidate(reply: str, options: Sequence[str]) -> Answer:
    """The letter of the candidate, or '', and the rung that decided."""
    answer = read_choice(reply, options)
    if answer.text:
        return answer
    given = set(_given(one_width(without_thinking(reply))))
    same = [
        letter for letter, boxes in zip(letters(len(options)), _all(options), strict=True) if boxes == given
    ]
    return Answer(text=same[0], how=BOX) if given and len(same) == 1 else answer


def right_candidates(truth: str, options: Sequence[str]) -> list[int]:
    """Places of the candidates that are the true boxes, or where none is, of those that are among them."""
    true = set(read_boxes(truth, tagged=True).boxes)
    candidates = _all(options)
    same = [place for place, boxes in enumerate(candidates) if boxes and boxes == true]
    return same or [place for place, boxes in enumerate(candidates) if boxes and boxes < true]


def _all(options: Sequence[str]) -> list[set[ExactBox]]:
    return [set(read_boxes(option, tagged=True).boxes) for option in options]


def _given(text: str) -> tuple[ExactBox, ...]:
    """Boxes of the last tag or field, else of the reply where it does not rule its box out."""
    enclosed = last_enclosed(text)
    if enclosed is None:
        boxes = read_boxes(text, tagged=False).boxes
        return () if denied(text, max(0, text.find("["))) else boxes
    start, end = enclosed.start, enclosed.end
    # Of a field that holds a list only the first number is the commitment: the brackets are outside of it.
    begin = len(text[:start].rstrip(" \t\r\n["))
    if "[" in text[begin:start]:
        start, end = begin, text.find("]", end) + 1
    return read_boxes(text[start:end], tagged=True).boxes
