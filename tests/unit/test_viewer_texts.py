"""Foreign texts as HTML: whole, and harmless."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.report.plain import line as escaped
from mmbu_async.viewer.texts import iou, line, shown, value
from tests.hostile import EVERYTHING, steering


def plain(markup: str) -> str:
    """What a reader sees, marks included."""
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_is_shown_whole_and_does_nothing(text: str) -> None:
    made = str(shown(text))
    assert steering(made) == []
    assert set(re.findall(r"<[^>]*>", made)) <= {"</span>"} | set(
        re.findall(r'<span class="mark" title="[^"<>]*">', made)
    )
    if not steering(text):
        assert plain(made) == text.replace("\r\n", "\n")


def test_every_mark_names_its_character() -> None:
    assert str(shown("a\u202eb")) == ('a<span class="mark" title="RIGHT-TO-LEFT OVERRIDE">U+202E</span>b')
    assert plain(shown("\0\0\0\x07")) == "U+0000 ×3U+0007"
    assert plain(shown("\r\n\r")) == "\nU+000D"
    assert 'title="ESCAPE"' in shown("\x1b")
    assert 'title="control character"' in shown("\x9b")


def test_a_hundred_thousand_of_a_kind_are_one_mark() -> None:
    assert plain(shown("\0" * 100_000)) == "U+0000 ×100,000"


def test_markup_is_shown_and_not_obeyed() -> None:
    made = str(shown(EVERYTHING.encode("utf-16", "surrogatepass").decode("utf-16", "replace")))
    assert "<script" not in made
    assert "<img" not in made
    assert "&lt;script&gt;" in made


def test_a_line_is_one_line_and_says_that_it_was_cut() -> None:
    assert line("a\nb\r\nc\td") == "a ⏎ b ⏎ c d"
    assert line("x" * 10, 10) == "x" * 10
    assert line("x" * 11, 10) == "x" * 10 + "…"
    assert escaped("a") == "a"


def test_an_overlap_never_looks_like_a_match_that_it_is_not() -> None:
    assert [iou(value) for value in (0.0, 0.4994, 0.49996, 0.5, 1.0)] == [
        *("0.000", "0.499", "under 0.500", "0.500", "1.000")
    ]


def test_values_read_well() -> None:
    assert value("text") == "text"
    assert value(0.1234567891) == "0.123457"
    assert value([[1, 2.5, 3, 4]]) == "[[1,2.5,3,4]]"
    assert value(["a", "b"]) == '["a","b"]'
    assert value({"a": 1}) == '{\n  "a": 1\n}'
    assert value(None) == "null"
