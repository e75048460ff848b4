from __future__ import annotations

import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.scoring.boxes import NO_BOX, NOT_FINITE, NOT_POSITIVE, as_floats, read_boxes

BOX = [(10.0, 20.0, 30.0, 40.0)]
COORDINATE = st.floats(-1e6, 1e6)
SIZE = st.floats(1e-3, 1e6)
BOXES = st.lists(st.tuples(COORDINATE, COORDINATE, SIZE, SIZE), min_size=1, max_size=6)


def boxes(text: str, *, tagged: bool = True) -> list[tuple[float, float, float, float]]:
    return as_floats(read_boxes(text, tagged=tagged).boxes)


@pytest.mark.parametrize(
    "text",
    [
        '{"height": 40, "width": 30, "y": 20, "x": 10}',
        '{"label": "nodule, left", "x": 10, "y": 20, "width": 30, "height": 40, "score": 0.9}',
        '{"boxes": [{"x": 10, "y": 20, "width": 30, "height": 40}]}',
        'I see {"x": 10, "y": 20, "width": 30, "height": 40}.',
        "```json\n[[10, 20, 30, 40]]\n```",
        "**[10, 20, 30, 40]**",
        "([10, 20, 30, 40])",
        "［１０，２０，３０，４０］",
        "See [1] and [2, 3]: [10, 20, 30, 40]",
        "an interval [0, 1) and then [10, 20, 30, 40]",
        "{crossed] [10, 20, 30, 40]",
        "]) [10, 20, 30, 40]",
    ],
)
def test_forms_that_are_read_everywhere(text: str) -> None:
    assert boxes(text, tagged=True) == boxes(text, tagged=False) == BOX


@pytest.mark.parametrize(
    "text",
    [
        "10, 20, 30, 40",
        "10 20 30 40",
        "`10, 20, 30, 40`",
        "```\n10, 20, 30, 40\n```",
        "(10, 20, 30, 40)",
        "[10 20 30 40]",
        "[10, 20, 30, 40,]",
        "['10', '20', '30', '40']",
        "x: 10, y: 20, width: 30, height: 40",
        "height=40, x=10, y=20, width=30",
        "X: 10 Y: 20 Width: 30 Height: 40",
        "[x: 10, y: 20, width: 30, height: 40]",
        "(x=10, y=20, width=30, height=40)",
    ],
)
def test_forms_that_only_a_tag_makes_plain(text: str) -> None:
    assert boxes(text, tagged=True) == BOX
    assert boxes(text, tagged=False) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10, 20, 30",
        "Box: 10, 20, 30, 40",
        "10, 20, 30, 40\n50, 60, 7, 8",
        "10, 20, 30, 40 (pixels)",
        "[10px, 20px, 30px, 40px]",
        "[10; 20; 30; 40]",
        "[,10, 20, 30, 40]",
        "[10,, 20, 30, 40]",
        "{10, 20, 30, 40}",
        '{"x": 10, "y": 20, "w": 30, "h": 40}',
        '{"x": 10, "y": 20, "x": 10, "width": 30, "height": 40}',
        '{"x": [10], "y": 20, "width": 30, "height": 40}',
        '{"note": "at x: 10", "y": 20, "width": 30, "height": 40}',
        '{"x": 10 or so, "y": 20, "width": 30, "height": 40}',
        '{"x": "10%", "y": 20, "width": 30, "height": 40}',
        "x: 10, y: 20, width: 30, height: 40, and so on",
        "box x: 10, y: 20, width: 30, height: 40",
        "[10, 20, [30, 40]]",
        "[10, 20, 30, 40, [5]]",
        "[10, 20, (30], 40)",
        "[10, 20, 30, 40)",
        "[10, 20, 30, 40",
        "[1_0, 20, 30, 40]",
        "[0x10, 20, 30, 40]",
        "[1.2.3, 20, 30, 40]",
        "[10², 20, 30, 40]",
        "[1" + "0" * 100 + ", 20, 30, 40]",
        "[1e-99999999, 20, 30, 40]",
    ],
)
def test_what_is_not_plain_is_no_box(text: str) -> None:
    for tagged in (True, False):
        reading = read_boxes(text, tagged=tagged)
        assert reading.boxes == ()
        assert reading.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[NaN, 1, 2, 3]", NOT_FINITE),
        ("[1, 2, -inf, 3]", NOT_FINITE),
        ("[1, 2, 1e999, 3]", NOT_FINITE),
        ("[1, 2, 0, 3]", NOT_POSITIVE),
        ("[1, 2, 3, -3]", NOT_POSITIVE),
        ("[1, 2, 3, 1e-999]", NOT_POSITIVE),
        ("[1, 2, 3]", "3 numbers where a box has 4"),
        ("nothing there", NO_BOX),
    ],
)
def test_the_reason_is_told(text: str, reason: str) -> None:
    assert read_boxes(text, tagged=True).reason == read_boxes(text, tagged=False).reason == reason


def test_a_reading_with_a_box_still_tells_what_it_rejected() -> None:
    reading = read_boxes("[[10, 20, 30, 40], [1, 2, 0, 4]]", tagged=True)
    assert (as_floats(reading.boxes), reading.rejected, reading.reason) == (BOX, (NOT_POSITIVE,), "")


def test_decimals_stay_as_written() -> None:
    (box,) = read_boxes("[0.10, 20.250, 1e2, +.5]", tagged=False).boxes
    assert [str(number) for number in box] == ["0.10", "20.250", "1E+2", "0.5"]


def test_the_minus_sign_of_typographers_is_a_minus() -> None:
    assert boxes("[−5, -5, 30, 40]") == [(-5.0, -5.0, 30.0, 40.0)]


@given(BOXES, st.booleans())
def test_what_json_wrote_is_read_back(values: list[tuple[float, float, float, float]], tagged: bool) -> None:
    reading = read_boxes(f"Found: {json.dumps(values)}", tagged=tagged)
    assert as_floats(reading.boxes) == values
    assert [tuple(map(Decimal, map(repr, box))) for box in values] == list(reading.boxes)


@given(
    st.one_of(
        st.text(),
        st.lists(
            st.sampled_from(["[", "]", "(", ")", "{", "}", ",", " ", "1", "x", ":", "nan", '"', "1e9", "-"])
        ).map("".join),
    ),
    st.booleans(),
)
def test_any_text_is_read_without_an_error_and_boxes_are_usable(text: str, tagged: bool) -> None:
    reading = read_boxes(text, tagged=tagged)
    for box in as_floats(reading.boxes):
        assert all(map(math.isfinite, box))
        assert min(box[2:]) > 0
    assert bool(reading.reason) != bool(reading.boxes)


@pytest.mark.parametrize(
    "unit",
    ["[", "]", "[1,", "[1, 2, 3, 4],", "1", "1,", "x:", '"', "```", "{", "x: 1,", "(", " ", "9" * 99 + ","],
)
def test_hostile_replies_take_linear_time(unit: str) -> None:
    """One pass takes some hundred milliseconds here; backtracking would not come back within the hour."""
    text = unit * (200_000 // len(unit))
    for tagged in (True, False):
        read_boxes(text, tagged=tagged)
