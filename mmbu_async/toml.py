"""Settings as TOML text: what the standard library reads but does not write."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from mmbu_async.model import Json


def toml_text(settings: Mapping[str, Json], tables: Mapping[str, Json], prefix: str = "") -> str:
    """Plain values first, then each table of `tables` (which names the tables in it) under its own header;
    a
    list that holds such a mapping stands for any number of tables.

    TOML has no null: a table that holds one is written as JSON text.
    """
    lines = []
    under_headers = []
    for key, value in settings.items():
        if isinstance(tables.get(key), list) and isinstance(value, list):
            under_headers += [(key, item) for item in value]
        elif key not in tables or not isinstance(value, dict):
            lines.append(f"{_key(key)} = {_value(value)}")
        elif not tables[key] and _holds_null(value):
            lines.append(f"{_key(key)} = {_text(json.dumps(value))}")
        elif value:
            under_headers.append((key, value))
    text = "".join(line + "\n" for line in lines)
    for key, value in under_headers:
        name, inner = prefix + _key(key), tables[key]
        head, inner = (f"[[{name}]]", inner[0]) if isinstance(inner, list) else (f"[{name}]", inner)
        text += f"\n{head}\n" + toml_text(value, inner, f"{name}.")
    return text


def _holds_null(value: Json) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_null, value.values()))
    return any(map(_holds_null, value)) if isinstance(value, list) else value is None


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _text(text: str) -> str:
    """JSON's escapes are TOML's; only DEL must be escaped here and not there."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Json) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)
