"""Where a reply says outright what it answers: tags, JSON fields, boxes and phrases such as `Answer: B`.

An enclosed commitment, `<answer>…</answer>` or `"answer": …`, says where it ends, and is meant to be read by
machine: what stands in the last one counts, whatever it is. A phrase or a `\\boxed{…}` may also be part of
the prose, so that a reader takes the last one that it can make sense of.

Finding them takes one pass, and a text is cut out only when it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

FIELD = "field"
TAG = "tag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """Text between two places of the reply, and what marked it."""

    start: int
    end: int
    how: str
    """FIELD or TAG."""


_TAG = re.compile(r"<\s*+(/?+)\s*+(?ai:(?:final[ _-]?)?(?:answer|choice|option))\s*+>")
_JSON = re.compile(
    r"""(["'])(?:(?:final|correct|predicted|selected|chosen)[ _]?)?(?:answer|choice|option|prediction)
        (?:_(?:letter|label|choice|option))?\1\s*+:\s*+\[?\s*+
        (?:"((?:[^"\\]|\\.)*+)"|'((?:[^'\\]|\\.)*+)'|(\w++))""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*+\{((?:[^{}]|\{[^{}]*+\})*+)\}")
_ANSWER = re.compile(
    r"""(?:\b(?:answer|choice|option|selection)|答案|选项)[\s*_`"']*+(?:to\ (?:the|this)\ question\s++)?
        (?:(?:is|was|(?:will|would|should|must)\ be)\b|[:=→]|->|是|为)""",
    re.IGNORECASE | re.VERBOSE,
)
_PICK = re.compile(
    r"\b(?:chose|choose|select(?:ed)?|pick(?:ed)?|go(?:ing)? with)\b|选(?!项)择?", re.IGNORECASE
)
_AFTER_PHRASE = re.compile(r"[\s*_`:=]*+")
_SUBJECT = re.compile(
    r"(?<![\w'.-])([A-Z])\b[\s)\]*_`\"']*+is (?:the )?(?:most likely |only )?"
    r"(?:correct|(?:right|best) (?:answer|choice|option)|answer)\b"
)

_MOST_SPOKEN = 64
"""A reply with more phrases than this goes in circles; the last ones tell."""


def last_enclosed(text: str) -> Commitment | None:
    """The last answer tag or JSON answer field; a field inside a tag is part of what the tag holds."""
    tags = list(_tags(text))
    fields = [_json(found) for found in _JSON.finditer(text)]
    last_tag, last_field = tags[-1] if tags else None, fields[-1] if fields else None
    if last_tag and last_field:
        return last_field if last_field.start > last_tag.end else last_tag
    return last_tag or last_field


def stated(text: str, *, longest: int) -> list[Commitment]:
    """Boxes and phrases such as `Answer: …` from the last to the first.

    A phrase's text ends with its line, and after `longest` characters at most.
    """
    boxes = [Commitment(start=box.start(1), end=box.end(1), how=TAG) for box in _BOX.finditer(text)]
    return _last_first([*boxes, *_phrases(text, _ANSWER, longest)])


def spoken(text: str, *, longest: int) -> list[Commitment]:
    """The same and phrases that pick an option: `I choose …`, `B is correct`."""
    named = [Commitment(start=one.start(1), end=one.end(1), how=FIELD) for one in _SUBJECT.finditer(text)]
    return _last_first([*stated(text, longest=longest), *_phrases(text, _PICK, longest), *named])


def _phrases(text: str, pattern: re.Pattern[str], longest: int) -> Iterator[Commitment]:
    for phrase in pattern.finditer(text):
        after = _AFTER_PHRASE.match(text, phrase.end())
        start = after.end() if after else phrase.end()
        line_end = text.find("\n", start, start + longest)
        yield Commitment(start=start, end=line_end if line_end >= 0 else start + longest, how=FIELD)


def _last_first(found: list[Commitment]) -> list[Commitment]:
    return sorted(found, key=lambda one: one.start, reverse=True)[:_MOST_SPOKEN]


def _tags(text: str) -> Iterator[Commitment]:
    """Complete pairs: a closing tag and the nearest opening one before it."""
    start: int | None = None
    for tag in _TAG.finditer(text):
        if not tag[1]:
            start = tag.end()
        elif start is not None:
            yield Commitment(start=start, end=tag.start(), how=TAG)
            start = None


def _json(found: re.Match[str]) -> Commitment:
    group = found.lastindex or 0
    return Commitment(start=found.start(group), end=found.end(group), how=FIELD)
