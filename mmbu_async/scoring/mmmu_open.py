"""MMMU's official reading of replies to open questions: candidates, any of which may agree with the truth.

A reply's last words count. It is taken line by line, in lower case. In a line with one of the indicators
(`is `, `so `, `therefore `, …; in the last line also `=`) what follows the indicator's last mention is a
conclusion, and the shortest of these tails is kept. Without any conclusion the whole reply is. Candidates are
these texts and all numbers in them, numbers rounded to two places.

Rules to know: `. ` ends no line; `answer:` is no indicator, since a blank must follow; a number on the line
after `is:` is lost; units, per cent and currency signs make a text of a number. All are the official ones.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator

from mmbu_async.model import Answer

CONCLUSION = "conclusion"
WHOLE_REPLY = "whole reply"
NONE = "none"
"""A blank reply."""

Candidate = float | str

_INDICATORS = ("could be ", "so ", "is ", "thus ", "therefore ", "final ", "answer ", "result ")
_LAST_LINE_INDICATORS = (*_INDICATORS, "=")
_TRIVIAL = frozenset(":,.!?;'")

# A number begins at the first digit of a run: from within a run none could match that did not match from
# there. So each run is looked at a few times, however long it is.
_WITH_COMMAS = re.compile(r"-?\b\d{1,3}(?:,\d{3})+\b")
_SCIENTIFIC = re.compile(r"-?(?<!\d)\d++(?:\.\d++)?+[eE][+-]?\d++")
_SIMPLE = re.compile(r"-?(?:(?<!\d)\d++\.\d++|\.\d++|(?<!\d)\d++\b)(?![eE][+-]?\d)(?![,\d])")


def read_open(reply: str) -> Answer:
    """The candidates of a reply, written as a JSON list into the answer's text."""
    how = CONCLUSION if conclusions(reply) else WHOLE_REPLY if reply.strip() else NONE
    return Answer(text=write_candidates(open_candidates(reply)), how=how)


def open_candidates(reply: str) -> tuple[Candidate, ...]:
    """What the reply may have meant, texts before numbers, each once."""
    texts = conclusions(reply) or [_trimmed(reply)]
    found = texts + [number for text in texts for number in numbers_in(text)]
    return tuple(dict.fromkeys(part for text in found for part in normal(text)))


def normal(text: str) -> list[Candidate]:
    """A number rounded to two places, or the text in lower case; one letter becomes two texts with a blank
    before or after it, so that it is not found in every word."""
    text = text.strip()
    if is_number(text):
        return [round(float(text.replace(",", "")), 2)]
    text = text.lower()
    return [f" {text}", f"{text} "] if len(text) == 1 else [text]


def is_number(text: str) -> bool:
    """Whether Python reads the text as a number once its commas are gone: `1_000`, `nan`, `１２` too."""
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def numbers_in(text: str) -> list[str]:
    """Numbers as written: those with thousands' commas, then with exponents, then the plain ones. A number
    can be found twice over, and the tail of one with commas again."""
    return [match[0] for pattern in (_WITH_COMMAS, _SCIENTIFIC, _SIMPLE) for match in pattern.finditer(text)]


def write_candidates(candidates: Iterable[Candidate]) -> str:
    """Candidates as JSON. Infinity is written 1e999, since JSON has no name for it; a NaN, which agrees with
    nothing, is left out."""
    return f"[{', '.join(_written(candidates))}]"


def read_candidates(text: str) -> tuple[Candidate, ...]:
    """What `write_candidates` wrote."""
    return tuple(one if isinstance(one, str) else float(one) for one in json.loads(text))


def _written(candidates: Iterable[Candidate]) -> Iterator[str]:
    for one in candidates:
        if isinstance(one, str):
            yield json.dumps(one, ensure_ascii=False)
        elif math.isinf(one):
            yield "1e999" if one > 0 else "-1e999"
        elif one == one:
            yield json.dumps(one)


def _trimmed(reply: str) -> str:
    return reply.strip().strip(".").lower()


def conclusions(reply: str) -> list[str]:
    """What each line with an indicator concludes, in lower case."""
    lines = _trimmed(reply).split("\n")
    tails = (
        _shortest_tail(line, _LAST_LINE_INDICATORS if number == len(lines) else _INDICATORS)
        for number, line in enumerate(lines, start=1)
    )
    return [tail for tail in tails if tail and tail not in _TRIVIAL]


def _shortest_tail(line: str, indicators: Iterable[str]) -> str:
    """The shortest text after any indicator. An empty one is replaced by the next: so, where the last
    indicator that occurs has nothing after it, the line has no tail."""
    kept = ""
    for indicator in indicators:
        _, mentioned, tail = line.rpartition(indicator)
        if mentioned and (not kept or len(tail.strip()) < len(kept)):
            kept = tail.strip()
    return kept
