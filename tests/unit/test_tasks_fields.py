from __future__ import annotations

import json
import math
from typing import Any

import pytest

from mmbu_async.tasks.fields import canonical_fields, field_text, undecodable


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("", None),
        (math.nan, None),
        (" ", " "),
        ("0.250", "0.250"),
        (0.25, "0.25"),
        (12, "12"),
        (True, "true"),
        (["µ", 1], '["µ", 1]'),
        ({"a": None}, '{"a": null}'),
    ],
)
def test_a_field_is_a_text_or_nothing(value: Any, text: str | None) -> None:
    assert field_text(value) == text


def test_absent_null_and_empty_are_one() -> None:
    wanted = {"b": None, "a": "1", "x": "y"}
    for row in (
        {"a": 1, "x": "y"},
        {"b": None, "a": "1", "x": "y", "z": None},
        {"x": "y", "a": "1", "b": "", "z": ""},
    ):
        fields = canonical_fields(row, ("b", "a"))
        assert json.dumps(fields) == json.dumps(wanted)


def test_half_a_surrogate_pair_is_found() -> None:
    assert undecodable({"a": "x", "b": None, "c": "\ud800"}) == "c"
    assert undecodable({"a": "𝛼"}) is None
