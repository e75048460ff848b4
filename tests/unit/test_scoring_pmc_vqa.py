"""PMC-VQA's prompt and extraction: the golden cases of evalscope 1.14.1, and what holds for every reply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.scoring.pmc_vqa import (
    FALLBACK,
    MARKER,
    NONE,
    prompt_text,
    read_answer,
    read_answer_chinese,
    without_prefix,
)

CASES = json.loads(
    (Path(__file__).parents[1] / "data" / "cases" / "pmc_vqa_functions.json").read_text(encoding="utf-8")
)
TEMPLATE = (
    "Answer the following multiple choice question. The entire content of your response should be of the "
    "following format: 'ANSWER: [LETTER]' (without quotes) where [LETTER] is one of {letters}.\n\n"
    "{question}\n\n{choices}"
)
PIECES = [
    *(
        "ANSWER:",
        "answer :",
        "Answer：",
        "答案：",
        "答案:",
        "**",
        "*",
        "[LETTER]",
        "(",
        ")",
        "[",
        "]",
        "（",
        "）",
    ),
    *(
        "$",
        "\\(",
        "\\boxed{",
        "\\text {",
        "}",
        "A",
        "B",
        "C",
        "D",
        "E",
        "b",
        "AB",
        " and ",
        " or ",
        "and",
        "or",
    ),
    *(",", "，", "、", "/", " ", "\n", "\t", ".", "-", "0", "7", "٣", "because", "Dog", "not ", "ſ", "Ä"),
]
REPLIES = st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"])
)


def golden(*functions: str) -> list[Any]:
    return [
        pytest.param(case, id=f"{number} {case['note']}")
        for number, case in enumerate(CASES)
        if case["fn"] in functions
    ]


def test_every_function_of_the_cases_is_tested() -> None:
    assert {case["fn"] for case in CASES} == {
        "extract_answer",
        "extract_answer_zh",
        "strip_choice_prefix",
        "prompt",
    }


@pytest.mark.parametrize("case", golden("extract_answer"))
def test_extraction(case: dict[str, Any]) -> None:
    args = case["args"]
    answer = read_answer(args["completion"], args["num_choices"], multiple=args["multiple_correct"])
    assert answer.text == case["expected"]


@pytest.mark.parametrize("case", golden("extract_answer_zh"))
def test_extraction_under_the_chinese_prompt(case: dict[str, Any]) -> None:
    assert (
        read_answer_chinese(case["args"]["completion"], case["args"]["num_choices"]).text == case["expected"]
    )


@pytest.mark.parametrize("case", golden("strip_choice_prefix"))
def test_choice_prefix(case: dict[str, Any]) -> None:
    assert without_prefix(*case["args"]) == case["expected"]


@pytest.mark.parametrize("case", golden("prompt"))
def test_prompt(case: dict[str, Any]) -> None:
    assert prompt_text(TEMPLATE, case["args"]["question"], case["args"]["choices"]) == case["expected"]


@pytest.mark.parametrize(
    ("question", "choices"), [("{choices}", ["{question}", "{letters}"]), ("\\1 {0}", ["{{", "}"])]
)
def test_braces_in_values_stay(question: str, choices: list[str]) -> None:
    assert prompt_text("{question}|{choices}", question, choices) == (
        f"{question}|A) {choices[0]}\nB) {choices[1]}"
    )


@pytest.mark.parametrize(
    ("reply", "text", "how"),
    [
        ("ANSWER: B", "B", MARKER),
        ("ANSWER: A or B", "", MARKER),
        ("ANSWER: A and I am sure", "A", MARKER),
        ("ANSWER: A or or B", "A", MARKER),
        ("ANSWER: (A,\nC)", "", MARKER),
        ("ANSWER: C\nANSWER: b", "C", MARKER),
        ("ANSWER: A\nNo. ANSWER: C", "C", MARKER),
        ("This shows a Dog", "D", FALLBACK),
        ("answer: the Mri", "", NONE),
        ("no capital", "", NONE),
        ("", "", NONE),
    ],
)
def test_a_guess_is_told_from_an_answer(reply: str, text: str, how: str) -> None:
    answer = read_answer(reply, 4)
    assert (answer.text, answer.how) == (text, how)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("ANSWER: AC", "AC"),
        ("ANSWER: C, A", "AC"),
        ("ANSWER: A and C", "AC"),
        ("ANSWER: (A，C)", "AC"),
        ("ANSWER: A and C but not D", "AC"),
        ("ANSWER: AB,CD", "ABCD"),
        ("ANSWER: A,and,C", ""),
        ("ANSWER: (A,\nC)", ""),
        ("so C", "C"),
    ],
)
def test_several_letters(reply: str, text: str) -> None:
    assert read_answer(reply, 4, multiple=True).text == text


@pytest.mark.parametrize(
    ("reply", "text", "how"),
    [
        ("答案：B", "B", MARKER),
        ("答案: **（B）**", "B", MARKER),
        ("答案：A、C", "", MARKER),
        ("答案：B٣", "B", MARKER),
        ("ANSWER: B and C", "C", FALLBACK),
        ("我不知道", "", NONE),
    ],
)
def test_the_chinese_marker(reply: str, text: str, how: str) -> None:
    answer = read_answer_chinese(reply, 4)
    assert (answer.text, answer.how) == (text, how)


@pytest.mark.parametrize("count", [0, 1, 27])
def test_the_number_of_choices_is_checked(count: int) -> None:
    with pytest.raises(ValueError, match=f"has {count} options, where a choice needs 2 to 26"):
        read_answer("ANSWER: A", count)


@given(reply=REPLIES, count=st.integers(2, 26))
def test_an_answer_is_always_on_offer(reply: str, count: int) -> None:
    offered = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count]
    for answer in (read_answer(reply, count), read_answer_chinese(reply, count)):
        assert answer.text == "" or (len(answer.text) == 1 and answer.text in offered)
        assert answer.how in {MARKER, FALLBACK, NONE}
        assert (answer.how == NONE) <= (answer.text == "")
    several = read_answer(reply, count, multiple=True).text
    assert set(several) <= set(offered)
    assert several == "".join(sorted(set(several)))


@given(reply=REPLIES)
def test_an_answer_line_decides_whatever_stands_before_it(reply: str) -> None:
    answer = read_answer(f"{reply}\nANSWER: C", 4)
    assert (answer.text, answer.how) == ("C", MARKER)


@pytest.mark.parametrize(
    "unit",
    [
        "ANSWER:",
        "ANSWER",
        "ANSWER: (A,",
        "ANSWER: A,",
        "$",
        "ANSWER:$\\(",
        "(A,",
        "A ",
        " ",
        "*",
        "\\boxed{",
        "a",
    ],
)
def test_hostile_replies_take_linear_time(unit: str) -> None:
    """Less than a second; with backtracking, or a copy of the rest at each marker, it would be minutes."""
    for reply in (unit * (100_000 // len(unit)), "ANSWER: (" + unit * (100_000 // len(unit))):
        read_answer(reply, 4)
        read_answer(reply, 4, multiple=True)
