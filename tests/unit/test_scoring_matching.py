from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.model import Box
from mmbu_async.scoring.iou import BoxArrays, overlaps
from mmbu_async.scoring.matching import match_boxes

BOXES = st.lists(
    st.tuples(*[st.integers(0, 4).map(float)] * 2, *[st.integers(1, 5).map(float)] * 2), max_size=4
)


def hit(one: Box, other: Box) -> bool:
    return bool(overlaps(BoxArrays.from_lists([[one]]), BoxArrays.from_lists([[other]])).correct[0])


def most(predicted: list[Box], truth: list[Box]) -> int:
    """By trying every assignment."""
    few, many = sorted((predicted, truth), key=len)
    return max(sum(map(hit, few, chosen)) for chosen in permutations(many, len(few)))


@given(st.lists(st.tuples(BOXES, BOXES), min_size=1, max_size=3))
def test_as_many_pairs_as_any_assignment_allows(rows: list[tuple[list[Box], list[Box]]]) -> None:
    counts = match_boxes(
        BoxArrays.from_lists([one for one, _ in rows]), BoxArrays.from_lists([other for _, other in rows])
    )
    for row, (one, other) in enumerate(rows):
        tp = most(one, other)
        assert (counts.tp[row], counts.fp[row], counts.fn[row]) == (tp, len(one) - tp, len(other) - tp)


def test_a_greedy_choice_would_lose_a_pair() -> None:
    """The first predicted box fits both true ones, the second only the first of them."""
    predicted: list[Box] = [(0.0, 0.0, 4.0, 2.0), (0.0, 0.0, 2.0, 2.0)]
    truth: list[Box] = [(0.0, 0.0, 3.0, 2.0), (1.0, 0.0, 3.0, 2.0)]
    counts = match_boxes(BoxArrays.from_lists([predicted]), BoxArrays.from_lists([truth]))
    assert counts.tp.tolist() == [2]


def test_a_hundred_guesses_pay_for_themselves() -> None:
    guesses: list[Box] = [(float(n % 10), float(n // 10), 1.0, 1.0) for n in range(100)]
    truth: list[Box] = [(3.0, 4.0, 1.0, 1.0)]
    counts = match_boxes(BoxArrays.from_lists([guesses]), BoxArrays.from_lists([truth]))
    assert (counts.tp[0], counts.fp[0], counts.fn[0]) == (1, 99, 0)


def test_one_true_box_is_found_once() -> None:
    box: Box = (3.0, 4.0, 1.0, 1.0)
    counts = match_boxes(BoxArrays.from_lists([[], [box] * 3]), BoxArrays.from_lists([[box], [box]]))
    assert (counts.tp.tolist(), counts.fp.tolist(), counts.fn.tolist()) == ([0, 1], [0, 2], [1, 0])
