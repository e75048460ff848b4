"""One spelling for the columns of a row, whatever file they came from.

JSON has numbers, nulls and lists where a TSV has texts; the dataset's fingerprint must not tell them apart.
So a field is a text or None: the empty text becomes None, a number its digits, a list its JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping

from mmbu_async.model import Json


def field_text(value: Json) -> str | None:
    """The text of one field; None where it holds nothing."""
    match value:
        case None | "":
            return None
        case str():
            return value
        case float() if math.isnan(value):
            return None
        case bool() | list() | tuple() | dict():
            return json.dumps(value, ensure_ascii=False, default=str)
        case _:
            return str(value)


def canonical_fields(row: Mapping[str, Json], known: Iterable[str]) -> dict[str, str | None]:
    """The known columns first, absent ones as None, then every other one that holds something."""
    fields = {name: field_text(row.get(name)) for name in known}
    for name, value in row.items():
        if name not in fields and (text := field_text(value)) is not None:
            fields[name] = text
    return fields


def undecodable(fields: Mapping[str, str | None]) -> str | None:
    """The first column whose text cannot be written as UTF-8 (half a surrogate pair)."""
    for name, text in fields.items():
        try:
            (text or "").encode()
        except UnicodeEncodeError:
            return name
    return None


def shortened(value: Json) -> str:
    """What stands in a cell, for an error message."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
