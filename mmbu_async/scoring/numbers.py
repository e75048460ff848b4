"""Numbers in answers, exactly as written, and whether two agree within a tolerance.

A number may have a sign, thousands' commas, decimals, an exponent of up to three digits, or be a fraction
such as `1/64`. A unit or `%` after it is not compared. A decimal comma is not read: `1,5` is two numbers.
Digits within a word (`T2`) are none. Without any digits, the words from `zero` to `twelve` count.

Values are fractions, so that a tolerance includes its edge.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from mmbu_async.scoring.wording import IDEOGRAPHS, one_width

_LONGEST = 100
"""Characters; a longer run of digits measures nothing."""
_NUMBER = re.compile(
    rf"(?<![^\W{IDEOGRAPHS}])(?<!\d[./])((?:(?<![\w)])[+-])?)"
    r"(?:(\d++)/(\d++)(?![\d/.])"
    r"|((?:\d{1,3}(?:,\d{3})+(?!\d)|\d++)(?:\.\d++)?|\.\d++)([eE][+-]?\d{1,3}(?!\d))?)"
)
_WORDS = "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_NUMBER_WORD = re.compile(rf"\b(?:{_WORDS})\b")


def numbers(text: str) -> list[Fraction]:
    """The numbers of a text, in order."""
    found: list[Fraction] = []
    for sign, above, below, decimal, exponent in _NUMBER.findall(one_width(text)):
        if max(len(above), len(below), len(decimal)) > _LONGEST or (below and not below.strip("0")):
            continue
        value = Fraction(int(above), int(below)) if above else _decimal(decimal + exponent)
        found.append(-value if sign == "-" else value)
    if not found:
        found = [Fraction(_WORDS.split("|").index(word)) for word in _NUMBER_WORD.findall(text.casefold())]
    return found


def read_number(text: str) -> Fraction | None:
    """The number that a text names; None where it names none, or two that differ."""
    found = set(numbers(text))
    return found.pop() if len(found) == 1 else None


def agree(one: Fraction, true: Fraction, *, absolute: float = 0.0, relative: float = 0.0) -> bool:
    """Whether a number is at most `absolute`, or `relative` times the true one, away from it: the larger."""
    return abs(one - true) <= max(_decimal(str(absolute)), _decimal(str(relative)) * abs(true))


def number_match(answer: str, truth: str, *, absolute: float = 0.0, relative: float = 0.0) -> bool:
    """Whether answer and truth name one number each, and these agree."""
    given, true = read_number(answer), read_number(truth)
    return given is not None and true is not None and agree(given, true, absolute=absolute, relative=relative)


def _decimal(text: str) -> Fraction:
    return Fraction(Decimal(text.replace(",", "")))
