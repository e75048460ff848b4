"""MMMU's official rules: golden cases of its evaluator, published replies, and what holds for any reply."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.scoring.letters import letters
from mmbu_async.scoring.mmmu import (
    BRACKET,
    DRAWN,
    LETTER,
    OPTION_TEXT,
    choice_is_right,
    draw,
    open_is_right,
    pooled_accuracy,
    prompt_text,
    read_choice,
)
from mmbu_async.scoring.mmmu_open import (
    CONCLUSION,
    NONE,
    WHOLE_REPLY,
    is_number,
    normal,
    numbers_in,
    open_candidates,
    read_candidates,
    read_open,
    write_candidates,
)

DATA = Path(__file__).parents[1] / "data"
CASES = json.loads((DATA / "cases" / "mmmu_functions.json").read_text(encoding="utf-8"))
PUBLISHED = DATA / "mmmu_val_replies.jsonl.gz"

SCANS = ("X-ray", "Magnetic resonance imaging", "Computed tomography", "Ultrasound")
PIECES = [
    *(
        "A",
        "B",
        "(B)",
        "(C)",
        " B ",
        "**B**",
        "b",
        "B)",
        "\n",
        " ",
        ".",
        ",",
        "'",
        "!",
        ":",
        "ultrasound ",
        "X-RAY",
    ),
    *(
        "is ",
        "so ",
        "final ",
        "answer ",
        "answer: ",
        "result ",
        "= ",
        "therefore ",
        "1,000",
        "3.14",
        "-5",
        "1e-3",
    ),
    *("50%", "$12", "nan", "inf", "1_000", "１２", "½", "could be ", "a few more words here "),
]
REPLIES = st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"])
)


def golden(function: str) -> list[Any]:
    return [
        pytest.param(case, id=f"{number} {case['note']}")
        for number, case in enumerate(CASES)
        if case["fn"] == function
    ]


def test_every_function_of_the_cases_is_tested() -> None:
    assert {case["fn"] for case in CASES} == {
        "parse_multi_choice_response",
        "parse_open_response",
        "normalize_str",
        "check_is_number",
        "extract_numbers",
        "eval_multi_choice",
        "eval_open",
        "evaluate",
        "calculate_ins_level_acc",
        "get_multi_choice_info",
        "construct_prompt.final_input_prompt",
    }


@pytest.mark.parametrize("case", golden("parse_multi_choice_response"))
def test_multiple_choice(case: dict[str, Any]) -> None:
    reply, labels, texts = case["args"]
    assert list(texts) == labels == list(letters(len(texts)))
    answer = read_choice(reply, list(texts.values()), row_id="r")
    if isinstance(case["expected"], dict):
        assert answer.how == DRAWN
    else:
        assert answer.text == case["expected"]
        assert answer.how != DRAWN


@pytest.mark.parametrize("case", golden("parse_open_response"))
def test_open(case: dict[str, Any]) -> None:
    assert case["compare"] == "as_set"
    found = open_candidates(*case["args"])
    assert sorted(map(repr, found)) == sorted(map(repr, case["expected"]))


@pytest.mark.parametrize("case", golden("normalize_str"))
def test_normal(case: dict[str, Any]) -> None:
    if isinstance(case["expected"], dict):
        with pytest.raises(AttributeError):
            normal(*case["args"])
        return
    expected = [one["__float__"] if isinstance(one, dict) else one for one in case["expected"]]
    assert [str(one) for one in normal(*case["args"])] == [str(one) for one in expected]
    assert [isinstance(one, float) for one in normal(*case["args"])] == [
        not isinstance(one, str) for one in case["expected"]
    ]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "check_is_number": is_number,
    "extract_numbers": numbers_in,
    "eval_multi_choice": choice_is_right,
    "eval_open": open_is_right,
    "calculate_ins_level_acc": lambda groups: pooled_accuracy(
        (group["acc"], group["num_example"]) for group in groups.values()
    ),
}


@pytest.mark.parametrize("case", [case for function in FUNCTIONS for case in golden(function)])
def test_other_functions(case: dict[str, Any]) -> None:
    assert FUNCTIONS[case["fn"]](*case["args"]) == case["expected"]


@pytest.mark.parametrize("case", golden("evaluate"))
def test_evaluate(case: dict[str, Any]) -> None:
    """What is not multiple choice is scored as open."""
    right: dict[str, bool] = {}
    for row in case["args"][0]:
        measure = choice_is_right if row["question_type"] == "multiple-choice" else open_is_right
        right[row["id"]] = measure(row["answer"], row["parsed_pred"])
    accuracy = {"acc": pooled_accuracy([(sum(right.values()) / len(right), len(right))] if right else [])}
    words = {row: "Correct" if is_right else "Wrong" for row, is_right in right.items()}
    assert case["expected"] == ([words, accuracy] if right else accuracy)


@pytest.mark.parametrize("case", golden("construct_prompt.final_input_prompt"))
def test_prompt(case: dict[str, Any]) -> None:
    row, config = case["args"]
    kind = "multi_choice" if row["question_type"] == "multiple-choice" else "short_ans"
    options = json.loads(row["options"].replace("'", '"'))
    assert prompt_text(config[f"{kind}_example_format"], row["question"], options) == case["expected"]


@pytest.mark.parametrize("case", golden("get_multi_choice_info"))
def test_no_options_have_no_letters(case: dict[str, Any]) -> None:
    assert case["expected"] == [{}, []]
    assert prompt_text("{}|{}", "q", *case["args"]) == "q|"


def replies() -> list[dict[str, Any]]:
    with gzip.open(PUBLISHED, "rt", encoding="utf-8") as lines:
        return list(map(json.loads, lines))


def test_published_replies() -> None:
    drawn = 0
    rows = replies()
    assert len(rows) == 1350
    for row in rows:
        if row["question_type"] != "multiple-choice":
            candidates = open_candidates(row["response"])
            assert sorted(map(str, candidates)) == sorted(row["parsed"]), row
            assert open_is_right(row["answer"], candidates) is row["correct"], row
            continue
        answer = read_choice(row["response"], list(row["options"].values()), row_id=row["id"])
        assert (answer.how == DRAWN) is row["random_fallback"], row
        drawn += row["random_fallback"]
        if row["random_fallback"]:
            assert row["correct"] is None
        else:
            assert answer.text == row["parsed"], row
            assert choice_is_right(row["answer"], answer.text) is row["correct"], row
    assert drawn == 19


@pytest.mark.parametrize(
    ("reply", "text", "how"),
    [
        ("(B)", "B", BRACKET),
        ("A or (B) or C", "B", BRACKET),
        ("so B it is", "B", LETTER),
        ("I am sure it is ultrasound", "D", OPTION_TEXT),
        ("B.,", "B", LETTER),
    ],
)
def test_the_rung_is_named(reply: str, text: str, how: str) -> None:
    answer = read_choice(reply, SCANS, row_id="r")
    assert (answer.text, answer.how) == (text, how)


@pytest.mark.parametrize("reply", ["B,.", "surely it is ultrasound here", "B\n"])
def test_what_is_left_to_chance(reply: str) -> None:
    """Marks go in one order only, texts need a sixth word, and white space stays."""
    assert read_choice(reply, SCANS, row_id="r").how == DRAWN


@pytest.mark.parametrize(
    ("reply", "how"), [("It is 5", CONCLUSION), ("5", WHOLE_REPLY), ("", NONE), (" \n", NONE)]
)
def test_where_open_candidates_come_from(reply: str, how: str) -> None:
    assert read_open(reply).how == how


def test_a_list_of_gold_answers() -> None:
    assert choice_is_right(["A", "B"], "B")
    assert not choice_is_right(["A", "B"], "AB")
    assert open_is_right(["$MgS$", "MgS"], open_candidates("It is MgS"))
    assert not open_is_right(["4", "5"], open_candidates("It is 6"))


def test_draws_are_even_and_differ_by_row_and_seed() -> None:
    drawn = [draw(f"row-{number}", 4) for number in range(4000)]
    assert all(900 < drawn.count(letter) < 1100 for letter in "ABCD")
    again = [draw(f"row-{number}", 4, seed=1) for number in range(4000)]
    assert 900 < sum(one == other for one, other in zip(drawn, again, strict=True)) < 1100


def test_a_draw_is_the_same_in_another_process() -> None:
    program = (
        "from mmbu_async.scoring.mmmu import draw\n"
        "print(''.join(draw(f'validation_Art_{n}', 5, seed=3) for n in range(40)))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert child.stdout.strip() == "".join(draw(f"validation_Art_{n}", 5, seed=3) for n in range(40))


def test_this_draw_never_changes() -> None:
    """Another way to draw would change published scores."""
    assert "".join(draw(f"validation_Art_{number}", 4) for number in range(1, 9)) == "CBBBCACD"


def test_numbers_without_a_name_in_json_survive() -> None:
    written = write_candidates([float("inf"), float("-inf"), float("nan"), 2.5, 'a "b"'])
    assert "NaN" not in written
    assert "Infinity" not in written
    assert read_candidates(written) == (float("inf"), float("-inf"), 2.5, 'a "b"')
    assert open_is_right("inf", read_candidates(read_open("inf").text))


@given(reply=REPLIES, options=st.lists(st.text(max_size=8), min_size=2, max_size=26))
def test_an_answer_is_always_on_offer(reply: str, options: list[str]) -> None:
    answer = read_choice(reply, options, row_id="r")
    assert answer.text in set(letters(len(options)))
    assert answer == read_choice(reply, options, row_id="r")


@given(reply=REPLIES)
def test_candidates_survive_the_store(reply: str) -> None:
    found = tuple(one for one in open_candidates(reply) if one == one)
    assert read_candidates(read_open(reply).text) == found
    open_is_right(["1,000", "", "c"], found)


@given(number=st.floats(-1e6, 1e6), before=REPLIES)
def test_the_last_line_s_conclusion_is_always_a_candidate(number: float, before: str) -> None:
    assert open_is_right(f"{number:.2f}", open_candidates(f"{before}\nSo it is {number:.2f}"))


@pytest.mark.parametrize(
    "unit",
    [
        "1",
        "1,111,",
        "1.1",
        "-",
        "1e",
        ".1",
        "is ",
        "so\n",
        "=",
        "(A)",
        " A ",
        "ultrasound ",
        "a",
        "1.",
        "\n",
        " ",
    ],
)
def test_hostile_replies_take_linear_time(unit: str) -> None:
    """Less than a second. A number that is looked for from each of its digits anew would take minutes."""
    reply = unit * (100_000 // len(unit))
    for text in (reply, reply + "x", f"is {reply}"):
        read_choice(text, SCANS, row_id="r")
        assert read_open(text).text
