"""Boxes over an image: where they are drawn, what they are called, and how well they fit.

Coordinates are pixels of the original image as shown, which are those of the picture's own frame.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mmbu_async.model import Answer, Benchmark, Box, Json, Sample, ScoreItem
from mmbu_async.scoring.iou import BoxArrays, pair_chunks

MOST = 200
"""Boxes of one kind that are drawn. A reply may list ten thousand; the answer's text has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBox:
    """One box."""

    kind: str
    """`truth`, `predicted` or `beside`: which colour and stroke it has."""
    label: str
    """`T1`, `P1`, `Q1`."""
    box: Box
    """As it is."""
    x: float
    y: float
    width: float
    height: float
    """As it is drawn: far outside of the image coordinates are kept within what a renderer can do."""
    outside: bool
    """Nothing of it lies in the image."""
    label_x: float
    label_y: float
    """Where its name begins: each kind has a corner of its own, since boxes that fit share theirs."""
    best_iou: float | None
    """With any box on the other side; None where there is none."""
    best_with: str

    @property
    def numbers(self) -> str:
        return ", ".join(f"{number:.6g}" for number in self.box)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The boxes of one kind."""

    kind: str
    title: str
    boxes: tuple[DrawnBox, ...]
    left_out: int
    """Boxes beyond MOST, neither drawn nor listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The picture's size in original pixels."""

    width: int
    height: int

    @property
    def label_size(self) -> float:
        """So that labels look alike whatever the picture's size."""
        return max(self.width, self.height) / 34


def layers(
    frame: Frame, truth: Sequence[Box], predicted: Sequence[Box], beside: Sequence[Box] | None
) -> tuple[Layer, ...]:
    """True boxes first; `beside` are those of the other run, None where there is none."""
    made = [
        _layer("truth", "T", "True boxes", truth, "P", predicted, frame),
        _layer("predicted", "P", "Predicted boxes", predicted, "T", truth, frame),
    ]
    if beside is not None:
        made.append(_layer("beside", "Q", "Predicted boxes of the other run", beside, "T", truth, frame))
    return tuple(layer for layer in made if layer.boxes)


def boxes_of(detail: Mapping[str, Json], name: str) -> list[Box] | None:
    """Boxes of a score's detail; None where it has none of that name. What is no box is left out."""
    found = detail.get(name)
    if not isinstance(found, list):
        return None
    return [(float(box[0]), float(box[1]), float(box[2]), float(box[3])) for box in found if _is_box(box)]


def true_boxes(benchmark: Benchmark, sample: Sample) -> list[Box] | None:
    """The true boxes of a row that has no score yet; None where its benchmark scores it without boxes."""
    (score,) = benchmark.score([ScoreItem(sample=sample, answer=Answer(text="", how="tag"))])
    return boxes_of(score.detail, "truth")


def _is_box(box: Json) -> bool:
    return (
        isinstance(box, list)
        and len(box) == 4
        and all(isinstance(number, int | float) and math.isfinite(number) for number in box)
    )


def _layer(
    kind: str,
    letter: str,
    title: str,
    boxes: Sequence[Box],
    other_letter: str,
    others: Sequence[Box],
    frame: Frame,
) -> Layer:
    kept = boxes[:MOST]
    fits = _best_fits(kept, others)
    return Layer(
        kind=kind,
        title=title,
        boxes=tuple(
            _drawn(kind, f"{letter}{number}", box, fit, other_letter, frame)
            for number, (box, fit) in enumerate(zip(kept, fits, strict=True), start=1)
        ),
        left_out=len(boxes) - len(kept),
    )


def _drawn(
    kind: str, label: str, box: Box, fit: tuple[float, int] | None, other_letter: str, frame: Frame
) -> DrawnBox:
    left, right = _edges(box[0], box[2], frame.width)
    top, bottom = _edges(box[1], box[3], frame.height)
    return DrawnBox(
        kind=kind,
        label=label,
        box=box,
        x=left,
        y=top,
        width=right - left,
        height=bottom - top,
        outside=right <= 0 or bottom <= 0 or left >= frame.width or top >= frame.height,
        label_x=max(left, 0.0) + frame.label_size / 4
        if kind != "beside"
        else min(right, float(frame.width)) - frame.label_size * (0.3 + 0.62 * len(label)),
        label_y=max(top, 0.0) + frame.label_size
        if kind == "truth"
        else min(bottom, float(frame.height)) - frame.label_size / 4,
        best_iou=None if fit is None else fit[0],
        best_with="" if fit is None or fit[0] == 0 else f"{other_letter}{fit[1] + 1}",
    )


def _edges(start: float, size: float, end: int) -> tuple[float, float]:
    return min(max(start, -2.0 * end), 3.0 * end), min(max(start + size, -2.0 * end), 3.0 * end)


def _best_fits(boxes: Sequence[Box], others: Sequence[Box]) -> Iterable[tuple[float, int] | None]:
    """For each box the best IoU with any of the others, and with which."""
    if not boxes or not others:
        return [None] * len(boxes)
    pairs = list(pair_chunks(BoxArrays.from_lists([boxes]), BoxArrays.from_lists([others])))
    table = np.concatenate([chunk.iou for chunk in pairs]).reshape(len(boxes), len(others))
    return [(float(row.max()), int(row.argmax())) for row in table]
