"""What the long form is written from; apart from it, since that one brings pyarrow along."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mmbu_async.store import LongRow, RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """One run as one judge sees it."""

    run: RunRecord
    judge: str | None
    """Name of the judge; None: the run has none."""
    attributes: Sequence[str]
    """That any of the rows names."""
    rows: Iterable[LongRow]
