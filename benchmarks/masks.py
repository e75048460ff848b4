"""Dice and IoU of run-length masks, beside pycocotools and beside decoded pixels.

    python -m benchmarks.masks [--json FILE] [--quick]

2,000 rows of 512 x 512 pixels, a few discs each, as COCO's compressed run lengths. All ways must find the
same figures, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from pycocotools import mask as coco

from benchmarks.iou import timed
from benchmarks.scheme import Figure, Findings, Options, present
from mmbu_async.scoring.masks import Floats, Mask, overlaps

ROWS = 2_000
SIDE = 512
READ_AIM, RUNS_AIM = 5.0, 50.0
"""Thousand rows a second."""

Rle = dict[str, Any]
Scores = tuple[Floats, Floats]
"""Dice and IoU, one entry a row."""


def measure(options: Options) -> Findings:
    rng = np.random.default_rng(2026)
    rows = options.rows(ROWS, 100)
    predicted, truth = ([draw(rng) for _ in range(rows)] for _ in range(2))
    ready = [Mask.from_rle(one) for one in predicted], [Mask.from_rle(one) for one in truth]
    ways: dict[str, Callable[[], Scores]] = {
        "runs, ready": lambda: ours(*ready),
        "runs, from compressed text": lambda: ours(
            [Mask.from_rle(one) for one in predicted], [Mask.from_rle(one) for one in truth]
        ),
        "pycocotools, from compressed text": lambda: by_coco(predicted, truth),
        "numpy on decoded pixels": lambda: by_pixels(predicted, truth),
    }
    results = {name: way() for name, way in ways.items()}
    seconds = {name: [timed(way) for _ in range(options.repeats)] for name, way in ways.items()}
    expected = results["pycocotools, from compressed text"]
    apart = max(
        float(np.abs(one - other).max())
        for found in results.values()
        for one, other in zip(found, expected, strict=True)
    )
    decoded = sum(
        not np.array_equal(mask.pixels, coco.decode(rle))
        for mask, rle in zip(ready[0], predicted, strict=True)
    )
    aims = {"runs, ready": RUNS_AIM, "runs, from compressed text": READ_AIM}
    return Findings(
        figures=[
            *(
                Figure(
                    what=name,
                    value=rows / min(times) / 1e3,
                    unit="thousand rows/s",
                    at_least=None if options.quick else aims.get(name),
                )
                for name, times in seconds.items()
            ),
            Figure(what="largest difference between the four", value=apart, unit="Dice, IoU", at_most=0),
            Figure(what="masks decoded differently", value=float(decoded), unit="masks", at_most=0),
        ],
        method=METHOD,
        details={
            "rows": rows,
            "side": SIDE,
            "seconds": seconds,
            "runs_a_mask": float(np.mean([mask.starts.size for side in ready for mask in side])),
            "mean_iou": float(expected[1].mean()),
            "empty_pairs": int(sum(not (a.area + b.area) for a, b in zip(*ready, strict=True))),
        },
    )


METHOD = (
    "Masks are unions of up to four discs, drawn with a fixed seed; some are empty. Each way is given both "
    "sides and finds Dice and IoU of every row; pycocotools takes one row at a time, and its Dice comes from "
    "its areas. Times are the best of several; all are in the details."
)


def draw(rng: np.random.Generator) -> Rle:
    """A mask of up to four discs."""
    down, across = np.ogrid[:SIDE, :SIDE]
    pixels = np.zeros((SIDE, SIDE), dtype=np.bool_)
    for _ in range(int(rng.integers(0, 5))):
        y, x, radius = *rng.integers(100, SIDE - 100, 2), rng.integers(10, 100)
        pixels |= (down - y) ** 2 + (across - x) ** 2 < radius**2
    return dict(coco.encode(np.asfortranarray(pixels, dtype=np.uint8)))


def ours(predicted: list[Mask], truth: list[Mask]) -> Scores:
    found = overlaps(predicted, truth)
    return found.dice, found.iou


def by_coco(predicted: list[Rle], truth: list[Rle]) -> Scores:
    return by_row(
        (
            coco.area(coco.merge([one, other], intersect=True)),
            coco.area(coco.merge([one, other])),
            coco.area(one) + coco.area(other),
        )
        for one, other in zip(predicted, truth, strict=True)
    )


def by_pixels(predicted: list[Rle], truth: list[Rle]) -> Scores:
    return by_row(
        (
            np.count_nonzero(one & other),
            np.count_nonzero(one | other),
            np.count_nonzero(one) + np.count_nonzero(other),
        )
        for one, other in (
            (coco.decode(left), coco.decode(right)) for left, right in zip(predicted, truth, strict=True)
        )
    )


def by_row(areas: Any) -> Scores:
    """From the shared, joined and summed areas of each row; 1 where both masks are empty."""
    counts: npt.NDArray[np.float64] = np.array(list(areas), dtype=np.float64)
    shared, joined, summed = counts.T
    empty = summed == 0
    one = np.where(empty, 1.0, 2 * shared / np.where(empty, 1.0, summed))
    return one, np.where(empty, 1.0, shared / np.where(empty, 1.0, joined))


def main() -> None:
    present("masks", measure, __doc__)


if __name__ == "__main__":
    main()
