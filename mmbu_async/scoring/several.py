"""The options that a reply to a closed question with several right ones commits to.

The rungs are those of `choices`, and each may name more than one option; what a tag, a field or a phrase
holds counts whole, so that one piece that names nothing on offer, or a hedge (`A or B`), is no answer. Below
them, where a list of labels stands, all its labels count, since a question that asks for all that apply is
answered so; where nothing of this is found, the ladder for one option reads the reply.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mmbu_async.model import Answer
from mmbu_async.scoring.answers import without_thinking
from mmbu_async.scoring.choices import LABEL, LIST, MARK, read_choice
from mmbu_async.scoring.commitments import Commitment, last_enclosed, spoken
from mmbu_async.scoring.labels import split_labels
from mmbu_async.scoring.option_labels import in_emphasis, in_lists, on_lines, value
from mmbu_async.scoring.option_texts import Options
from mmbu_async.scoring.wording import bare, denied, one_width

_ALL_LETTERS = re.compile(r"[\W_]*+[A-Za-z](?:[\W_]++(?:and[\W_]++)?[A-Za-z])*+[\W_]*+")
"""Single letters with anything but letters between them, or `and`."""
_LETTER = re.compile(r"\b(?!and\b)[A-Za-z]\b")
_HEDGE = re.compile(r"\bor\b|[/或]", re.IGNORECASE)
_BETWEEN = re.compile(r"[;\n]|,?\s+and\s+(?=[A-Z]\b)|\s*&\s*")


def read_several(reply: str, options: Sequence[str]) -> Answer:
    """The letters as `A, C`, or '', and the rung that decided."""
    known = Options.of(options)
    text = one_width(without_thinking(reply))
    enclosed = last_enclosed(text)
    if enclosed is not None:
        named = _joined(_enclosed(text, enclosed, known, options))
        empty = not bare(text[enclosed.start : enclosed.end])
        return Answer(text=named, how=enclosed.how, outside=not named and not empty)
    for one in spoken(text, longest=known.reach * len(options)):
        found = _pieces(text[one.start : one.end], known, options)
        if found and not denied(text, one.start):
            return Answer(text=_joined(found), how=one.how)
    lines = [line for line in text.split("\n") if line.strip()]
    for how, letters in (
        (MARK, in_emphasis(text, known)),
        (LIST, in_lists(lines, known)),
        (LABEL, on_lines(lines, known)),
    ):
        if letters:
            return Answer(text=_joined(letters), how=how)
    return read_choice(reply, options)


def _enclosed(text: str, enclosed: Commitment, known: Options, options: Sequence[str]) -> set[str]:
    """A tag's or field's options; of a field that holds a list only the first entry is the commitment."""
    inside = text[enclosed.start : enclosed.end]
    opened = text[: enclosed.start].rstrip(" \t\r\n\"'")
    if opened.endswith("["):
        closed = text.find("]", enclosed.start)
        inside = text[len(opened) : closed if closed >= 0 else len(text)]
    elif inner := last_enclosed(inside):
        return _enclosed(inside, inner, known, options)
    return _pieces(inside, known, options)


def _pieces(text: str, known: Options, options: Sequence[str]) -> set[str]:
    """All that a committed text names; empty where a piece of it names nothing on offer."""
    if _ALL_LETTERS.fullmatch(text):
        letters = [known.in_range(letter) for letter in _LETTER.findall(text)]
        return set(letters) if all(letters) else set()
    found: set[str] = set()
    for part in _BETWEEN.split(text):
        for piece in split_labels(part.strip(" \t[]"), options):
            named = _named(piece.strip("\"' "), known)
            if not named:
                return set()
            found |= named
    return found


def _named(piece: str, known: Options) -> set[str]:
    """One label, or the option texts that a piece lists: `cell nucleus and cytoplasm`."""
    letter = value(piece, known) if bare(piece) else ""
    if letter:
        return {letter}
    return set() if _HEDGE.search(piece) else known.at_start(piece)


def _joined(letters: set[str]) -> str:
    return ", ".join(sorted(letters))
