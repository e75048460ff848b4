"""All the options that a reply names, where several can be right."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.scoring.several import read_several

OPTIONS = ("cell nucleus", "nucleolus only", "cytoplasm", "fat, marrow", "None of the above")
READINGS: dict[str, tuple[str, str]] = {
    "<answer>A, C</answer>": ("A, C", "tag"),
    "<answer>C</answer>": ("C", "tag"),
    "<answer> (C) and (A) </answer>": ("A, C", "tag"),
    "<answer>a; c</answer>": ("A, C", "tag"),
    "<answer>['A', 'C']</answer>": ("A, C", "tag"),
    "<answer>A) cell nucleus, C) cytoplasm</answer>": ("A, C", "tag"),
    "<answer>A. cell nucleus\nC. cytoplasm</answer>": ("A, C", "tag"),
    "<answer>cytoplasm, cell nucleus</answer>": ("A, C", "tag"),
    "<answer>cell nucleus and cytoplasm</answer>": ("A, C", "tag"),
    "<answer>Fat, marrow</answer>": ("D", "tag"),
    "<answer>Fat, marrow, cytoplasm</answer>": ("C, D", "tag"),
    '{"answer": ["A", "C"]}': ("A, C", "field"),
    '{"answer": "A, C"}': ("A, C", "field"),
    '<answer>{"answer": ["A", "C"]}</answer>': ("A, C", "tag"),
    '```json\n{"answers": 1, "answer": ["cytoplasm"]}\n```': ("C", "field"),
    "<think>A, B</think><answer>A,C</answer>": ("A, C", "tag"),
    "The final answer is A and C.": ("A, C", "field"),
    "Answer: A, C": ("A, C", "field"),
    "It shows **A** and **C**": ("A, C", "mark"),
    "These apply:\n- A) cell nucleus\n- C) cytoplasm": ("A, C", "list"),
    "A\nC": ("A, C", "label"),
    "This is the cytoplasm.": ("C", "option text"),
    "The answer is unclear.\nC": ("C", "label"),
    # No answer: out of range or of the set, a hedge, an empty commitment, nothing.
    "<answer>A, F</answer>": ("", "tag"),
    "<answer>cell nucleus, bone</answer>": ("", "tag"),
    "<answer>A or C</answer>": ("", "tag"),
    "<answer>cell nucleus or cytoplasm</answer>": ("", "tag"),
    "<answer></answer> A, C": ("", "tag"),
    "<answer>none</answer>": ("", "tag"),
    "I cannot tell.": ("", "none"),
    "": ("", "none"),
}


@pytest.mark.parametrize("reply", READINGS)
def test_readings(reply: str) -> None:
    answer = read_several(reply, OPTIONS)
    assert (answer.text, answer.how) == READINGS[reply]


@given(st.text(alphabet="ABCF ,;\n()[]*:<>/answerd\"'{}or&", max_size=120))
def test_no_reply_raises_and_none_names_what_is_not_on_offer(reply: str) -> None:
    letters = read_several(reply, OPTIONS).text
    assert letters == "" or set(letters.split(", ")) <= set("ABCDE")


@pytest.mark.parametrize(
    "piece", ["A, ", "A) cell nucleus, ", "Answer: A and ", "<answer>A, ", '{"answer": ["A", ']
)
def test_time_grows_with_the_length_alone(piece: str) -> None:
    def seconds(size: int) -> float:
        start = time.perf_counter()
        read_several(piece * (size // len(piece)), OPTIONS)
        return time.perf_counter() - start

    assert min(seconds(48_000) for _ in range(2)) < 0.2 + 9 * min(seconds(12_000) for _ in range(2))
