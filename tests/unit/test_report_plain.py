import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.report import plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode 細胞", "plain ünïcode 細胞"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),  # a one-byte CSI, which some terminals obey
        ("a\x00b\x7f", r"a\x00b\x7f"),
        ("abc\u202edcba", r"abc\u202edcba"),
        ("a\u2028b\ufeff", r"a\u2028b\ufeff"),
        ("hidden\U000e0041", r"hidden\U000e0041"),
        ("\ud800", r"\ud800"),
        ("two\nlines\tand a tab", r"two\nlines\tand a tab"),
        ("می‌خواهم", "می‌خواهم"),  # Persian is spelled with zero-width non-joiners
        ("[bold red]not markup[/]", "[bold red]not markup[/]"),
    ],
)
def test_line_shows_what_would_steer_a_terminal(text: str, shown: str) -> None:
    assert plain.line(text) == shown


def test_block_keeps_lines_and_shows_lone_carriage_returns() -> None:
    assert plain.block("one\r\ntwo\tx\nthree\rfour\x1b[A") == "one\ntwo x\nthree\\x0dfour\\x1b[A"


@given(text=st.text(alphabet=st.characters(), max_size=50))
def test_nothing_that_is_shown_can_steer(text: str) -> None:
    for shown in (plain.line(text), plain.markdown(text), plain.block(text).replace("\n", "")):
        assert not any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in shown)


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("12345", 5, "12345"), ("123456", 5, "1234…"), ("\x1b\x1b\x1b", 5, "\\x1b…"), ("", 5, "")],
)
def test_short(text: str, width: int, shown: str) -> None:
    assert plain.short(text, width) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a | b", r"a \| b"),
        ("<script>alert(1)</script> & co", "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co"),
        ("line\nbreak", r"line\\nbreak"),
        ("**bold** `code` [a](b)", r"\*\*bold\*\* \`code\` \[a\](b)"),
        ("metadata_modality", "metadata_modality"),
        ("_emphasis_", r"\_emphasis\_"),
    ],
)
def test_markdown(text: str, shown: str) -> None:
    assert plain.markdown(text) == shown


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\r=1", "\n=1", "＝1", "-", "+1-1", "-١"],
)
def test_formulas_are_defused_in_csv(text: str) -> None:
    assert plain.csv_cell(text) == "'" + text


@pytest.mark.parametrize("text", ["-1", "+1.5", "-1e-5", "-.5", "12", "a=1", "", "'=1", " =1", "[-1, 2]"])
def test_numbers_and_other_text_stay_as_they_are_in_csv(text: str) -> None:
    assert plain.csv_cell(text) == text


@given(text=st.text(max_size=30))
def test_a_csv_cell_reads_back(text: str) -> None:
    cell = plain.csv_cell(text)
    written = io.StringIO()
    csv.writer(written).writerow([cell, "end"])
    assert next(csv.reader(io.StringIO(written.getvalue(), newline=""))) == [cell, "end"]
    assert cell.removeprefix("'") == text.replace("\x00", "\u2400").removeprefix("'")
