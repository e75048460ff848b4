"""What every source of rows can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from mmbu_async.model import ImageRef, Json, RawRow


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One row as its table has it."""

    where: str
    fields: Mapping[str, Json]
    images: tuple[tuple[str, str], ...]
    """(column, locator) of each image: the file's name, or `table#row#column` for one inside the table."""


class Table(Protocol):
    """One file of rows in a local folder."""

    name: str
    """The path below the folder."""
    count: int | None
    """Rows, where that is known without reading them."""
    digest: str
    """Changes when the file does."""
    image_kinds: str
    """The image columns and what they hold, for people."""

    def rows(self) -> Iterator[TableRow]:
        """All rows in order. Raises DataError naming the place."""

    def image(self, row: int, column: str, item: int) -> bytes | str:
        """An image inside the table, or the name of its file. `row` is that of the locator. Thread-safe.

        Raises ImageError.
        """


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
        """Why there is no such image and what to do about it, '' where there is one. Does not read it.

        What is missing in an archive is no problem here: it fails its row when it is read.
        """

    def read_image(self, ref: ImageRef) -> bytes:
        """The bytes, untouched. Thread-safe. Raises ImageError naming the image."""

    def describe(self) -> tuple[str, ...]:
        """What was found, a line each: tables, with their rows where that is cheaply known; archives; image
        columns."""
