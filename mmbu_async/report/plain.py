"""Foreign text (replies, questions, metadata) made harmless for the place where it is shown.

Nothing is dropped: what could steer a terminal, flip the direction of a line, or hide, is shown as an escape
like `\\x1b` or `\\u202e`. Zero-width joiners stay, since several scripts are spelled with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls but tab and newline: escape sequences start here
    "\u00ad\u061c\u180e\u200b\u200e\u200f"  # invisible, or a direction mark
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # line separators, embeddings and overrides, isolates
    "\ud800-\udfff\U000e0000-\U000e007f]"  # lone surrogates, and tags, which spell hidden text
)
_UNSAFE_RUN = re.compile(rf"({_UNSAFE.pattern})\1*")
_MARKDOWN = re.compile(r"[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def block(text: str) -> str:
    """Text of several lines, safe for a terminal; tabs become spaces."""
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n")).expandtabs(4)


def line(text: str) -> str:
    """Text on one line: line ends and tabs are shown as `\\n` and `\\t`."""
    return _UNSAFE.sub(_escape, text).replace("\n", r"\n").replace("\t", r"\t")


def short(text: str, width: int) -> str:
    """One line of at most `width` characters; an ellipsis says that more follows."""
    shown = line(text[: width + 1])
    return shown if len(text) <= width and len(shown) <= width else shown[: width - 1] + "…"


def markdown(text: str) -> str:
    """One line that Markdown shows as it is: no markup, no HTML, no new table cell."""
    shown = line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKDOWN.sub(lambda found: "\\" + found[0], shown)


def json_text(text: str) -> str:
    """JSON with the same values, in which what `line` would escape is written with JSON's own escapes: a
    program reads it as it was, and no terminal is steered."""
    return _UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], text)


def toml_text(text: str) -> str:
    """TOML in the same way. Such characters can stand in its quoted texts and names only."""
    return _UNSAFE.sub(lambda found: f"\\U{ord(found[0]):08x}", text)


def csv_cell(text: str) -> str:
    """A cell that a spreadsheet does not run: `'` goes before whatever looks like a formula and is no number.

    NUL, at which many readers of CSV stop, becomes its picture U+2400; all else is kept.
    """
    kept = text.replace("\x00", "\u2400")
    if kept.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(kept):
        return "'" + kept
    return kept


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """The text cut at its unsafe characters: what is safe to show, and the same character once or more often
    behind it; at the end ''."""
    at = 0
    for found in _UNSAFE_RUN.finditer(text):
        yield text[at : found.start()], found[0]
        at = found.end()
    yield text[at:], ""


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
