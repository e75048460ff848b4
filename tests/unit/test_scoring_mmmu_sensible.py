"""The second reading of MMMU replies: where it differs from the official rules, and where it must not."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.scoring import mmmu
from mmbu_async.scoring.commitments import FIELD, TAG
from mmbu_async.scoring.mmmu_open import CONCLUSION, NONE, WHOLE_REPLY, open_candidates
from mmbu_async.scoring.mmmu_sensible import open_is_right, read_choice, read_open, without_markup

SCANS = ("X-ray", "Magnetic resonance imaging", "Computed tomography", "Ultrasound")
PUBLISHED = Path(__file__).parents[1] / "data" / "mmmu_val_replies.jsonl.gz"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    "reply",
    [
        "D\n",
        " D",
        "**D**",
        "D)",
        "d",
        "(d)",
        '"D"',
        "Answer:D",
        "<answer>D</answer>",
        "\\boxed{D}",
        "答案：D",
        "ultrasound",
    ],
)
def test_what_the_official_rules_leave_to_chance(reply: str) -> None:
    assert read_choice(reply, SCANS).text == "D"


@pytest.mark.parametrize(
    ("reply", "official", "second"),
    [
        ("The answer is D. A chest film shows this", "A", "D"),
        ("(A) is what some say, yet **B** is right", "A", "B"),
        ("The answer is B, not (C)", "C", "B"),
        ("Not an x-ray and not ultrasound but magnetic resonance imaging", "B", "B"),
        ("I would say magnetic resonance imaging rather than ultrasound", "D", "B"),
    ],
)
def test_choices_that_are_read_otherwise(reply: str, official: str, second: str) -> None:
    assert mmmu.read_choice(reply, SCANS, row_id="r").text == official
    assert read_choice(reply, SCANS).text == second


def test_nothing_is_drawn() -> None:
    assert read_choice("I can not tell", SCANS).text == ""


@pytest.mark.parametrize(
    ("reply", "text", "how"),
    [
        ("<answer>42 cm.\nwide</answer>", "42 cm.\nwide", TAG),
        ("So $\\boxed{\\frac{1}{64}}$", "1/64", TAG),
        ("Answer: **42**. This follows.", "42", FIELD),
        ("The area is 10. The volume is 20", "20", CONCLUSION),
        ("The result is:\n\n  42 watts", "42 watts", CONCLUSION),
        ("x = 3\nTherefore it holds", "it holds", CONCLUSION),
        ("36 watts", "36 watts", WHOLE_REPLY),
        ("<think>it is 5</think>", "", NONE),
    ],
)
def test_open_texts(reply: str, text: str, how: str) -> None:
    answer = read_open(reply)
    assert (answer.text.rstrip("."), answer.how) == (text, how)


@pytest.mark.parametrize(
    ("gold", "reply", "official", "second"),
    [
        ("42", "The result is:\n42", False, True),
        ("12", "It costs $12", True, True),
        ("12", "$12", True, True),
        ("50", "It is 50%", True, True),
        ("$12", "It is 12", False, True),
        ("5", "The answer is **5**", True, True),
        ("2000000", "It is 2 million", False, True),
        ("1500", "It is 1.5 \\times 10^{3}", False, True),
        ("4", "It is 1/4", True, False),
        ("0.25", "It is 1/4", False, True),
        ("1/64", "It is \\frac{1}{64}", False, True),
        ("-5", "It is \u22125", False, True),
        ("0.9965", "It is 1.0", True, True),
        ("0.004", "It is 0", True, False),
        ("0.004", "It is 0.004", True, True),
        ("0.04", "It is 0.042", True, False),
        ("0", "It is 0.0", True, True),
        ("36", "It is 36.01", False, False),
        ("36", "It is 36.001", True, True),
        ("cell", "It is not a cell", True, False),
        ("cell", "It is cellular", True, False),
        ("cell", "It is a Cell.", True, True),
        ("", "anything", True, False),
        ("20", "The area is 10. The volume is 20", True, True),
        ("10", "The area is 10. The volume is 20", False, False),
        ("1,2,3", "It is 1,2,3", True, True),
        ("$MgS$", "It is MgS", False, True),
        ("trans-1-Chloro-4-methylcyclohexane", "It is trans-1-chloro-4-methylcyclohexane", True, True),
    ],
)
def test_open_answers(gold: str, reply: str, official: bool, second: bool) -> None:
    assert mmmu.open_is_right(gold, open_candidates(reply)) is official
    assert open_is_right(gold, read_open(reply).text) is second


def test_any_of_several_golds() -> None:
    assert open_is_right(["4", "MgS"], "mgs")
    assert not open_is_right(["4", "MgS"], "mg")


def test_markup() -> None:
    assert without_markup("\\(\\text{about} \\dfrac{a}{b} * 3 \\times 10^5\\)") == "about a/b  3e5"


def test_published_replies_to_open_questions_keep_their_score() -> None:
    """They are short: the readings differ on longer ones."""
    changed: list[Any] = []
    with gzip.open(PUBLISHED, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["question_type"] == "multiple-choice":
                continue
            right = open_is_right(row["answer"], read_open(row["response"]).text)
            if right is not row["correct"]:
                changed.append((row["id"], row["model"], right))
    assert not changed


@given(reply=TEXTS, gold=TEXTS)
def test_any_reply_is_read(reply: str, gold: str) -> None:
    open_is_right([gold, "5"], read_open(reply).text)


@given(
    number=st.decimals("-1000", "1000", places=2), before=st.sampled_from(["", "It is 7.\n", "So x = 3\n"])
)
def test_the_last_conclusion_s_number_is_right(number: object, before: str) -> None:
    assert open_is_right(str(number), read_open(f"{before}The answer is {number} cm.").text)


@pytest.mark.parametrize(
    "unit",
    ["\\frac{1}{", "\\times10^", "is \n", "is:\n\n", ". A", "1 million ", "$", "1/", "so ", " ", "\n", "9"],
)
def test_hostile_replies_take_linear_time(unit: str) -> None:
    """A reply four times as long takes about four times as long: quadratic would be sixteen times."""

    def seconds(size: int) -> float:
        reply = unit * (size // len(unit)) + "1"
        began = time.process_time()
        open_is_right(["5", "cell"], read_open(reply).text)
        return time.process_time() - began

    assert min(seconds(96_000) for _ in range(2)) < 0.2 + 9 * min(seconds(24_000) for _ in range(2))
