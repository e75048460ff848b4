"""Texts that must fit into a drawing, where nothing wraps by itself."""

from __future__ import annotations

from unicodedata import combining, east_asian_width

from mmbu_async.report.html.plot import SIZE
from mmbu_async.report.plain import line

AVERAGE = 0.56
"""Width of a letter as a share of the font's size, in the fonts that pages are shown in."""
WIDE = 1.02
"""The same of a Chinese character."""


def width(text: str, size: float = SIZE) -> float:
    """About how many pixels wide a text is shown."""
    return sum(
        0.0 if combining(letter) else size * (WIDE if east_asian_width(letter) in "WF" else AVERAGE)
        for letter in text
    )


def lines(foreign: str, room: float, *, most: int = 3, size: float = SIZE) -> list[str]:
    """The text on at most that many lines of that width; an ellipsis says that more follows."""
    # Far more than fits is not looked at: a text may be as long as it likes.
    words = line(foreign[:500]).split(" ")
    made = [""]
    for word in words:
        for part in _parts(word, room, size):
            longer = f"{made[-1]} {part}".strip()
            if not made[-1] or width(longer, size) <= room:
                made[-1] = longer
            else:
                made.append(part)
    if len(made) > most or len(foreign) > 500:
        made = made[:most]
        made[-1] = _shortened(made[-1], room, size)
    return made


def _parts(word: str, room: float, size: float) -> list[str]:
    """The word, broken where it alone is wider than a line."""
    if width(word, size) <= room:
        return [word]
    parts = [""]
    for letter in word:
        if parts[-1] and width(parts[-1] + letter, size) > room:
            parts.append("")
        parts[-1] += letter
    return parts


def _shortened(text: str, room: float, size: float) -> str:
    while text and width(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"
