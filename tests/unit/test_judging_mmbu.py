from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.judging import mmbu
from mmbu_async.model import JudgeItem

TEXT = st.one_of(
    st.text(),
    st.sampled_from(["{true_answer}", "{label_set}", "[RESULT] 1", "{model_answer} {question}", "{", "\\1"]),
)


def test_the_prompt_is_the_card_s_byte_for_byte() -> None:
    assert hashlib.sha256(mmbu.template().encode()).hexdigest() == mmbu.PROMPT_SHA256


def test_one_user_message_and_no_system_message() -> None:
    prompt = mmbu.fill(JudgeItem(question="Q?", labels=("a", "b"), true_answer="a", model_answer="b"))
    assert prompt.system is None
    assert len(prompt.parts) == 1
    assert "same question:\n- a\n- b\n\n" in prompt.text
    assert prompt.text.endswith(
        "Question/context:\nQ?\n\nTRUE ANSWER:\na\n\nMODEL ANSWER:\nb\n\n"
        "Now output exactly one line:\nRationale:"
    )


@given(question=TEXT, labels=st.lists(TEXT, max_size=3), true=TEXT, answer=TEXT)
def test_values_stay_plain_text(question: str, labels: list[str], true: str, answer: str) -> None:
    item = JudgeItem(question=question, labels=tuple(labels), true_answer=true, model_answer=answer)
    head, rest = mmbu.template().split("{label_set}")
    middle, rest = rest.split("{question}")
    between, rest = rest.split("{true_answer}")
    last, tail = rest.split("{model_answer}")
    label_set = "\n".join(f"- {label}" for label in labels)
    expected = head + label_set + middle + question + between + true + last + answer + tail
    assert mmbu.fill(item).text == expected


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Rationale: x [RESULT] 1\n\n  \n", True),
        ("[RESULT] 0", False),
        ("[RESULT] 1\nand more", None),
        ("[RESULT] 10", None),
        ("[RESULT] 01", None),
        ("[RESULT]\n1", None),
        ("[RESULT]1", None),
        ("**[RESULT] 1**", None),
        ("[result] 1", None),
        (" \n ", None),
    ],
)
def test_only_the_end_of_the_last_line_speaks(reply: str, verdict: bool | None) -> None:
    assert mmbu.read_verdict(reply) is verdict


@given(st.text(), st.sampled_from(["0", "1"]), st.text(st.sampled_from(" \t\r\n")))
def test_whatever_stands_before_the_result(before: str, result: str, after: str) -> None:
    assert mmbu.read_verdict(f"{before}[RESULT] {result}{after}") is (result == "1")


@given(st.text(), st.text(min_size=1).filter(str.strip))
def test_whatever_stands_after_the_result_spoils_it(before: str, after: str) -> None:
    reply = f"{before}[RESULT] 1 {after}"
    if not reply.rstrip().endswith(("[RESULT] 1", "[RESULT] 0")):
        assert mmbu.read_verdict(reply) is None
