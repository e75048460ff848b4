"""Keys that somebody has put where a setting would be kept or shown."""

from __future__ import annotations

import re
from typing import Any

from mmbu_async.model import Json

SECRET_NAME = re.compile(r"key|token|secret|passw|signature|^sig$", re.IGNORECASE)
"""Names under which addresses carry a key in their query."""
_SECRET_FIELD = re.compile(
    r"(x-)?(api[_-]?key|access[_-]?token|authorization|password|secret)", re.IGNORECASE
)
"""Names under which gateways take a key in a request's body or its extra headers."""
_SHORTEST_KEY = 20
"""Characters."""


def looks_like_a_key(name: str) -> bool:
    """Some keys could be names of variables. In those no word is as long, with small letters and digits."""
    words = (word for word in name.split("_") if len(word) >= _SHORTEST_KEY)
    return any(re.search(r"[a-z]", word) and re.search(r"\d", word) for word in words)


def secret_in(value: Json) -> str:
    """The name of a field that holds a key, at any depth; '' where there is none."""
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(name, str) and item is not None and _SECRET_FIELD.fullmatch(name):
                return name
            if found := secret_in(item):
                return found
    elif isinstance(value, list | tuple):
        return next(filter(None, map(secret_in, value)), "")
    return ""


def masked(value: Any) -> str:
    """Short, and without a password or a key that stands in an address."""
    text = re.sub(r"//[^/@\s]*@", "//***@", repr(value))
    if "://" in text:
        text = re.sub(r"=[^&'\"\s]+", "=***", text)
    return text if len(text) <= 80 else text[:77] + "..."
