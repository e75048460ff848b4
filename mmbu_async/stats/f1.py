"""Micro-averaged F1 from counts: 2·TP / (2·TP + FP + FN)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def micro_f1(tp: int, fp: int, fn: int) -> float | None:
    """F1 of summed counts; None where nothing was there to find and nothing was claimed."""
    whole = 2 * tp + fp + fn
    return 2 * tp / whole if whole else None


def micro_f1_each(tp: ArrayLike, fp: ArrayLike, fn: ArrayLike) -> NDArray[np.float64]:
    """F1 of each element of equally long arrays; elements without a value are left out, never NaN."""
    twice = 2 * np.asarray(tp, dtype=np.int64)
    whole = twice + np.asarray(fp, dtype=np.int64) + np.asarray(fn, dtype=np.int64)
    defined = whole > 0
    result: NDArray[np.float64] = twice[defined] / whole[defined]
    return result
