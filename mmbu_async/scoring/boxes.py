"""Text -> boxes `[x, y, width, height]`: lenient in form, never in meaning.

A box is `[1, 2, 3, 4]`, or an object `{"x": 1, "y": 2, "width": 3, "height": 4}`, its fields in any order.
Inside a tag (and in a truth) it may also stand in round brackets, with spaces for commas, with quoted
numerals, or with nothing around it: four numbers, or the four names with numbers, and nothing else. A raw
reply gets none of this, since prose is full of numbers. Of nested brackets the innermost count: so any depth
of lists is read, and the complete groups of a list that was cut off.

Corners are not turned into sizes, relative numbers not into pixels, and five numbers are not cut to four. A
group with a number that is not finite, or a size that is not positive, is no box; the reading says why.

The numbers stay decimals as written, since an IoU of exactly one half is decided on them. The text is read in
one pass, without backtracking.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from mmbu_async.model import Box

ExactBox = tuple[Decimal, Decimal, Decimal, Decimal]
"""(x, y, width, height) in pixels, as written."""

NO_BOX = "no group of four numbers"
NOT_FINITE = "a coordinate is not a finite number"
NOT_POSITIVE = "width or height is not positive"

_NAMES = ("x", "y", "width", "height")
_CLOSES = {"[": "]", "(": ")", "{": "}"}
_OPENS = {closing: opening for opening, closing in _CLOSES.items()}
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0x2212: 0x2D}
"""Full-width forms are the same characters under NFKC; the rest of NFKC would turn `10²` into `102`."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_LONGEST_NUMBER = 100
"""Characters. Longer ones, and exponents above 999, measure no pixels, and would be fractions without end."""

_TOKEN_IN_TAG = re.compile(r"```[A-Za-z]*+|[\s\"'`]++|([\[\](){},:=]|[^\s\"'`\[\](){},:=]++)")
"""Group 1 is what counts: white space, quotes and code fences are wrapping."""
_TOKEN_IN_PROSE = re.compile(r"\s++|([\[\]{},:\"]|[^\s\[\]{},:\"]++)")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxReading:
    """The boxes of a text, in order, and why there are none or fewer than groups."""

    boxes: tuple[ExactBox, ...]
    rejected: tuple[str, ...] = ()
    """One reason for each group that had the look of a box and is none."""

    @property
    def reason(self) -> str:
        """Why there is no box; '' when there is one."""
        return "" if self.boxes else (self.rejected[0] if self.rejected else NO_BOX)


def read_boxes(text: str, *, tagged: bool) -> BoxReading:
    """The boxes of a committed answer (`tagged`) or of a raw reply."""
    text = text.translate(_FULL_WIDTH)
    groups = _groups(_tokens(text, _TOKEN_IN_TAG if tagged else _TOKEN_IN_PROSE), bare=tagged)
    boxes: list[ExactBox] = []
    rejected: list[str] = []
    for bracket, tokens in groups:
        found = _box(bracket, tokens, tagged=tagged)
        if isinstance(found, str):
            rejected.append(found)
        elif found is not None:
            boxes.append(found)
    return BoxReading(boxes=tuple(boxes), rejected=tuple(rejected))


def as_floats(boxes: Iterable[ExactBox]) -> list[Box]:
    """The same boxes in floating point, for the kernel."""
    return [(float(x), float(y), float(width), float(height)) for x, y, width, height in boxes]


def _tokens(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    for match in pattern.finditer(text):
        if match[1]:
            yield match[1]


def _groups(tokens: Iterable[str], *, bare: bool) -> Iterator[tuple[str, list[str]]]:
    """The innermost groups, each with its bracket; with `bare` a text without brackets is one group."""
    stack: list[tuple[str, list[str] | None]] = []
    outside: list[str] | None = [] if bare else None
    for token in tokens:
        if token in _CLOSES:
            outside = None
            if stack:
                stack[-1] = (stack[-1][0], None)  # it holds a group, so it is not innermost
            stack.append((token, []))
        elif token in _OPENS:
            outside = None
            bracket, content = stack.pop() if stack else ("", None)
            if content is not None and bracket == _OPENS[token]:
                yield bracket, content
        elif stack:
            content = stack[-1][1]
            if content is not None:
                content.append(token)
        elif outside is not None:
            outside.append(token)
    if outside:
        yield "", outside


def _box(bracket: str, tokens: list[str], *, tagged: bool) -> ExactBox | str | None:
    """A box, the reason why a group with the look of one is none, or None where it does not look like one."""
    values = None if bracket == "{" else _positional(tokens, commas_only=not tagged)
    if values is None and (tagged or bracket == "{"):
        values = _named([word for word in tokens if word != '"'], exactly=not bracket)
    if values is None:
        return None
    if len(values) != 4:
        return f"{len(values)} numbers where a box has 4" if bracket else None
    if any(_NOT_FINITE.fullmatch(value) for value in values):
        return NOT_FINITE
    x, y, width, height = (Decimal(value) for value in values)
    if not all(math.isfinite(float(number)) for number in (x, y, width, height)):
        return NOT_FINITE
    if float(width) <= 0 or float(height) <= 0:
        return NOT_POSITIVE
    return x, y, width, height


def _positional(tokens: list[str], *, commas_only: bool) -> list[str] | None:
    """Numbers with commas between them, inside a tag also with spaces; None where anything else is there."""
    if commas_only:
        numbers = tokens[::2]
        separated = len(tokens) % 2 == 1 and set(tokens[1::2]) <= {","}
    else:
        numbers = [word for word in tokens if word != ","]
        separated = (",", ",") not in pairwise(tokens) and tokens[:1] != [","]
    return numbers if numbers and separated and all(map(_is_number, numbers)) else None


def _named(tokens: list[str], *, exactly: bool) -> list[str] | None:
    """The numbers under the four names, whatever their order; `exactly`: and nothing beside them."""
    found: dict[str, str] = {}
    used = 0
    for place in range(len(tokens) - 2):
        name, mark, value = tokens[place : place + 3]
        if name.lower() not in _NAMES or mark not in ":=" or not _is_number(value):
            continue
        if not exactly and not _stands_alone(tokens, place):
            continue
        if name.lower() in found:
            return None
        found[name.lower()] = value
        used += 3
    if len(found) != 4 or (exactly and used + tokens.count(",") != len(tokens)):
        return None
    return [found[name] for name in _NAMES]


def _stands_alone(tokens: list[str], place: int) -> bool:
    """Whether `name: number` at this place is a field of its own, not a part of some text."""
    before, after = tokens[place - 1 : place], tokens[place + 3 : place + 4]
    return before in ([], [","]) and after in ([], [","])


def _is_number(token: str) -> bool:
    if len(token) > _LONGEST_NUMBER:
        return False
    return bool(_NUMBER.fullmatch(token) or _NOT_FINITE.fullmatch(token))
