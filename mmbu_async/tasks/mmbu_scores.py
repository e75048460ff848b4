"""Scores of MMBU rows: boxes by IoU, everything else by the judge's verdict.

Counts for the micro-F1, where the protocol leaves a choice: a detection row is one prediction, its best box;
a reply with no readable box made none, so that it counts one miss and no false positive. A row with several
labels counts per label (see `scoring/labels.py`). An empty answer is wrong without a judge and a miss only.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mmbu_async.model import Box, Json, Score, ScoreItem, Status
from mmbu_async.scoring.boxes import BoxReading, ExactBox, as_floats, read_boxes
from mmbu_async.scoring.iou import BoxArrays, FractionBox, overlaps
from mmbu_async.scoring.labels import count_labels, split_labels
from mmbu_async.scoring.matching import match_boxes

EMPTY = "the answer is empty"


def score_detections(rows: Sequence[ScoreItem]) -> list[Score]:
    """Best IoU of any predicted with any true box; correct from one half on, one half included."""
    readings = [read_boxes(row.answer.text, tagged=not row.answer.untagged) for row in rows]
    truths = [read_boxes(row.sample.answer, tagged=True).boxes for row in rows]
    shown = [_original(reading, row.image_scale) for reading, row in zip(readings, rows, strict=True)]
    predicted = BoxArrays.from_lists(shown)
    true = BoxArrays.from_lists([as_floats(boxes) for boxes in truths])

    def exact(number: int) -> tuple[list[FractionBox], list[FractionBox]]:
        factor = _exact_scale(rows[number].image_scale)
        return _fractions(readings[number].boxes, factor), _fractions(truths[number], Fraction(1))

    best = overlaps(predicted, true, exact)
    counts = match_boxes(predicted, true, exact)
    scores: list[Score] = []
    for number, (row, reading) in enumerate(zip(rows, readings, strict=True)):
        correct = bool(best.correct[number])
        detail: dict[str, Json] = {
            "max_iou": float(best.max_iou[number]),
            "predicted": [list(box) for box in shown[number]],
            "truth": true.row(number).tolist(),
            "offered": len(reading.boxes),
            "box_tp": int(counts.tp[number]),
            "box_fp": int(counts.fp[number]),
            "box_fn": int(counts.fn[number]),
        }
        if row.image_scale != 1:
            detail["image_scale"] = row.image_scale
        if not reading.boxes:
            detail["reason"] = reading.reason if row.answer.text.strip() else EMPTY
        scores.append(
            Score(
                status=Status.SCORED,
                correct=correct,
                tp=int(correct),
                fp=int(not correct and bool(reading.boxes)),
                fn=int(not correct),
                detail=detail,
            )
        )
    return scores


def score_judged(row: ScoreItem, *, several: bool) -> Score:
    """The judge's verdict; `several`: the row can hold several labels, which count one by one."""
    options = row.sample.options
    true = (several and split_labels(row.sample.answer, options)) or (row.sample.answer,)
    answered = bool(row.answer.text.strip())
    if not answered:
        return Score(status=Status.SCORED, correct=False, fn=len(true), detail={"reason": EMPTY})
    if row.verdict is None or row.verdict.correct is None:
        return Score(status=Status.UNJUDGED)
    correct = row.verdict.correct
    if not several:
        return Score(
            status=Status.SCORED, correct=correct, tp=int(correct), fp=int(not correct), fn=int(not correct)
        )
    given = split_labels(row.answer.text, options)
    tp, fp, fn = count_labels(true, given, correct=correct)
    detail = {"true_labels": list(true), "given_labels": list(given)}
    return Score(status=Status.SCORED, correct=correct, tp=tp, fp=fp, fn=fn, detail=detail)


def _original(reading: BoxReading, scale: float) -> list[Box]:
    """The predicted boxes in pixels of the original image."""
    boxes = as_floats(reading.boxes)
    if scale == 1:
        return boxes
    array = np.array(boxes, dtype=np.float64).reshape(-1, 4) / scale
    return [(x, y, width, height) for x, y, width, height in array.tolist()]


def _exact_scale(scale: float) -> Fraction:
    """The factor as the ratio of two image sizes that it is: the float is some 1e-16 beside it."""
    return Fraction(scale).limit_denominator(1_000_000) or Fraction(scale)


def _fractions(boxes: Sequence[ExactBox], scale: Fraction) -> list[FractionBox]:
    return [
        (Fraction(x) / scale, Fraction(y) / scale, Fraction(width) / scale, Fraction(height) / scale)
        for x, y, width, height in boxes
    ]
