from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.scoring.options import read_list, read_options, without_letters

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
LINE = (
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1).map(str.strip).filter(bool)
)


@pytest.mark.parametrize("empty", [None, "", "  ", [], (), "[]", "null", "None", "nan"])
def test_nothing_is_no_options(empty: Any) -> None:
    assert read_options(empty) == ()


@pytest.mark.parametrize(
    "value",
    [
        ["A) 12", "B) it's"],
        '["A) 12", "B) it\'s"]',
        "['A) 12', \"B) it's\"]",
        "['A) 12',\n \"B) it's\"]",
        "A) 12\nB) it's",
        "\r\n A) 12 \r\n\r\n B) it's\r\n",
        "A) 12\rB) it's",
    ],
)
def test_every_form_gives_the_same_options(value: Any) -> None:
    assert read_options(value) == ("A) 12", "B) it's")


def test_numbers_in_a_list_become_texts() -> None:
    assert read_options([12, 1.5]) == read_options("[12, 1.5]") == ("12", "1.5")


def test_a_backslash_in_a_python_literal_is_no_matter() -> None:
    assert read_options(r"['\mu', 'b']") == ("\\mu", "b")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (5, "is a int"),
        ({"A": "x"}, "is a dict"),
        ([None], "no text: None"),
        ([True], "no text: True"),
        ("[['a']]", "no text: "),
        ("[broken]", "neither JSON nor a Python literal"),
        ("['a' 'b']", "no comma"),
        ("['a'\n 'b']", "no comma"),
        ("[" * 100_000 + "]" * 100_000, "neither JSON nor a Python literal"),
    ],
)
def test_anything_else_is_named(value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_options(value)


def test_a_line_that_starts_with_a_bracket_is_a_line() -> None:
    assert read_options("[18F]FDG\nnone") == ("[18F]FDG", "none")
    assert read_list("[18F]FDG") is None


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        (["A) x", "B) y"], ("x", "y")),
        (["A. x", "B. y"], ("x", "y")),
        (["A)x", " B)  y "], ("x", "y")),
        (["T. cruzi", "E. coli"], ("T. cruzi", "E. coli")),
        (["A) B. subtilis", "B) E. coli"], ("B. subtilis", "E. coli")),
        (["A) x", "C) y"], ("A) x", "C) y")),
        (["A) x", "y"], ("A) x", "y")),
        (["B) x", "A) y"], ("B) x", "A) y")),
        (["a) x", "b) y"], ("a) x", "b) y")),
        ([f"{letter}) {letter}. x" for letter in LETTERS], tuple(f"{letter}. x" for letter in LETTERS)),
        ([" x "], ("x",)),
        ([], ()),
    ],
)
def test_letters_go_once_and_only_where_each_option_has_its_own(
    options: list[str], texts: tuple[str, ...]
) -> None:
    assert without_letters(options) == texts


@given(st.lists(TEXT, min_size=1, max_size=26), st.sampled_from([") ", ". ", ")", "."]))
def test_adding_letters_and_taking_them_away(texts: list[str], mark: str) -> None:
    lettered = [f"{letter}{mark}{text}" for letter, text in zip(LETTERS, texts, strict=False)]
    assert without_letters(lettered) == tuple(text.strip() for text in texts)


@given(st.lists(TEXT))
def test_json_and_python_lists_in_a_string_are_read_back(texts: list[str]) -> None:
    assert read_options(json.dumps(texts)) == tuple(texts)
    assert read_options(repr(texts)) == tuple(texts)


@given(st.lists(LINE, min_size=2))
def test_lines_of_text_are_read_back(lines: list[str]) -> None:
    joined = "\n".join(lines)
    if not (joined.startswith("[") and joined.endswith("]")):
        assert read_options(joined) == tuple(lines)
