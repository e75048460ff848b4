"""Answers scored by rule: texts, numbers, yes and no, shared words."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.scoring.answers import UNTAGGED
from mmbu_async.scoring.commitments import FIELD, TAG
from mmbu_async.scoring.exact import (
    FIRST_WORD,
    NONE,
    WORD,
    committed_text,
    exact_match,
    overlap,
    plain,
    read_yes_no,
    words,
)
from mmbu_async.scoring.numbers import number_match, numbers, read_number

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
PIECES = [
    "yes",
    "no",
    "Yes",
    " ",
    ",",
    ".",
    "是",
    "不是",
    "有没有",
    "or",
    "and",
    "/",
    "<answer>",
    "</answer>",
    "5",
    "-",
]
REPLIES = st.lists(st.sampled_from(PIECES), max_size=10).map("".join) | TEXTS


@pytest.mark.parametrize(
    ("reply", "text", "how"),
    [
        ("<answer> left lung </answer>", "left lung", TAG),
        ("\\boxed{42}", "42", TAG),
        ('{"answer": "left lung"}', "left lung", FIELD),
        ('{"answer": "\\u80ba \\"a\\""}', '肺 "a"', FIELD),
        ('{"answer": "\\x"}', "\\x", FIELD),
        ("**Answer:** left lung\nIt is bright.", "left lung", FIELD),
        ("Answer: right\nRather, the answer is **left**", "left", FIELD),
        ("Answer: right\nThe answer is:", "right", FIELD),
        ("Answer: right\nThe answer is ...", "right", FIELD),
        ("<think>Answer: right</think> left lung ", "left lung", UNTAGGED),
        ("I choose to say nothing", "I choose to say nothing", UNTAGGED),
        ("Answer：ＣＴ", "ＣＴ", FIELD),
    ],
)
def test_committed_text(reply: str, text: str, how: str) -> None:
    answer = committed_text(reply)
    assert (answer.text, answer.how) == (text, how)


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ("Left lung", "left lung"),
        (" left\n lung. ", "left lung"),
        ("**Left lung**", "Left lung"),
        ("the left lung", "Left lung"),
        ("ＣＴ", "ct"),
        ("x\u2011ray", "x-ray"),
        ("左 肺。", "左肺"),
        ("CT 图像", "CT图像"),
    ],
)
def test_the_same_text(answer: str, truth: str) -> None:
    assert exact_match(answer, truth)
    assert exact_match(truth, answer)


@pytest.mark.parametrize(
    ("answer", "truth"),
    [("left lungs", "left lung"), ("", ""), (".", "."), ("lobe of the lung", "lobe of lung"), ("-5", "5")],
)
def test_another_text(answer: str, truth: str) -> None:
    assert not exact_match(answer, truth)


@given(text=TEXTS)
def test_a_text_is_itself(text: str) -> None:
    assert exact_match(text, text) == bool(plain(text))
    assert exact_match(f" {text}.\n", text) == bool(plain(text))


@pytest.mark.parametrize(
    ("reply", "text", "how"),
    [
        ("Yes", "yes", FIRST_WORD),
        ("yes, it does.", "yes", FIRST_WORD),
        ("No fracture is seen", "no", FIRST_WORD),
        ("**No.**", "no", FIRST_WORD),
        ("True", "yes", FIRST_WORD),
        ("是的，有。", "yes", FIRST_WORD),
        ("没有", "no", FIRST_WORD),
        ("不是", "no", FIRST_WORD),
        ("有", "yes", FIRST_WORD),
        ("<answer>No</answer> though yes.", "no", TAG),
        ("The answer is yes because it is bright", "yes", FIELD),
        ("答案：否", "no", FIELD),
        ("Looking at the image: yes.", "yes", WORD),
        ("I would say no", "no", WORD),
        ("Yes and no", "", FIRST_WORD),
        ("yes/no", "", FIRST_WORD),
        ("It is yes. Or rather no.", "", NONE),
        ("There is no fracture", "", NONE),
        ("Normal", "", NONE),
        ("Not seen", "", NONE),
        ("yesterday", "", NONE),
        ("有没有？", "", NONE),
        ("", "", NONE),
        ("<answer></answer>Yes", "", NONE),
    ],
)
def test_yes_and_no(reply: str, text: str, how: str) -> None:
    answer = read_yes_no(reply)
    assert (answer.text, answer.how) == (text, how)


@given(reply=REPLIES)
def test_yes_no_or_nothing(reply: str) -> None:
    answer = read_yes_no(reply)
    assert answer.text in {"yes", "no", ""}
    assert (answer.how == NONE) <= (answer.text == "")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("36 watts", [36]),
        ("-5", [-5]),
        ("\u22125", [-5]),
        ("+5", [5]),
        ("3-5", [3, 5]),
        ("1,234.5 cells", [Fraction("1234.5")]),
        ("1,234,567", [1234567]),
        ("1,5", [1, 5]),
        ("1,2345", [1, 2345]),
        ("12%", [12]),
        (".5", [Fraction(1, 2)]),
        ("1e-3", [Fraction(1, 1000)]),
        ("1E3 and 2e9999", [1000, 2]),
        ("1/64", [Fraction(1, 64)]),
        ("-1/4", [Fraction(-1, 4)]),
        ("1/0", []),
        ("T2 and x5", []),
        ("v2.0.1", []),
        ("2.0.1", [2]),
        ("５", [5]),
        ("左肺有3个", [3]),
        ("5mm", [5]),
        ("three nuclei", [3]),
        ("three, or 4", [4]),
        ("none", []),
        ("9" * 101, []),
        ("9" * 101 + "/3 and 7", [7]),
        ("", []),
    ],
)
def test_numbers(text: str, found: list[int | Fraction]) -> None:
    assert numbers(text) == found


@pytest.mark.parametrize(
    ("text", "number"), [("5", 5), ("5 or 5.0", 5), ("5 or 6", None), ("none", None), ("Two.", 2)]
)
def test_a_text_names_one_number_or_none(text: str, number: int | None) -> None:
    assert read_number(text) == number


@pytest.mark.parametrize(
    ("answer", "truth", "absolute", "relative", "match"),
    [
        ("36 watts", "36", 0, 0, True),
        ("36.0", "36", 0, 0, True),
        ("35.9", "36", 0, 0, False),
        ("0.3", "0.1", 0.2, 0, True),
        ("0.31", "0.1", 0.2, 0, False),
        ("99", "100", 0, 0.01, True),
        ("98.9", "100", 0, 0.01, False),
        ("-99", "-100", 0, 0.01, True),
        ("99", "-100", 0, 0.01, False),
        ("12", "10", 1, 0.2, True),
        ("5 or 6", "5", 0, 0, False),
        ("many", "5", 0, 0, False),
        ("5", "many", 0, 0, False),
    ],
)
def test_tolerance_includes_its_edge(
    answer: str, truth: str, absolute: float, relative: float, match: bool
) -> None:
    assert number_match(answer, truth, absolute=absolute, relative=relative) is match


@given(number=st.decimals(-1000, 1000, places=3))
def test_a_number_in_a_sentence_is_found(number: Fraction) -> None:
    assert number_match(f"It measures {number} mm.", str(number))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The left lung, and a cyst", ["left", "lung", "and", "cyst"]),
        ("X-ray 2.5 mm", ["x", "ray", "2.5", "mm"]),
        ("左肺 CT图", ["左", "肺", "ct", "图"]),
        ("snake_case", ["snake", "case"]),
        ("", []),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize(
    ("answer", "truth", "precision", "recall", "f1"),
    [
        ("the left lung", "left lung", 1, 1, 1),
        ("left lung and heart", "left lung", 1 / 2, 1, 2 / 3),
        ("lung", "left lung", 1, 1 / 2, 2 / 3),
        ("lung lung", "lung", 1 / 2, 1, 2 / 3),
        ("heart", "lung", 0, 0, 0),
        ("", "lung", 0, 0, 0),
        ("lung", "the", 0, 0, 0),
        ("", "", 1, 1, 1),
        ("左肺", "右肺", 1 / 2, 1 / 2, 1 / 2),
    ],
)
def test_overlap(answer: str, truth: str, precision: float, recall: float, f1: float) -> None:
    found = overlap(answer, truth)
    assert (found.precision, found.recall, found.f1) == pytest.approx((precision, recall, f1))


@given(one=TEXTS, other=TEXTS)
def test_overlap_is_a_share_and_turns_around(one: str, other: str) -> None:
    found, turned = overlap(one, other), overlap(other, one)
    assert 0 <= found.f1 <= 1
    assert (found.precision, found.recall) == (turned.recall, turned.precision)
    assert overlap(one, one).f1 == 1


@pytest.mark.parametrize(
    "unit",
    [
        "1",
        "1,111,",
        "1.1",
        "-",
        "1e",
        "1/",
        "answer:",
        "\\boxed{",
        "yes ",
        "no.",
        "是",
        "有没有",
        " ",
        "lung ",
    ],
)
def test_hostile_replies_take_linear_time(unit: str) -> None:
    """A reply four times as long takes about four times as long: quadratic would be sixteen times."""

    def seconds(size: int) -> float:
        reply = unit * (size // len(unit)) + "1111x"
        began = time.process_time()
        read_yes_no(reply)
        numbers(reply)
        overlap(reply, "lung")
        exact_match(reply, "lung")
        return time.process_time() - began

    assert min(seconds(96_000) for _ in range(2)) < 0.2 + 9 * min(seconds(24_000) for _ in range(2))
