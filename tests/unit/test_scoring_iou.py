"""The kernel against a loop over exact fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.model import Box
from mmbu_async.scoring import iou
from mmbu_async.scoring.iou import BoxArrays, exact_iou, on_its_side, overlaps

NAN, INF = math.nan, math.inf
Rows = list[list[Box]]


def exact(boxes: Sequence[Box]) -> list[tuple[Fraction, Fraction, Fraction, Fraction]]:
    """Usable boxes as fractions of their shortest decimals."""
    found = []
    for box in boxes:
        if all(map(math.isfinite, box)) and box[2] > 0 and box[3] > 0:
            x, y, width, height = (Fraction(repr(number)) for number in box)
            found.append((x, y, width, height))
    return found


def best(predicted: Sequence[Box], truth: Sequence[Box]) -> Fraction:
    pairs = [exact_iou(one, other) for one in exact(predicted) for other in exact(truth)]
    return max(pairs, default=Fraction(0))


def check(predicted: Rows, truth: Rows) -> None:
    found = overlaps(BoxArrays.from_lists(predicted), BoxArrays.from_lists(truth))
    for row, (one, other) in enumerate(zip(predicted, truth, strict=True)):
        expected = best(one, other)
        assert found.max_iou[row] == pytest.approx(float(expected), abs=1e-9)
        assert found.correct[row] == (expected >= Fraction(1, 2)) == (found.max_iou[row] >= 0.5)


# Small whole numbers and tenths make exact halves, touching edges and equal boxes frequent.
WHOLE = st.integers(-4, 12).map(float)
TENTHS = st.integers(-30, 60).map(lambda number: number / 10)
WILD = st.one_of(st.floats(), st.sampled_from([NAN, INF, -INF, 0.0, -1.0, 1e-200, 1e200, 1e300, 5e-324]))
ROWS = st.one_of(
    *[
        st.lists(
            st.tuples(*[st.lists(st.tuples(number, number, size, size), max_size=4)] * 2),
            min_size=1,
            max_size=8,
        )
        for number, size in (
            (WHOLE, st.integers(1, 8).map(float)),
            (TENTHS, st.integers(1, 40).map(lambda n: n / 10)),
            (WHOLE, WHOLE),
        )
    ]
)


@given(ROWS)
def test_the_kernel_agrees_with_fractions(rows: list[tuple[list[Box], list[Box]]]) -> None:
    check([list(one) for one, _ in rows], [list(other) for _, other in rows])


@given(
    st.lists(st.tuples(WILD, WILD, WILD, WILD), max_size=4),
    st.lists(st.tuples(WILD, WILD, WILD, WILD), max_size=4),
)
def test_no_number_raises_and_every_decision_is_exact(one: list[Box], other: list[Box]) -> None:
    check([one], [other])


@pytest.mark.parametrize("bad", [NAN, INF, -INF, 0.0, -1.0])
@pytest.mark.parametrize("place", [2, 3])
def test_unusable_sizes_never_match(bad: float, place: int) -> None:
    box = [0.0, 0.0, 1.0, 1.0]
    box[place] = bad
    broken: Box = (box[0], box[1], box[2], box[3])
    good: Box = (0.0, 0.0, 1.0, 1.0)
    for one, other in (([broken], [good]), ([good], [broken]), ([broken], [broken])):
        found = overlaps(BoxArrays.from_lists([one]), BoxArrays.from_lists([other]))
        assert (found.max_iou[0], found.correct[0]) == (0.0, False)


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e-3, 1.0, 1e6, 1e100, 1e300])
def test_the_unit_of_length_does_not_matter(scale: float) -> None:
    one, other = [(0.0, 0.0, scale, scale)], [(0.0, 0.0, scale, 2 * scale)]
    found = overlaps(BoxArrays.from_lists([one]), BoxArrays.from_lists([other]))
    assert (found.max_iou[0], found.correct[0]) == (0.5, True)


def test_small_boxes_far_out_keep_their_digits() -> None:
    one, other = [(1e9 + 0.3, 0.0, 0.3, 1.0)], [(1e9 + 0.2, 0.0, 0.3, 1.0)]
    found = overlaps(BoxArrays.from_lists([one]), BoxArrays.from_lists([other]))
    assert found.max_iou[0] == 0.5
    assert found.correct[0]


def test_halves_written_in_decimals_are_halves() -> None:
    """In floating point some of these fall below one half."""
    halves = [[(0.1 * n, 0.0, 0.1 * k, 0.7)] for n in range(1, 30) for k in range(1, 30)]
    predicted: Rows = [[(round(x, 1), y, round(w, 1), h)] for ((x, y, w, h),) in halves]
    truth: Rows = [[(x, y, w, 1.4)] for ((x, y, w, h),) in predicted]
    found = overlaps(BoxArrays.from_lists(predicted), BoxArrays.from_lists(truth))
    assert found.correct.all()


def test_the_boxes_as_written_decide() -> None:
    """The same floats, told apart by digits that a float does not hold."""
    flat = BoxArrays.from_lists([[(0.0, 0.0, 1.0, 1.0)]])
    true = BoxArrays.from_lists([[(0.0, 0.0, 1.0, 2.0)]])
    for less in (Fraction(0), Fraction(1, 10**30)):
        square = (Fraction(0), Fraction(0), Fraction(1), 1 - less)
        tall = (Fraction(0), Fraction(0), Fraction(1), Fraction(2))
        found = overlaps(flat, true, lambda row, square=square, tall=tall: ([square], [tall]))  # type: ignore[misc]
        assert found.correct[0] == (less == 0) == (found.max_iou[0] >= 0.5)


def test_a_float_never_changes_sides() -> None:
    below = Fraction(1, 2) - Fraction(1, 10**30)
    assert on_its_side(below) < 0.5 <= on_its_side(Fraction(1, 2))


def test_chunks_give_what_one_piece_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 4, 500))]).astype(np.int64)
    values = rng.integers(1, 9, (int(offsets[-1]), 4)).astype(np.float64)
    boxes = BoxArrays(values=values, offsets=offsets)
    turned = BoxArrays(values=values[::-1].copy(), offsets=offsets)
    whole = overlaps(boxes, turned)
    for rows, pairs in ((1, 10**6), (7, 10**6), (4096, 1), (4096, 10)):
        monkeypatch.setattr(iou, "CHUNK_ROWS", rows)
        monkeypatch.setattr(iou, "CHUNK_PAIRS", pairs)
        assert np.array_equal(overlaps(boxes, turned).max_iou, whole.max_iou)


def test_a_row_with_ten_thousand_boxes_fits() -> None:
    many: list[Box] = [(float(n), 0.0, 1.0, 1.0) for n in range(10_000)]
    found = overlaps(BoxArrays.from_lists([many, many[:1]]), BoxArrays.from_lists([many[-40:], many[:1]]))
    assert found.max_iou.tolist() == [1.0, 1.0]


def test_no_rows_are_no_trouble() -> None:
    assert overlaps(BoxArrays.from_lists([]), BoxArrays.from_lists([])).max_iou.size == 0


def test_rows_without_boxes_score_zero() -> None:
    one: Rows = [[], [(0.0, 0.0, 1.0, 1.0)], []]
    found = overlaps(BoxArrays.from_lists(one), BoxArrays.from_lists([[], [], [(0.0, 0.0, 1.0, 1.0)]]))
    assert found.max_iou.tolist() == [0.0, 0.0, 0.0]


def test_misuse_is_named() -> None:
    with pytest.raises(ValueError, match="four numbers"):
        BoxArrays.from_lists([[(1.0, 2.0, 3.0)]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="1 rows of predicted boxes, 0 of true ones"):
        overlaps(BoxArrays.from_lists([[]]), BoxArrays.from_lists([]))
