"""Foreign texts and figures as the pages show them.

Markup in a text is shown, not obeyed. So are characters that would hide or turn a line around: each is shown
as a mark with its code point, several alike as one mark with their number.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import orjson
from markupsafe import Markup, escape

from mmbu_async.model import Json
from mmbu_async.report import words
from mmbu_async.report.plain import pieces, short
from mmbu_async.scoring.iou import THRESHOLD
from mmbu_async.viewer.address import token

LINE = 300
"""Characters of a text that a list shows."""


def shown(text: str) -> Markup:
    """A text of any number of lines, whole."""
    made = [
        escape(safe) + (_mark(unsafe[0], len(unsafe)) if unsafe else "")
        for safe, unsafe in pieces(text.replace("\r\n", "\n"))
    ]
    return Markup().join(made)


def line(text: str, longest: int = LINE) -> Markup:
    """A text on one line, cut where it is longer."""
    cut = text[:longest]
    flat = cut.replace("\r\n", "\n").replace("\n", " ⏎ ").replace("\t", " ")
    return shown(flat) + ("…" if len(text) > longest else "")


def value(thing: Json) -> str:
    """A value of a column or of a score's detail."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, float):
        return f"{thing:.6g}"
    return orjson.dumps(thing, option=orjson.OPT_INDENT_2 if _is_deep(thing) else 0).decode()


def _is_deep(thing: Json) -> bool:
    """A list of numbers, texts or boxes reads best on one line."""
    if isinstance(thing, Mapping):
        return bool(thing)
    return isinstance(thing, list) and any(isinstance(part, Mapping) for part in thing)


def clock(unix_seconds: float) -> str:
    """The time of day where the server runs, which is where its reader sits."""
    return datetime.fromtimestamp(unix_seconds).astimezone().strftime("%H:%M:%S")


def iou(found: float) -> str:
    """Three digits that never look like a match where there is none: 0.49996 is not 0.500."""
    text = f"{found:.3f}"
    return "under 0.500" if found < THRESHOLD <= float(text) else text


FILTERS: Mapping[str, Callable[..., Any]] = {
    "shown": shown,
    "line": line,
    "value": value,
    "counted": words.counted,
    "count": words.count,
    "money": words.money,
    "duration": words.duration,
    "moment": words.moment,
    "clock": clock,
    "iou": iou,
    "short": short,
    "token": token,
}


def _mark(character: str, times: int) -> Markup:
    name = unicodedata.name(character, _NAMES.get(character, "control character"))
    code = f"U+{ord(character):04X}" + (f" ×{times:,}" if times > 1 else "")
    return Markup('<span class="mark" title="{}">{}</span>').format(name, code)


_NAMES = {
    "\x00": "NULL",
    "\x07": "BELL",
    "\x08": "BACKSPACE",
    "\x0b": "LINE TABULATION",
    "\x0c": "FORM FEED",
    "\r": "CARRIAGE RETURN",
    "\x1b": "ESCAPE",
    "\x7f": "DELETE",
}
