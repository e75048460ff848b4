"""The IoU kernel over ragged boxes, beside a loop over rows in numpy and beside pycocotools.

    python -m benchmarks.iou [--json FILE] [--quick]

100,000 rows with 1 to 5 boxes a side. All three must find the same maxima. What floating point makes of an
IoU of exactly one half between decimals is counted too: the kernel decides those from the decimals.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pycocotools import mask

from benchmarks.scheme import Figure, Findings, Options, present
from mmbu_async.model import Box
from mmbu_async.scoring.iou import BoxArrays, Floats, overlaps

ROWS = 100_000
HALVES = 20_000
FLAT_AIM, LISTS_AIM = 2.0, 0.4
"""Million rows a second."""


def measure(options: Options) -> Findings:
    rng = np.random.default_rng(2026)
    rows = options.rows(ROWS, 5_000)
    predicted, truth = draw(rng, rows), draw(rng, rows)
    predicted_lists, truth_lists = as_lists(predicted), as_lists(truth)
    ways: dict[str, Callable[[], Floats]] = {
        "kernel, flat arrays": lambda: overlaps(predicted, truth).max_iou,
        "kernel, lists of boxes": lambda: (
            overlaps(BoxArrays.from_lists(predicted_lists), BoxArrays.from_lists(truth_lists)).max_iou
        ),
        "numpy, row by row": lambda: loop_over_rows(predicted, truth),
        "pycocotools, row by row": lambda: pycocotools_rows(predicted, truth),
    }
    results = {name: way() for name, way in ways.items()}
    seconds = {
        name: [timed(way) for _ in range(options.repeats * (5 if name.startswith("kernel") else 1))]
        for name, way in ways.items()
    }
    speed = {name: rows / min(times) / 1e6 for name, times in seconds.items()}
    expected = results["kernel, flat arrays"]
    apart = max(float(np.abs(found - expected).max()) for found in results.values())
    decided = sum(int(((found >= 0.5) != (expected >= 0.5)).sum()) for found in results.values())
    aims = {"kernel, flat arrays": FLAT_AIM, "kernel, lists of boxes": LISTS_AIM}
    kernel_halves, loop_halves = halves_below(options.rows(HALVES, 2_000))
    million = "million rows/s"
    return Findings(
        figures=[
            *(
                Figure(what=name, value=value, unit=million, at_least=aims.get(name))
                for name, value in speed.items()
            ),
            Figure(what="largest difference between the four", value=apart, unit="IoU", at_most=1e-12),
            Figure(what="rows decided differently", value=float(decided), unit="rows", at_most=0),
            Figure(what="exact halves called wrong, kernel", value=100 * kernel_halves, unit="%", at_most=0),
            Figure(what="exact halves called wrong, numpy row by row", value=100 * loop_halves, unit="%"),
        ],
        method=METHOD,
        details={"rows": rows, "seconds": seconds, "correct_share": float((expected >= 0.5).mean())},
    )


METHOD = (
    "Boxes have whole coordinates, 1 to 5 a side and row, drawn with a fixed seed; both sides are given to "
    "each way in the form that suits it. Times are the best of several, since other work can only add to "
    "them; all are in the details. The exact halves are pairs whose decimals give an IoU of one half: a box "
    "with tenths, and one twice as high."
)


def draw(rng: np.random.Generator, rows: int) -> BoxArrays:
    """Boxes in an image of some 300 pixels, 1 to 5 a row."""
    offsets = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(rng.integers(1, 6, rows), out=offsets[1:])
    count = int(offsets[-1])
    corners, sizes = rng.integers(0, 200, (count, 2)), rng.integers(1, 100, (count, 2))
    return BoxArrays(values=np.hstack([corners, sizes]).astype(np.float64), offsets=offsets)


def as_lists(boxes: BoxArrays) -> list[list[Box]]:
    return [[(x, y, w, h) for x, y, w, h in boxes.row(row).tolist()] for row in range(boxes.rows)]


def loop_over_rows(predicted: BoxArrays, truth: BoxArrays) -> Floats:
    """The usual way: all pairs of a row by broadcasting, one row after the other."""
    best = np.zeros(truth.rows, dtype=np.float64)
    for row in range(truth.rows):
        one, other = predicted.row(row)[:, None, :], truth.row(row)[None, :, :]
        low = np.maximum(one[..., :2], other[..., :2])
        high = np.minimum(one[..., :2] + one[..., 2:], other[..., :2] + other[..., 2:])
        shared = np.prod(np.clip(high - low, 0, None), axis=-1)
        areas = np.prod(one[..., 2:], axis=-1) + np.prod(other[..., 2:], axis=-1)
        best[row] = (shared / (areas - shared)).max()
    return best


def pycocotools_rows(predicted: BoxArrays, truth: BoxArrays) -> Floats:
    """COCO's own IoU, which takes one row at a time."""
    best = np.zeros(truth.rows, dtype=np.float64)
    for row in range(truth.rows):
        one, other = predicted.row(row), truth.row(row)
        best[row] = mask.iou(one, other, [0] * len(other)).max()
    return best


def halves_below(count: int) -> tuple[float, float]:
    """Shares of exact halves that the kernel and the loop call less than one half."""
    rng = np.random.default_rng(7)
    tenths = rng.integers(1, 1000, (count, 4))
    boxes = tenths / 10
    twice = np.column_stack([tenths[:, :3], 2 * tenths[:, 3]]) / 10
    offsets = np.arange(count + 1, dtype=np.int64)
    one, other = BoxArrays(values=boxes, offsets=offsets), BoxArrays(values=twice, offsets=offsets)
    kernel, loop = overlaps(one, other).max_iou, loop_over_rows(one, other)
    return float((kernel < 0.5).mean()), float((loop < 0.5).mean())


def timed(way: Callable[[], Any]) -> float:
    began = time.perf_counter()
    way()
    return time.perf_counter() - began


def main() -> None:
    present("iou", measure, __doc__)


if __name__ == "__main__":
    main()
