"""Boxes over an image: where, what they are called, how well they fit."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.model import Box, Sample
from mmbu_async.tasks import load
from mmbu_async.viewer.drawing import MOST, Frame, boxes_of, layers, true_boxes

FRAME = Frame(width=100, height=50)


def test_boxes_are_named_and_compared() -> None:
    truth: list[Box] = [(0, 0, 10, 10), (50, 20, 10, 10)]
    predicted: list[Box] = [(50, 20, 10, 5), (80, 0, 5, 5)]
    first, second, third = layers(FRAME, truth, predicted, [(0, 0, 10, 10)])
    assert [(box.label, box.best_iou, box.best_with) for box in first.boxes] == [
        ("T1", 0.0, ""),
        ("T2", 0.5, "P1"),
    ]
    assert [(box.label, box.best_iou, box.best_with) for box in second.boxes] == [
        ("P1", 0.5, "T2"),
        ("P2", 0.0, ""),
    ]
    assert [(box.label, box.best_iou, box.best_with) for box in third.boxes] == [("Q1", 1.0, "T1")]
    drawn = first.boxes[1]
    assert (drawn.x, drawn.y, drawn.width, drawn.height) == drawn.box


def test_without_boxes_on_the_other_side_there_is_no_fit() -> None:
    (only,) = layers(FRAME, [(1, 2, 3, 4)], [], None)
    assert (only.kind, only.boxes[0].best_iou, only.boxes[0].best_with) == ("truth", None, "")
    assert layers(FRAME, [], [], []) == ()


@pytest.mark.parametrize(
    ("box", "outside"),
    [
        ((-10.0, -10.0, 15.0, 15.0), False),
        ((100.0, 0.0, 5.0, 5.0), True),
        ((-5.0, 0.0, 5.0, 5.0), True),
        ((0.0, 60.0, 5.0, 5.0), True),
        ((-1e300, -1e300, 2e300, 2e300), False),
        ((1e300, 1e300, 1.0, 1.0), True),
    ],
)
def test_boxes_that_leave_the_image_are_drawn_as_far_as_it_goes(box: Box, outside: bool) -> None:
    ((drawn,),) = (layer.boxes for layer in layers(FRAME, [box], [], None))
    assert drawn.outside == outside
    assert drawn.box == box
    for number in (drawn.x, drawn.y, drawn.width, drawn.height):
        assert math.isfinite(number)
        assert abs(number) <= 500


@given(
    st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4), max_size=5)
)
def test_any_box_can_be_drawn(found: list[list[float]]) -> None:
    boxes = boxes_of({"b": found}, "b")
    assert boxes is not None
    for layer in layers(FRAME, boxes, boxes[::-1], boxes):
        for drawn in layer.boxes:
            assert all(map(math.isfinite, (drawn.x, drawn.y, drawn.label_x, drawn.label_y)))
            assert drawn.best_iou is not None
            assert 0 <= drawn.best_iou <= 1 + 1e-9


def test_of_ten_thousand_boxes_some_are_drawn_and_all_are_counted() -> None:
    many: list[Box] = [(float(n), 0.0, 1.0, 1.0) for n in range(10_000)]
    truth, predicted = layers(FRAME, [(0, 0, 1, 1)], many, None)
    assert (len(predicted.boxes), predicted.left_out) == (MOST, 10_000 - MOST)
    assert truth.boxes[0].best_iou == 1.0


def test_what_is_no_box_is_left_out() -> None:
    assert boxes_of({}, "truth") is None
    assert boxes_of({"truth": "x"}, "truth") is None
    found = [[1, 2, 3, 4], [1, 2, 3], "box", [1, 2, None, 4], [1, 2, float("inf"), 4], None]
    assert boxes_of({"truth": found}, "truth") == [(1.0, 2.0, 3.0, 4.0)]


def test_true_boxes_are_known_before_a_row_is_scored() -> None:
    benchmark = load("mmbu-public")

    def sample(route: str, answer: str) -> Sample:
        return Sample(id="a", position=0, question="q", answer=answer, route=route)

    assert true_boxes(benchmark, sample("object_detection", "[[1, 2, 3, 4]]")) == [(1.0, 2.0, 3.0, 4.0)]
    assert true_boxes(benchmark, sample("single_answer", "nucleus")) is None
