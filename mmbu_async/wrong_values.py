"""What is wrong with a setting's value, in words that complete a sentence: pydantic's own speak of inputs,
dictionaries and instances to somebody who wrote a flag or a line of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_WORDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda context: f"must be more than {context['gt']:,g}",
    "greater_than_equal": lambda context: f"must be at least {context['ge']:,g}",
    "less_than": lambda context: f"must be less than {context['lt']:,g}",
    "less_than_equal": lambda context: f"must be at most {context['le']:,g}",
    "literal_error": lambda context: f"must be {context['expected']}",
    "enum": lambda context: f"must be {context['expected']}",
}
_PLAIN: Mapping[str, str] = {
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a whole number of at most 64 bits",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "string_type": "must be a text (in quotes, where it stands in a file)",
    "string_too_short": "must not be empty",
    "dict_type": "must be a table of names and values",
    "model_type": "must be a table of settings",
    "model_attributes_type": "must be a table of settings",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "path_type": "must be the name of a file",
}


def wrong(problem: ErrorDetails) -> str:
    """`problem` is one of `ValidationError.errors()`."""
    kind = str(problem["type"])
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _WORDS:
        return _WORDS[kind](problem["ctx"])
    # Sentences of our own validators, and what pydantic may come to say in later versions.
    message = str(problem["msg"])
    said = message.removeprefix("Value error, ")
    return said if said != message else message[:1].lower() + message[1:]
