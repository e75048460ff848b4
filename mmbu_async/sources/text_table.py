"""A text table of a local folder: its images are named by files, or stand in it as base64."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from mmbu_async.errors import DataError, ImageError
from mmbu_async.model import Json
from mmbu_async.sources.base import TableRow
from mmbu_async.sources.embedded import decoded, is_base64, locator
from mmbu_async.sources.tables import record_at, records, unit


class TextTable:
    """One JSONL, JSON, CSV or TSV file."""

    count: int | None = None

    def __init__(self, path: Path, name: str, image_columns: Sequence[str]) -> None:
        self.name = name
        self.image_kinds = f"{', '.join(image_columns)} (names of files, or base64 text)"
        self._path = path
        self._columns = tuple(image_columns)
        try:
            with path.open("rb") as file:
                self.digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}).") from None

    def rows(self) -> Iterator[TableRow]:
        unit_ = unit(self._path)
        for number, offset, fields in records(self._path, self.name):
            where = f"{self.name}, {unit_} {number}"
            if not any(column in fields for column in self._columns):
                raise DataError(
                    f"{where}: {_no_column(self._columns)}; add it with the path of each row's image."
                )
            images: list[tuple[str, str]] = []
            for column in self._columns:
                images += [(column, each) for each in self._images(fields, column, offset, where)]
            yield TableRow(where=where, fields=fields, images=tuple(images))

    def image(self, row: int, column: str, item: int) -> bytes | str:
        where = locator(self.name, row, column, item)
        try:
            fields = record_at(self._path, self.name, row)
        except DataError as error:
            raise ImageError(f"{where}: is not there any more; the table was changed ({error})") from None
        cell = _cell(fields.get(column) if fields else None)
        if item >= len(cell):
            raise ImageError(f"{where}: is not there any more; the table was changed.")
        return decoded(cell[item], where)

    def _images(self, fields: dict[str, Json], column: str, offset: int, where: str) -> list[str]:
        """Locators of the images in one cell; base64 is taken out of the fields."""
        cell = _cell(fields.get(column))
        if not cell and len(self._columns) == 1:
            return [""]
        inside = [is_base64(each) for each in cell]
        if any(inside):
            if offset < 0:
                raise DataError(
                    f"{where}: column '{column}' holds base64 text, which cannot be found again in a JSON "
                    "list; write one object a line (JSON Lines)."
                )
            del fields[column]
        return [
            locator(self.name, offset, column, item) if embedded else each
            for item, (each, embedded) in enumerate(zip(cell, inside, strict=True))
        ]


def _cell(value: Json) -> list[str]:
    """The images of a cell as texts: none, one, or a list."""
    if value is None or value == "":
        return []
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _no_column(columns: Sequence[str]) -> str:
    if len(columns) == 1:
        return f"there is no column '{columns[0]}'"
    return f"there is none of the columns {', '.join(columns)}"
