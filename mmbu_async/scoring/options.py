"""The `options` column, in every form in which it arrives, and the letters before its texts."""

from __future__ import annotations

import ast
import io
import itertools
import json
import re
import tokenize
import warnings
from collections.abc import Sequence

from mmbu_async.model import Json

_LINE_END = re.compile(r"\r\n|\r|\n")
_LETTER = re.compile(r"\s*([A-Z])[).]\s*")
_EMPTY = frozenset({"", "null", "none", "nan"})
"""Texts of a cell that holds nothing; `nan` and `None` are what pandas and str() make of a null."""


def read_options(value: Json) -> tuple[str, ...]:
    """The option texts as they stand, letters included.

    A list, a JSON list in a string, a Python-literal list in a string, or lines of text. Raises ValueError
    with the reason where the value is none of these.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        return _from_text(value.strip())
    if isinstance(value, list | tuple):
        return tuple(_option(item) for item in value)
    raise ValueError(f"is a {type(value).__name__}, not a list of texts")


def without_letters(options: Sequence[str]) -> tuple[str, ...]:
    """The options without `A)`, `B.` and so on: once, and only where each carries its own letter in order.

    So `T. cruzi` and `E. coli` stay whole, and `A) B. subtilis` becomes `B. subtilis`.
    """
    matches = [_LETTER.match(option) for option in options]
    if all(match and match[1] == chr(ord("A") + index) for index, match in enumerate(matches)):
        return tuple(match.string[match.end() :].strip() for match in matches if match)
    return tuple(option.strip() for option in options)


def read_list(text: str) -> list[Json] | None:
    """The list that a text writes out in JSON or as a Python literal; None where it writes no list.

    Raises ValueError for strings without a comma between them (numpy writes lists so): Python would join
    them into one text without a word.
    """
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = _python_literal(text)
    return found if isinstance(found, list) else None


def _from_text(text: str) -> tuple[str, ...]:
    if text.lower() in _EMPTY:
        return ()
    found = read_list(text)
    if found is not None:
        return tuple(_option(item) for item in found)
    if text.startswith("[") and (text.endswith("]") or text[1:].lstrip()[:1] in ("'", '"')):
        raise ValueError("looks like a list, but is neither JSON nor a Python literal")
    return tuple(line.strip() for line in _LINE_END.split(text) if line.strip())


def _option(item: Json) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, int | float) and not isinstance(item, bool):
        return str(item)
    raise ValueError(f"has an entry that is no text: {item!r}")


def _python_literal(text: str) -> Json:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a stray backslash in a text is no concern of the user's
            found = ast.literal_eval(text)
        tokens = [
            t.type for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type != tokenize.NL
        ]
    except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
        return None
    if (tokenize.STRING, tokenize.STRING) in itertools.pairwise(tokens):
        raise ValueError("is a list whose texts have no comma between them")
    return found
