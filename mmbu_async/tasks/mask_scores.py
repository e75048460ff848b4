"""Scores of rows whose answer is a segmentation mask: Dice and IoU, right from an IoU of one half on.

MMBU's authors name the lack of a segmentation score; this is ours. A reply gives its mask as run lengths in
JSON (`{"size": [height, width], "counts": ...}`) or as a PNG in base64.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmbu_async.model import Score, ScoreItem, Status
from mmbu_async.scoring.masks import Mask, overlaps, read_mask

THRESHOLD = 0.5


def score_masks(rows: Sequence[ScoreItem]) -> list[Score]:
    """Right where the IoU is at least THRESHOLD; a reply without a readable mask is wrong, and says why."""
    scores: list[Score | None] = []
    places: list[int] = []
    given: list[Mask] = []
    true: list[Mask] = []
    for place, row in enumerate(rows):
        truth = read_mask(row.sample.answer)
        mask, reason = _read(row.answer.text, truth)
        if mask is None:
            detail = {"iou": 0.0, "dice": 0.0, "reason": reason}
            scores.append(Score(status=Status.SCORED, correct=False, fn=1, detail=detail))
            continue
        scores.append(None)
        places.append(place)
        given.append(mask)
        true.append(truth)
    if places:
        found = overlaps(given, true)
        for place, iou, dice in zip(places, found.iou.tolist(), found.dice.tolist(), strict=True):
            right = iou >= THRESHOLD
            scores[place] = Score(
                status=Status.SCORED,
                correct=right,
                tp=int(right),
                fp=int(not right),
                fn=int(not right),
                detail={"iou": iou, "dice": dice},
            )
    return [score for score in scores if score is not None]


def _read(text: str, truth: Mask) -> tuple[Mask | None, str]:
    try:
        mask = read_mask(text)
    except ValueError as error:
        return None, str(error)
    if (mask.height, mask.width) != (truth.height, truth.width):
        return None, (
            f"the mask has {mask.width} x {mask.height} pixels, the truth {truth.width} x {truth.height}"
        )
    return mask, ""
