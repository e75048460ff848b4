"""The ladder of closed answers: what each rung reads, what it does not, and what holds for any reply."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.scoring.choices import FIELD, LABEL, LIST, MARK, NONE, OPTION_TEXT, TAG, read_choice
from mmbu_async.scoring.letters import letters
from mmbu_async.scoring.wording import bare, fold, mentions

SCANS = ("X-ray", "Magnetic resonance imaging", "CT", "Ultrasound")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PIECES = [
    *(
        "<answer>",
        "</answer>",
        '{"answer": "',
        '"}',
        "\\boxed{",
        "}",
        "Answer:",
        "the answer is ",
        "**",
        "`",
        "(",
    ),
    *(
        ")",
        "A",
        "B",
        "C",
        "D",
        "E",
        "b",
        "a ",
        "I ",
        ". ",
        "\n",
        " ",
        "- ",
        "1. ",
        " or ",
        " and ",
        "not ",
        "X-ray",
    ),
    *(
        "ct",
        "ultrasound",
        "Magnetic resonance",
        " imaging",
        "because",
        "coli",
        "<think>",
        "</think>",
        "答案",
        "是",
    ),
]
REPLIES = st.lists(st.sampled_from(PIECES), max_size=16).map("".join) | TEXTS


def read(reply: str, options: tuple[str, ...] = SCANS) -> tuple[str, str]:
    answer = read_choice(reply, options)
    return answer.text, answer.how


@pytest.mark.parametrize(
    "reply",
    [
        "Answer: B",
        "answer: b",
        "Answer:B",
        "Answer: B.The image is bright",
        "ANSWER = B",
        "Answer：Ｂ",
        "**Answer:** B",
        "**Answer: B**",
        "### Final Answer: **(B)**",
        "Answer:\n\nB\nbecause it is bright",
        "The final answer is (B).",
        "The correct option is B: Magnetic resonance imaging",
        "The best choice would be B) Magnetic resonance imaging",
        "the answer to this question is most likely B",
        "The answer is B. A chest film would be darker.",
        "The answer is B because A is dark",
        "The answer is B, not C",
        "The answer is magnetic resonance imaging",
        "Answer: the magnetic resonance imaging (MRI) of a knee",
        "Answer: $B$",
        "Answer: A\nOn second thought, the answer is B",
        "Answer: B\nThe format was 'Answer: [LETTER]'",
        "Between (A) and (B) I pick (B)",
        "I would choose option B",
        "Option B is correct, A and C are not",
        "B is the best answer",
        "答案是B。",
        "答案：B",
        "我选择B",
        '{"answer": "B"}',
        '{"reasoning": "the answer is A", "answer": "B", "note": "the answer is C"}',
        "{'final_answer': 'b'}",
        '{"answer": ["B"]}',
        '{"answer": B}',
        '{"answer": "B) Magnetic resonance imaging"}',
        '{"answer": "Magnetic resonance imaging"}',
        '```json\n{"answer": "A"}\n```\nCorrected:\n```json\n{"answer": "B"}\n```',
    ],
)
def test_fields(reply: str) -> None:
    assert read(reply) == ("B", FIELD)


@pytest.mark.parametrize(
    "reply",
    [
        "<answer>B</answer>",
        "<Answer >\nb\n</ANSWER>",
        "<final_answer>(B)</final_answer>",
        "<answer>B) X-ray</answer>",
        "<answer>magnetic  resonance imaging.</answer>",
        "<answer>The answer is B</answer>",
        "<answer>**B**</answer>",
        "<answer>I think it is B</answer>",
        '<answer>{"answer": "B"}</answer>',
        '{"answer": "<answer>B</answer>"}',
        "<answer>A</answer> No. <answer>B</answer> The answer is C",
        "Answer: A <answer>B</answer>",
        '{"answer": "A"} <answer>B</answer>',
        "\\boxed{B}",
        "So $\\boxed{\\text{B}}$ it is.",
        "It measures \\boxed{42}, thus \\boxed{B}",
        "\\boxed{B} It measures \\boxed{42}",
        "Answer: \\boxed{B}",
        "<think><answer>A</answer></think>\\boxed{B}",
    ],
)
def test_tags(reply: str) -> None:
    assert read(reply) == ("B", TAG)


def test_the_last_phrases_of_a_reply_are_looked_at() -> None:
    assert read("Answer: B\n" + "Answer: hm\n" * 20) == ("B", FIELD)
    assert read("Answer: B\n" + "Answer: hm\n" * 80) == ("B", LABEL)


def test_the_later_of_a_tag_and_a_field_counts() -> None:
    assert read('<answer>A</answer> {"answer": "B"}') == ("B", FIELD)


@pytest.mark.parametrize(
    ("reply", "how"),
    [
        ("<answer></answer> B", TAG),
        ("B <answer> \n</answer>", TAG),
        ("<answer>E</answer> **B**", TAG),
        ("<answer>A PET scan</answer> (B)", TAG),
        ("<answer>A or B</answer>", TAG),
        ("<answer>X-ray or CT</answer>", TAG),
        ("\\boxed{E} B", TAG),
        ('{"answer": "PET"} B', FIELD),
        ('{"answer": 2} B', FIELD),
        ("Answer: E\n**B**", FIELD),
        ("Answer: A or B", FIELD),
        ("Answer: A, C", FIELD),
        ("Answer: A/C", FIELD),
        ("Answer: A and c", FIELD),
        ("答案：A和C", FIELD),
        ("The answer is X-ray, or CT", FIELD),
    ],
)
def test_a_commitment_to_nothing_on_offer_or_to_two_is_final(reply: str, how: str) -> None:
    assert read(reply) == ("", how)


@pytest.mark.parametrize(
    "reply",
    [
        "**B**",
        "It shows **B) Magnetic resonance imaging**",
        "It shows **B. It is bright**",
        "It shows **magnetic resonance imaging**.",
        "(B)",
        "(b)",
        "B)",
        "[B]",
        '"B"',
        "'B'",
        "`B`",
        "$B$",
        "__B__",
        "*B*",
        "<b>B</b>",
        "A) X-ray: no\nB) Magnetic resonance imaging: yes\n\nTherefore, **B) Magnetic resonance imaging**",
        "(A) is what some say, yet **B** fits",
        "not (A), rather (B)",
        "A) X-ray: no\nB) MRI: yes\n\nSo (B).",
        "B) It is bright, hence (B)",
        "**Findings:** bright. (B)",
        "Seen before (E), so (B)",
        "B)\n",
    ],
)
def test_marks(reply: str) -> None:
    assert read(reply) == ("B", MARK)


@pytest.mark.parametrize(
    "reply",
    [
        "B) Magnetic resonance imaging",
        "b) magnetic resonance imaging",
        "B. Magnetic resonance imaging",
        "B.Magnetic resonance imaging",
        "B. magnetic resonance imaging",
        "B: It is bright",
        "B - it is bright",
        "(B) It is bright",
        "**B)** It is bright",
        "- B) It is bright",
        "Option B: it is bright",
        "1. B",
        "1) (B) It is bright",
        "It is easy:\n\n   B. It is bright",
        "Q: What is shown?\nA: B",
        "E. coli is not seen\nB. It is bright",
    ],
)
def test_lists(reply: str) -> None:
    assert read(reply) == ("B", LIST)


@pytest.mark.parametrize(
    "reply",
    [
        "B",
        "b",
        " B.\n",
        "B,",
        "- b",
        "Option B",
        "Answer B",
        "Answer hm B",
        "I think it is B",
        "A chest film would be dark, so B",
        "Vitamin D is not seen: B",
        "Figure A shows the knee, hence B",
        "Neither A nor C, so B",
        "It isn't A but B",
        "不是A，B",
        "A) X-ray: no\nB) MRI: yes\n\nb",
        "A T-wave, a B-cell, E. coli and U.S. units: B",
        "<think>it is A</think>B",
        "it is A</think>B",
        "The image shows A\u2019s shadow. B",
    ],
)
def test_labels(reply: str) -> None:
    assert read(reply) == ("B", LABEL)


@pytest.mark.parametrize(
    "reply",
    [
        "magnetic resonance imaging",
        "MAGNETIC\u00a0RESONANCE  IMAGING.",
        "This is magnetic resonance imaging of a knee",
        "Not an X-ray and not ultrasound but magnetic resonance imaging",
        "Magnetic resonance imaging rather than CT.",
        "X-ray is dark.\nUltrasound is coarse.\nMagnetic resonance imaging",
        "A or C?\nMagnetic resonance imaging",
    ],
)
def test_option_texts(reply: str) -> None:
    assert read(reply) == ("B", OPTION_TEXT)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " \n",
        "It is a PET scan",
        "E",
        "(E)",
        "It is not B",
        "Not an X-ray",
        "I would not choose B",
        "A. or B.",
        "X-ray or ultrasound",
        "A\nB",
        "**A** or **B**",
        "(A) or (B), certainly not ultrasound",
        "(A) perfect (C) diminished",
        "B) It is bright, as (A) is not",
        "See: A) first\nB) second\nC) third",
        "(A)(B)(C)(D)",
        "Either A or B, and ultrasound is possible",
        "A) X-ray\nB) CT\nC) CT",
        "ANSWER: [LETTER]",
        "The answer is not here",
        "Select one of the options",
        "AB",
        "the lungs are clear",
        "<think>B",
        "B-cells, vitamin D, hepatitis C",
    ],
)
def test_nothing(reply: str) -> None:
    assert read(reply) == ("", NONE)


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("It is the left lung", ("lung", "left lung"), "B"),
        ("It is the left lung and the lung", ("lung", "left lung"), ""),
        ("nodule of the lung", ("lungs", "lung"), "B"),
        ("E. coli", ("S. aureus", "E. coli", "T. cruzi", "none", "mixed"), "B"),
        ("Answer: E. coli", ("S. aureus", "E. coli", "T. cruzi", "none", "mixed"), "B"),
        ("E. coli is seen", ("S. aureus", "E. coli", "T. cruzi", "none", "mixed"), "B"),
        ("B cell", ("T cell", "NK cell", "B cell"), "C"),
        ("Answer: B cell", ("T cell", "NK cell", "B cell"), "C"),
        ("Answer: B", ("C", "A", "B"), "B"),
        ("A", ("B", "A"), "A"),
        ("same", ("same", "Same."), ""),
        ("**same**", ("same", "Same."), ""),
        ("Answer: same", ("same", "Same."), ""),
        ("no pneumonia", ("pneumonia", "no pneumonia"), "B"),
        ("There is no pneumonia", ("pneumonia", "effusion"), ""),
        ("There are 5 nuclei", ("2.5", "5"), "B"),
        ("It measures 2.5 mm", ("5", "7"), ""),
        ("It measures 2.5 mm", ("2", "7"), ""),
        ("It is -5", ("5", "-5"), "B"),
        ("It is -5", ("5", "7"), ""),
        ("这是左肺的图像", ("左肺", "右肺"), "A"),
        ("I", tuple("abcdefghi"), "I"),
        ("I think so", tuple(f"option {n}" for n in range(9)), ""),
        ("Answer: I because it is", tuple(f"option {n}" for n in range(9)), "I"),
        ("Z", tuple(f"option {n}" for n in range(26)), "Z"),
        ("nothing", ("", "x-ray"), ""),
        ("It shows a cyst", ("a cyst", "the cyst"), "A"),
        ("Answer: a cyst", ("Cyst", "Tumor"), "A"),
        ("Answer: A. a cyst", ("Cyst", "Tumor"), "A"),
    ],
)
def test_other_options(reply: str, options: tuple[str, ...], letter: str) -> None:
    assert read(reply, options)[0] == letter


def test_the_examples_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "extraction.md").read_text(encoding="utf-8")
    table = page.split("| rung | what counts |")[1].split("\n\n")[0]
    options = ("X-ray", "MRI", "CT", "Ultrasound")
    examples = [
        (example, row.split("|")[1])
        for row in table.splitlines()[2:]
        for example in re.findall("`([^`]+)`", row.split("|")[3])
    ]
    assert len(examples) >= 15
    for example, rungs in examples:
        letter, how = read(example, options)
        assert letter == ("" if how == NONE else "B"), example
        assert f"`{how}`" in rungs, example


@pytest.mark.parametrize("count", [0, 1, 27])
def test_the_number_of_options_is_checked(count: int) -> None:
    with pytest.raises(ValueError, match=f"has {count} options, where a choice needs 2 to 26"):
        read_choice("A", ["x"] * count)


@given(reply=REPLIES, options=st.lists(TEXTS, min_size=2, max_size=26))
def test_an_answer_is_always_on_offer(reply: str, options: list[str]) -> None:
    answer = read_choice(reply, options)
    assert answer.text == "" or answer.text in set(letters(len(options)))
    assert answer.how in {FIELD, TAG, MARK, LIST, LABEL, OPTION_TEXT, NONE}
    assert (answer.how == NONE) <= (answer.text == "")


@given(reply=REPLIES.filter(lambda reply: "think" not in reply), place=st.integers(0, 3))
def test_a_tag_decides_whatever_stands_around_it(reply: str, place: int) -> None:
    letter = "ABCD"[place]
    assert read(f"{reply}\n<answer>{letter}</answer>\n{reply}"[: -len(reply) or None]) == (letter, TAG)


@given(options=st.lists(TEXTS, min_size=2, max_size=26), place=st.integers(0, 25))
def test_a_letter_decides_whatever_the_options_say(options: list[str], place: int) -> None:
    letter = letters(len(options))[place % len(options)]
    for reply in (letter, f"Answer: {letter}", f"<answer>{letter.lower()}</answer>", f"({letter})"):
        assert read_choice(reply, options).text == letter


@given(options=st.lists(TEXTS, min_size=2, max_size=26), place=st.integers(0, 25))
def test_an_option_s_own_text_in_a_tag_is_its_letter(options: list[str], place: int) -> None:
    text = options[place % len(options)]
    known = [bare(one) for one in options]
    if len(bare(text)) < 2 or known.count(bare(text)) > 1 or any(mark in text for mark in "<>{}\\"):
        return
    found = read_choice(f"<answer>{text}</answer>", options).text
    assert found == letters(len(options))[place % len(options)]


@given(st.lists(st.sampled_from(["lung", " ", "left", "5", ".", "-", "肺", "x"])).map("".join))
def test_mentions_are_found_at_their_places(text: str) -> None:
    for wording in ("lung", "left lung", "5", "肺"):
        for start in mentions(fold(text), wording):
            assert fold(text)[start:].startswith(wording)


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "<answer>",
            "</answer>",
            "<answer",
            '"answer": "',
            "'answer':\"",
            '"answer":\'\\',
            "\\boxed{",
            "{",
            "**a",
        ),
        *(
            "answer:",
            "answer is ",
            "answer",
            "choose A ",
            "B is ",
            "A ",
            "B ",
            "(A)",
            "`",
            "*",
            '"',
            "__",
            "not ",
        ),
        *(
            "\n",
            " ",
            "- ",
            "1. ",
            "A)\n",
            "A) x\n",
            "ct ",
            "ct",
            "x-ray or ",
            "答案",
            "选",
            "I ",
            "é",
            "\\",
            "A.",
            "A'",
        ),
        *("Answer: A or ", "option ", "<b>", "\u00a0", "\t", "\\boxed{{}", "(("),
    ],
)
def test_hostile_replies_take_linear_time(unit: str) -> None:
    """A reply four times as long takes about four times as long: quadratic would be sixteen times."""
    options = (*SCANS, "x-ray or ct or x-ray", "a a a a a")

    def seconds(size: int) -> float:
        reply = unit * (size // len(unit))
        began = time.process_time()
        read_choice(reply, options)
        read_choice(f"<answer>{reply}</answer>", options)
        return time.process_time() - began

    assert min(seconds(48_000) for _ in range(2)) < 0.2 + 9 * min(seconds(12_000) for _ in range(2))


@pytest.mark.parametrize(
    ("reply", "outside"),
    [
        ("<answer>PET</answer>", True),
        ("<answer>F</answer>", True),
        ("<answer>A or B</answer>", True),
        ('{"answer": "PET"}', True),
        ("Answer: F", True),
        ("Answer: A or B", True),
        ("<answer></answer>", False),
        ("<answer> ... </answer>", False),
        ("<answer>B</answer>", False),
        ("It is a PET scan", False),
        ("", False),
    ],
)
def test_a_commitment_to_what_is_not_on_offer_is_told_from_none(reply: str, outside: bool) -> None:
    assert read_choice(reply, SCANS).outside is outside
