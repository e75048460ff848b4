"""When two wordings are the same, and where one is mentioned in another. Every step is one pass."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
_DASHES = dict.fromkeys([*range(0x2010, 0x2016), 0x2212], ord("-"))
_QUOTES = dict.fromkeys([0x2018, 0x2019, 0x201B, 0x2032], ord("'")) | dict.fromkeys(
    [0x201C, 0x201D, 0x201F, 0x2033, 0x00AB, 0x00BB], ord('"')
)
_SAME = _FULL_WIDTH | _DASHES | _QUOTES

IDEOGRAPHS = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters, as ranges for a pattern: each is a word without blanks around it."""
_IDEOGRAPH = re.compile(f"[{IDEOGRAPHS}]")

EDGES = " \t\r\n.,;:!?*_`~'\"()[]{}<>$#。、，"
"""Marks around a wording that say nothing about it."""

_LOOK_BACK = 48
"""Characters before a mention in which a denial is looked for."""
_DENIAL = re.compile(
    r"(?:(?:\b(?:not|no|never|neither|nor|without|cannot|unlike|exclud(?:e|es|ed|ing)|rul(?:e|es|ed|ing) out"
    r"|rather than|instead of)|n't)(?:\W+(?:be|a|an|the|any|option|choice|answer|choose|select|pick|show"
    r"|evidence|signs?|of|consistent|with))*|不是|不选|没有|并非|而非|排除)\W*$"
)


def one_width(text: str) -> str:
    """Full-width forms, dashes and quotes in one form each. Every character keeps its place."""
    return text.translate(_SAME)


def fold(text: str) -> str:
    """A text for comparison: width, case, and the kind and amount of white space do not matter."""
    return " ".join(one_width(text).casefold().split())


def bare(text: str) -> str:
    """A folded text without the marks around it."""
    return fold(text).strip(EDGES)


def mentions(folded: str, wording: str) -> Iterator[int]:
    """Where a bare wording stands in a folded text as words of their own: not `lung` in `lungs`, nor `5` in
    `2.5` or `-5`."""
    start = folded.find(wording)
    while start >= 0:
        end = start + len(wording)
        whole = not _joined(folded[max(0, start - 2) : start], wording[0]) and not _joined(
            folded[end : end + 2][::-1], wording[-1]
        )
        if whole:
            yield start
        start = folded.find(wording, end if whole else start + 1)


def denied(text: str, start: int) -> bool:
    """Whether what begins at `start` is only named to be ruled out: `not B`, `rather than a cyst`."""
    return bool(_DENIAL.search(text[max(0, start - _LOOK_BACK) : start].casefold()))


def _joined(beside: str, edge: str) -> bool:
    """Whether the one or two characters beside a wording make a longer word or number of its edge."""
    nearest, further = beside[-1:], beside[-2:-1]
    if edge.isdecimal() and nearest and nearest in ".,-":
        return further.isdecimal() or (nearest == "-" and not further.strip())
    return nearest.isalnum() and edge.isalnum() and not _IDEOGRAPH.search(nearest + edge)
