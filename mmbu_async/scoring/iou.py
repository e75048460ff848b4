"""The IoU kernel: for each row the best overlap of any predicted with any true box, and whether it is >= 0.5.

Rows are ragged, so their boxes lie flat, one after another, with offsets: row `r` has the boxes
`offsets[r]:offsets[r + 1]`. All pairs of a row are written out as flat index pairs, their IoU is computed at
once, and the maximum of each row taken with `np.maximum.reduceat`. Python loops over chunks only: some
thousand rows keep the arrays in cache, which is worth a factor of four over all rows at once.

Floating point is wrong at the edge: pairs within 1e-9 of the threshold, and pairs that floats cannot measure,
are decided with fractions, from the decimals as they were written.

Boxes with NaN, infinity, or a size that is not positive never match and never raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

import numpy as np
import numpy.typing as npt

from mmbu_async.model import Box

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

THRESHOLD = 0.5
EDGE = 1e-9
"""Pairs whose IoU is this near to the threshold are decided exactly. Float error is some 1e-15 here."""
CHUNK_ROWS = 4096
CHUNK_PAIRS = 1 << 18
"""A reply may list ten thousand boxes: chunks are cut at so many pairs too, to bound memory."""

_TINY, _HUGE = 1e-75, 1e75
"""Sizes outside have areas that may leave the range of floats."""
_FAR = 2.0**18
"""Coordinate / size beyond which rounding of the coordinates could move an IoU by as much as EDGE."""

FractionBox = tuple[Fraction, Fraction, Fraction, Fraction]
ExactRow = Callable[[int], tuple[Sequence[FractionBox], Sequence[FractionBox]]]
"""Row number -> its predicted and true boxes as written; in the order and number of the flat arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxArrays:
    """Boxes of many rows: `values` is (n, 4), x, y, width, height; `offsets` has one more entry than rows."""

    values: Floats
    offsets: Ints

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1

    def row(self, number: int) -> Floats:
        return self.values[self.offsets[number] : self.offsets[number + 1]]

    @classmethod
    def from_lists(cls, rows: Sequence[Sequence[Box]]) -> BoxArrays:
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(counts, out=offsets[1:])
        numbers = chain.from_iterable(chain.from_iterable(rows))
        values = np.fromiter(numbers, dtype=np.float64)
        if values.size != 4 * offsets[-1]:
            raise ValueError("every box needs four numbers")
        return cls(values=values.reshape(-1, 4), offsets=offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlaps:
    """One entry a row. `correct` says `max_iou >= 0.5`, and `max_iou` is on the right side of it."""

    max_iou: Floats
    correct: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairChunk:
    """The IoU of all pairs of some rows, each on the right side of the threshold."""

    rows: Ints
    """The rows that have pairs."""
    starts: Ints
    """Where the pairs of each of these rows begin in `iou`."""
    iou: Floats
    """One entry a pair: the predicted boxes of a row in order, each with all its true boxes in order."""


def overlaps(predicted: BoxArrays, truth: BoxArrays, exact: ExactRow | None = None) -> Overlaps:
    """The best IoU of each row, decided exactly at the edge.

    `exact` gives the boxes of one row as written; without it the shortest decimals of the floats are taken.
    """
    best = np.zeros(truth.rows, dtype=np.float64)
    for chunk in pair_chunks(predicted, truth, exact):
        best[chunk.rows] = np.maximum.reduceat(chunk.iou, chunk.starts)
    return Overlaps(max_iou=best, correct=best >= THRESHOLD)


def pair_chunks(predicted: BoxArrays, truth: BoxArrays, exact: ExactRow | None = None) -> Iterator[PairChunk]:
    """The IoU of all pairs, some thousand rows at a time, rows without pairs left out."""
    if predicted.rows != truth.rows:
        raise ValueError(f"{predicted.rows} rows of predicted boxes, {truth.rows} of true ones")
    source = exact or written_floats(predicted, truth)
    pairs = np.zeros(truth.rows + 1, dtype=np.int64)
    np.cumsum(np.diff(predicted.offsets) * np.diff(truth.offsets), out=pairs[1:])
    first = 0
    while first < truth.rows:
        by_pairs = int(np.searchsorted(pairs, pairs[first] + CHUNK_PAIRS, side="right")) - 1
        last = min(first + CHUNK_ROWS, max(by_pairs, first + 1), truth.rows)
        if pairs[last] > pairs[first]:
            chunk = _pairs(predicted, truth, first, last)
            _decide_edges(chunk, source)
            yield chunk
        first = last


def written_floats(predicted: BoxArrays, truth: BoxArrays) -> ExactRow:
    """Boxes as fractions of the shortest decimals that stand for the floats: what JSON wrote."""

    def row(number: int) -> tuple[list[FractionBox], list[FractionBox]]:
        return _written(predicted.row(number)), _written(truth.row(number))

    return row


def exact_iou(one: FractionBox, other: FractionBox) -> Fraction:
    """Intersection area / union area of two boxes; 0 where a size is not positive."""
    if min(one[2], one[3], other[2], other[3]) <= 0:
        return Fraction(0)
    across = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    down = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    if across <= 0 or down <= 0:
        return Fraction(0)
    shared = across * down
    return shared / (one[2] * one[3] + other[2] * other[3] - shared)


def on_its_side(iou: Fraction) -> float:
    """The float nearest to an IoU that lies on the same side of the threshold."""
    nearest = float(iou)
    if nearest >= THRESHOLD > iou:
        return float(np.nextafter(THRESHOLD, 0))
    return nearest


def _decide_edges(chunk: PairChunk, source: ExactRow) -> None:
    """Replace the IoU of pairs that floating point cannot place by the exact one."""
    unsure = np.flatnonzero(~(np.abs(chunk.iou - THRESHOLD) >= EDGE))
    if not unsure.size:
        return
    places = np.searchsorted(chunk.starts, unsure, side="right") - 1
    boxes: dict[int, tuple[Sequence[FractionBox], Sequence[FractionBox]]] = {}
    for pair, place in zip(unsure.tolist(), places.tolist(), strict=True):
        if place not in boxes:
            boxes = {
                place: source(int(chunk.rows[place]))
            }  # pairs come row by row: one row is enough to keep
        predicted, truth = boxes[place]
        one, other = divmod(pair - int(chunk.starts[place]), len(truth))
        chunk.iou[pair] = on_its_side(exact_iou(predicted[one], truth[other]))


def _written(boxes: Floats) -> list[FractionBox]:
    found: list[FractionBox] = []
    for box in boxes.tolist():
        if all(map(np.isfinite, box)):
            x, y, width, height = (Fraction(repr(number)) for number in box)
        else:
            x = y = width = height = Fraction(0)  # no size: never matches, and keeps its place
        found.append((x, y, width, height))
    return found


def _pairs(predicted: BoxArrays, truth: BoxArrays, first: int, last: int) -> PairChunk:
    one = predicted.values[predicted.offsets[first] : predicted.offsets[last]]
    other = truth.values[truth.offsets[first] : truth.offsets[last]]
    one_counts = np.diff(predicted.offsets[first : last + 1])
    other_counts = np.diff(truth.offsets[first : last + 1])
    other_starts = truth.offsets[first:last] - truth.offsets[first]

    # Each predicted box stands beside every true box of its row: it is repeated so often, and the indices of
    # the true boxes run from the row's first one up again for each predicted box.
    repeats = np.repeat(other_counts, one_counts)
    ends = np.cumsum(repeats)
    shift = np.repeat(other_starts, one_counts) - (ends - repeats)
    index = np.arange(int(ends[-1]), dtype=np.int64)
    index += np.repeat(shift, repeats)

    with np.errstate(all="ignore"):
        iou = _iou(_columns(one), repeats, _columns(other), index)
    counts = one_counts * other_counts
    filled = np.flatnonzero(counts)
    starts = (np.cumsum(counts) - counts)[filled]
    return PairChunk(rows=filled + first, starts=starts, iou=iou)


def _columns(boxes: Floats) -> Floats:
    """The boxes as four contiguous columns, made safe for `_iou`.

    Boxes that never match get sizes of -1, which no overlap survives. Boxes whose areas leave the range of
    floats, or that are so small beside their coordinates that digits are lost, become NaN: decided exactly.
    """
    columns = np.ascontiguousarray(boxes.T)
    smallest = np.minimum(columns[2], columns[3])
    reach = np.abs(columns).max(axis=0, initial=0.0)
    good = (smallest > _TINY) & (reach < _HUGE) & (reach < _FAR * smallest)
    if not good.all():
        columns = columns.copy()
        never = ~(np.isfinite(columns).all(axis=0) & (smallest > 0))
        columns[:, ~good] = np.nan
        columns[:, never] = np.array([[0.0], [0.0], [-1.0], [-1.0]])
    return columns


def _iou(one: Floats, repeats: Ints, other: Floats, index: Ints) -> Floats:
    """IoU of flat pairs. Offsets are subtracted before sizes are added, so that digits are kept far out."""
    left = np.repeat(one[0], repeats)
    width = np.repeat(one[2], repeats)
    other_width = other[2][index]
    np.subtract(other[0][index], left, out=left)
    across: Floats = np.minimum(width, left + other_width)
    across -= np.maximum(left, 0.0, out=left)
    np.maximum(across, 0.0, out=across)

    top = np.repeat(one[1], repeats)
    height = np.repeat(one[3], repeats)
    other_height = other[3][index]
    np.subtract(other[1][index], top, out=top)
    down: Floats = np.minimum(height, top + other_height)
    down -= np.maximum(top, 0.0, out=top)
    np.maximum(down, 0.0, out=down)

    across *= down
    width *= height
    other_width *= other_height
    width += other_width
    width -= across
    across /= width
    return across
