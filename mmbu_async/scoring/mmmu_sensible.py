"""A second, sensible reading of MMMU replies, to stand beside the official one where its rules lose answers.

Multiple choice: the ladder of `choices`, and no draw: where nothing is named, nothing is answered.

Open questions: the committed text (tag, field, box, `Answer:`), else the last conclusion, found with the
official indicators after sentences were set on lines of their own and a value on the line after `is:` was
brought up; else the whole reply. Then

* a gold number must be among the numbers of that text. Markdown, LaTeX, currency and per cent signs do not
  hide a number, `2 million` is one, and a fraction is one number, not two. They agree when they are equal
  after rounding to two places, or to two digits where that is finer.
* a gold text must stand in it as words of its own, and not be ruled out: `cell` is not in `not a cell`, nor
  in `cellular`. An empty gold text agrees with nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from mmbu_async.model import Answer
from mmbu_async.scoring import choices
from mmbu_async.scoring.answers import UNTAGGED
from mmbu_async.scoring.commitments import FIELD
from mmbu_async.scoring.exact import committed_text
from mmbu_async.scoring.mmmu_open import CONCLUSION, NONE, WHOLE_REPLY, conclusions
from mmbu_async.scoring.numbers import numbers, read_number
from mmbu_async.scoring.wording import bare, denied, fold, mentions

_FRACTION = re.compile(r"\\[dt]?frac\s*+\{([^{}]{1,40}+)\}\s*+\{([^{}]{1,40}+)\}")
_POWER = re.compile(r"\s*+(?:\\times|×|\*)\s*+10\s*+\^\s*+\{?([+-]?\d{1,3})\}?")
_COMMAND = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boxed|left|right|,|;|!|\(|\)|\[|\])")
_MARKUP = re.compile(r"[*`${}\\~#]")
_SCALE = re.compile(r"(?<=\d)\s*+(thousand|million|billion)\b", re.IGNORECASE)
_EXPONENTS = {"thousand": "e3", "million": "e6", "billion": "e9"}
_VALUE_BELOW = re.compile(r"([:=])[ \t]*+\n\s*+")
_VERB = re.compile(r"\b(is|are)[ \t]*+:?\s++")
_SENTENCE = re.compile(r"\.\s++(?=[A-Z])")
_PLACES = 2
"""Decimals to which numbers agree, and digits where a number has none within them."""


def read_choice(reply: str, options: Sequence[str]) -> Answer:
    """The letter that a reply commits to, or ''."""
    return choices.read_choice(reply, options)


def read_open(reply: str) -> Answer:
    """The text that a reply concludes with, found as a tag, field, conclusion, the whole reply, or none."""
    said = committed_text(reply)
    text = _SENTENCE.sub(".\n", without_markup(said.text))
    if said.how != UNTAGGED:
        return Answer(text=(text.partition("\n")[0] if said.how == FIELD else text).strip(), how=said.how)
    found = conclusions(_VERB.sub(r"\1 ", _VALUE_BELOW.sub(r"\1 ", text)))
    if found:
        return Answer(text=found[-1], how=CONCLUSION)
    return Answer(text=text.strip(), how=WHOLE_REPLY if text.strip() else NONE)


def open_is_right(gold: str | Sequence[str], text: str) -> bool:
    """Whether the text agrees with the gold answer, or with any of several."""
    golds = [gold] if isinstance(gold, str) else gold
    return any(_agrees(without_markup(one), text) for one in golds)


def without_markup(text: str) -> str:
    """The text without Markdown and LaTeX, fractions as `a/b`, powers of ten and words for them as `e6`."""
    text = _FRACTION.sub(r"\1/\2", text)
    text = _MARKUP.sub("", _COMMAND.sub("", _POWER.sub(r"e\1", text)))
    return _SCALE.sub(lambda scale: _EXPONENTS[scale[1].casefold()], text)


def _agrees(gold: str, text: str) -> bool:
    wording = bare(gold)
    true = read_number(wording) if _is_number(wording) else None
    if true is not None:
        return any(_same_number(true, given) for given in numbers(text))
    folded = fold(text)
    return bool(wording) and any(not denied(folded, start) for start in mentions(folded, wording))


def _is_number(wording: str) -> bool:
    return bool(re.fullmatch(r"[-+]?[\d.,/]+(?:e[+-]?\d+)?\s*%?", wording))


def _same_number(true: Fraction, given: Fraction) -> bool:
    places = _PLACES
    while true and abs(true) * 10**places < 10 ** (_PLACES - 1):
        places += 1
    return round(true, places) == round(given, places)
