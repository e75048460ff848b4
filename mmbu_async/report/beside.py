"""Measures that a scorer gives beside right and wrong, as means over the rows that have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mmbu_async.report.model import Measure
from mmbu_async.stats import LEVEL, mean_interval

MEASURES: Mapping[str, str] = {
    "iou": "IoU of masks",
    "dice": "Dice of masks",
    "token_recall": "token recall, open questions",
    "token_f1": "token F1, open questions",
    "second_right": "accuracy by the second reading",
}
"""What is looked for in a score's detail, from 0 to 1 or true and false -> its name for people."""


@dataclass(slots=True)
class Sums:
    n: int = 0
    total: float = 0.0
    squares: float = 0.0


class Measures:
    """Summed row by row: nothing is kept of a row."""

    def __init__(self) -> None:
        self._sums: dict[str, Sums] = {}

    def add(self, detail: Mapping[str, object]) -> None:
        """The detail of one score."""
        for key in MEASURES:
            value = detail.get(key)
            if isinstance(value, int | float):
                sums = self._sums.setdefault(key, Sums())
                sums.n += 1
                sums.total += value
                sums.squares += value * value

    def means(self) -> tuple[Measure, ...]:
        return tuple(
            Measure(
                name=name,
                rows=sums.n,
                mean=sums.total / sums.n,
                interval=mean_interval(sums.n, sums.total, sums.squares, level=LEVEL),
            )
            for key, name in MEASURES.items()
            if (sums := self._sums.get(key)) is not None
        )
