"""What every source of rows can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from mmbu_async.model import ImageRef, Json


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRow:
    """One row as the source has it."""

    position: int
    """Place in the source, from 0."""
    fields: Mapping[str, Json]
    """Every column but the image bytes."""
    images: tuple[ImageRef, ...]
    where: str
    """For error messages, e.g. `metadata.jsonl, line 12`."""


class Source(Protocol):
    """Rows and image bytes, streamed: memory does not grow with the number of rows."""

    @property
    def description(self) -> str:
        """Where the rows come from, for people."""

    @property
    def stamp(self) -> str:
        """Changes when the table of rows changes; cheap to get, so that a resume need not read every row."""

    def rows(self) -> Iterator[RawRow]:
        """All rows in order. Raises DataError naming file and line."""

    def image_problem(self, ref: ImageRef) -> str:
        """Why there is no such image and what to do about it, '' where there is one. Does not read it."""

    def read_image(self, ref: ImageRef) -> bytes:
        """The bytes, untouched. Thread-safe. Raises ImageError naming the image."""
