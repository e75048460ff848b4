"""What a look through a run's rows asks for and gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mmbu_async.model import Json

OUTCOMES = ("right", "wrong", "unjudged", "ungraded", "failed", "pending")
FLIPS = ("gained", "lost", "both right", "both wrong")
"""Of a row that is scored in both runs: wrong here and right beside, the reverse, or alike."""
FLIPPED = "flipped"
"""Gained or lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Which rows are wanted; all conditions must hold, None and empty are none."""

    text: str = ""
    """In question, truth, reply or row id; A-Z in both cases."""
    family: str | None = None
    strata: tuple[tuple[str, str], ...] = ()
    """(attribute, value) pairs."""
    outcome: str | None = None
    """One of OUTCOMES."""
    how: str | None = None
    """How the answer was found."""
    finish: str | None = None
    """How the reply ended."""
    disputed: bool | None = None
    """True: judges gave different verdicts."""
    flip: str | None = None
    """One of FLIPS, or FLIPPED."""

    @property
    def wider(self) -> RowFilter:
        """Without outcome and flip: what their counts are taken over."""
        return replace(self, outcome=None, flip=None)

    @property
    def plain(self) -> RowFilter:
        """Without the text too: what needs no reading of texts."""
        return replace(self, outcome=None, flip=None, text="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRow:
    """A row as a list shows it."""

    key: int
    position: int
    row_id: str
    family: str
    question: str
    truth: str
    images: int
    outcome: str
    how: str | None
    finish: str | None
    disputed: bool
    flip: str | None
    answer: str | None
    """None without a score."""
    beside_outcome: str | None
    """Of the run beside; None where it has not this row."""
    beside_answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a row stands among those of a filter."""

    inside: bool
    """Whether the filter leaves the row itself."""
    before: int
    """Rows of the filter that come before it."""
    previous: int | None
    next: int | None
    """Keys of the nearest rows of the filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowVerdict:
    """A judge's last word on a row, and which prompt it answers."""

    judge: str
    identity: Mapping[str, Json]
    correct: bool | None
    reply: str
    prompt_sha256: str
    """Hexadecimal; '' where it is not known."""
    shared: bool
    """Taken from the reply to an identical prompt, not bought for this row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What there is to filter by, with the number of rows in the whole run, most rows first."""

    families: Mapping[str, int]
    hows: Mapping[str, int]
    finishes: Mapping[str, int]
    disputed: int
    strata: Mapping[str, Mapping[str, int]]
    """Attribute -> value -> rows."""
