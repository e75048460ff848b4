"""MMMU's official reading of multiple-choice replies, its two measures of right, and its prompts.

The rules are those of the benchmark's own evaluator, since published scores come from them. From the top:

* `bracket`: letters in round brackets, `(B)`. Where there are any, bare letters do not count.
* `letter`: letters with a blank on either side, after punctuation was taken from the reply's ends.
* `option text`: in a reply of more than five words, option texts, whatever their case. An empty one always
  matches.
* `drawn`: none of these; a letter is drawn at random.

Of several that match, the one that is mentioned last wins. White space at the ends of a reply stays, so a
line break after `B` leads to a draw, as do `**B**`, `B)` and `b`; docs/extraction.md lists what follows from
that, and `mmmu_sensible` is the second reading.

The official draw depends on the order of rows. Here each row has its own, from its id and a seed, so that a
run in any order, and a re-run, gives the same score.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from mmbu_async.model import Answer
from mmbu_async.scoring.letters import letters
from mmbu_async.scoring.mmmu_open import Candidate, normal

BRACKET = "bracket"
LETTER = "letter"
OPTION_TEXT = "option text"
DRAWN = "drawn"
"""Chance, not the model, chose: report accuracy also with these counted wrong."""

_STRIPPED = ",.!?;:'"
"""From the reply's ends, one kind of mark after the other in this order, each once: `B,.` keeps its comma."""
_WORDS_FOR_TEXTS = 5
"""Option texts are looked for in replies of more words than this."""
_SLOT = re.compile(r"\{\}")


def read_choice(reply: str, options: Sequence[str], *, row_id: str, seed: int = 0) -> Answer:
    """The letter that the official rules make of a reply to a question with these options (2 to 26)."""
    labels = letters(len(options))
    for mark in _STRIPPED:
        reply = reply.strip(mark)
    reply = f" {reply} "
    for how, shape in ((BRACKET, "({})"), (LETTER, " {} ")):
        if last := _last({letter: reply.rfind(shape.format(letter)) for letter in labels}):
            return Answer(text=last, how=how)
    if len(reply.split()) > _WORDS_FOR_TEXTS:
        lower = reply.lower()
        places = {letter: lower.rfind(text.lower()) for letter, text in zip(labels, options, strict=True)}
        if last := _last(places):
            return Answer(text=last, how=OPTION_TEXT)
    return Answer(text=draw(row_id, len(options), seed=seed), how=DRAWN)


def draw(row_id: str, options: int, *, seed: int = 0) -> str:
    """A letter by chance that is the same for a row and seed in every process and order of rows."""
    digest = hashlib.sha256(f"{seed} {row_id}".encode("utf-8", "surrogatepass")).digest()
    return letters(options)[int.from_bytes(digest[:8], "big") % options]


def choice_is_right(gold: str | Sequence[str], letter: str) -> bool:
    """Whether the letter is the gold one, or one of several: no case or white space is forgiven."""
    return letter == gold if isinstance(gold, str) else letter in gold


def open_is_right(gold: str | Sequence[str], candidates: Iterable[Candidate]) -> bool:
    """Whether any candidate agrees with any gold answer.

    Numbers agree when they are equal after rounding. A gold text agrees when it stands anywhere in a
    candidate, so `cell` is found in `not a cell`, and an empty one in everything.
    """
    golds = [part for one in ([gold] if isinstance(gold, str) else gold) for part in normal(one)]
    texts = [part for part in golds if isinstance(part, str)]
    numbers = [part for part in golds if not isinstance(part, str)]
    return any(
        any(text in candidate for text in texts) if isinstance(candidate, str) else candidate in numbers
        for candidate in candidates
    )


def pooled_accuracy(groups: Iterable[tuple[float, int]]) -> float:
    """Accuracy over all rows from (accuracy, rows) of each subject; 0 for no rows."""
    pairs = list(groups)
    rows = sum(count for _, count in pairs)
    return sum(accuracy * count for accuracy, count in pairs) / rows if rows else 0.0


def prompt_text(template: str, question: str, options: Sequence[str]) -> str:
    """A template's `{}` filled with the question and, where it has a second, the lettered options.

    Placeholders such as `<image 1>` stay, to be cut at afterwards. One pass: braces in the values stay.
    """
    labels = letters(len(options)) if options else ""
    listed = "".join(f"({letter}) {text}\n" for letter, text in zip(labels, options, strict=True))
    values = iter((question, listed))
    return _SLOT.sub(lambda _: next(values), template)


def _last(places: dict[str, int]) -> str:
    """The letter mentioned last, the first of equals; '' where all places are -1."""
    letter = max(places, key=places.__getitem__)
    return letter if places[letter] >= 0 else ""
