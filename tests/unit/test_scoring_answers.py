from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.scoring.answers import TAGGED, UNTAGGED, committed_answer, without_thinking

PLAIN = st.text(st.characters(exclude_characters="<>", exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    "reply",
    [
        "< Answer >x</ ANSWER >",
        "<answer\n>x< / answer>",
        "<answer>x</answer></answer>",
        "<answer><answer>x</answer></answer>",
        "Put it in <answer> tags: <answer>x</answer>",
        "</answer><answer>x</answer>",
        "<answer>x</answer> or rather <answer>y",
    ],
)
def test_a_pair_is_a_closing_tag_and_the_nearest_opening_one(reply: str) -> None:
    answer = committed_answer(reply)
    assert (answer.text, answer.how) == ("x", TAGGED)


@pytest.mark.parametrize("reply", ["<answers>x</answers>", "<answer x</answer>", "<anſwer>x</anſwer>", "x"])
def test_other_tags_are_no_answer_tags(reply: str) -> None:
    answer = committed_answer(reply)
    assert (answer.text, answer.how) == (reply, UNTAGGED)


def test_an_empty_last_pair_is_an_empty_commitment() -> None:
    assert committed_answer("<answer>x</answer> no: <answer> </answer>").text == ""


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        ("<think>a</think>b", "b"),
        ("<THINK >a</ think>b", "b"),
        ("a<think>b</think>c<think>d</think>e", "ace"),
        ("<think>a <think> b</think>c", "c"),
        ("<think>never closed <answer>x</answer>", ""),
        ("said <think>never closed", "said "),
        ("opening stripped by the server</think>c", "c"),
        ("<answer>draft</answer></think><answer>x</answer>", "<answer>x</answer>"),
        ("<think>a</think>b</think>c", "b</think>c"),
        ("no block", "no block"),
    ],
)
def test_thinking_is_no_part_of_the_reply(reply: str, left: str) -> None:
    assert without_thinking(reply) == left


def test_a_think_block_inside_the_answer_goes_too() -> None:
    assert committed_answer("<answer><think>hm</think> nevus</answer>").text == "nevus"


@given(before=PLAIN, answer=PLAIN, after=PLAIN)
def test_what_stands_in_the_tag_is_the_answer(before: str, answer: str, after: str) -> None:
    found = committed_answer(f"{before}<answer>{answer}</answer>{after}")
    assert (found.text, found.how) == (answer.strip(), TAGGED)


@given(st.lists(st.sampled_from(["<answer>", "</answer>", "<think>", "</think>", "a", " ", "<", ">"])))
def test_any_heap_of_tags_gives_an_answer_without_reasoning(pieces: list[str]) -> None:
    reply = "".join(pieces)
    answer = committed_answer(reply)
    assert answer.text == answer.text.strip()
    assert answer.text in reply or "<think>" in reply
    assert "</answer>" not in answer.text or answer.untagged


@given(hidden=PLAIN, shown=PLAIN)
def test_pairs_inside_a_think_block_do_not_count(hidden: str, shown: str) -> None:
    answer = committed_answer(f"<think><answer>{hidden}</answer></think>{shown}")
    assert (answer.text, answer.how) == (shown.strip(), UNTAGGED)


@pytest.mark.parametrize(
    "unit",
    ["<", "< ", "<answer>", "</answer>", "<think>", "</think>", "<answer", "<answer ", "</", " ", "\t<"],
)
def test_hostile_replies_take_linear_time(unit: str) -> None:
    """One pass takes some ten milliseconds here; backtracking would not come back within the hour."""
    committed_answer(unit * (400_000 // len(unit)))
    committed_answer("<" + unit * (400_000 // len(unit)))
