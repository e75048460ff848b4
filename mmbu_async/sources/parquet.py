"""A Parquet table of a local folder, with images as structs of bytes and path, as bytes, or named by files.

Rows are streamed without the image bytes; an image is read when it is asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mmbu_async.errors import DataError, ImageError
from mmbu_async.sources.base import TableRow
from mmbu_async.sources.cells import image_of, item_of, kind
from mmbu_async.sources.embedded import is_base64, locator
from mmbu_async.sources.row_groups import Images, RowGroups
from mmbu_async.sources.segments import SEGMENT_BYTES, Segments


class ParquetTable:
    """One Parquet file."""

    def __init__(self, path: Path, name: str, image_columns: Sequence[str], segments: Segments) -> None:
        """`segments` is shared by the tables of a folder. Raises DataError."""
        self.name = name
        self._path = path
        self._segments = segments
        try:
            self.digest = _footer_digest(path)
            metadata = pq.read_metadata(path)
            schema = metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None
        types = {column: schema.field(column).type for column in image_columns if column in schema.names}
        # A column without a single value has no type either, and no image.
        types = {column: type_ for column, type_ in types.items() if not pa.types.is_null(type_)}
        kinds = {column: kind(type_) for column, type_ in types.items()}
        if not kinds or not all(kinds.values()):
            raise DataError(_no_images(name, image_columns, schema))
        self.count: int | None = metadata.num_rows
        self.image_kinds = ", ".join(f"{column} ({what})" for column, what in kinds.items())
        self._groups = RowGroups(path, types, metadata)
        self._single = len(image_columns) == 1
        self._images = tuple(kinds)
        self._texts = [column for column, what in kinds.items() if what.endswith("text")]
        self._read = [column for column in schema.names if column not in kinds or column in self._texts]

    def rows(self) -> Iterator[TableRow]:
        try:
            yield from self._rows()
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None

    def image(self, row: int, column: str, item: int) -> bytes | str:
        where = locator(self.name, row, column, item)
        try:
            if column not in self._images:
                raise IndexError(column)
            group, within = self._groups.place(row)
            size = self._groups.rows_within(group, [column], SEGMENT_BYTES)
            segment = self._segments.get(
                (self.name, group, column), within // size, lambda: self._decode(group, column, size)
            )
            return image_of(item_of(segment[within % size], item), where)
        except IndexError:
            raise ImageError(f"{where}: is not there any more; the table was changed.") from None
        except (pa.ArrowException, OSError) as error:
            raise ImageError(f"{where}: cannot be read ({_said(error)}); get the file again.") from None

    def _rows(self) -> Iterator[TableRow]:
        reader = self._groups.open()
        number = 0
        for group in range(len(self._groups)):
            images = {
                column: iter(self._groups.images(reader, group, column))
                for column in self._images
                if column not in self._texts
            }
            for batch in self._groups.batches(reader, group, self._read):
                for fields in batch.to_pylist():
                    found: list[tuple[str, str]] = []
                    for column in self._images:
                        cell = next(images[column]) if column in images else _text_cell(fields, column)
                        found += self._located(number, column, cell)
                    where = f"{self.name}, row {number + 1}"
                    yield TableRow(where=where, fields=fields, images=tuple(found))
                    number += 1

    def _located(self, row: int, column: str, cell: Images) -> list[tuple[str, str]]:
        if not cell and self._single:
            return [(column, "")]
        return [
            (column, locator(self.name, row, column, item) if name is None else name)
            for item, name in enumerate(cell)
        ]

    def _decode(self, group: int, column: str, size: int) -> Iterator[Any]:
        batches = self._groups.batches(self._groups.open(), group, [column], size)
        left = self._groups.rows_of(group)
        for batch in batches:
            left -= batch.num_rows
            if not left:
                batches.close()  # the reader holds a page, which can be large, and is of no more use
            # Else the heap of every thread that comes by keeps what decoding took: 250 MB with eight of them.
            pa.default_memory_pool().release_unused()
            yield batch.column(0)

    def _unreadable(self, error: Exception) -> DataError:
        return DataError(f"{self._path}: cannot be read as Parquet ({_said(error)}); get the file again.")


def _text_cell(fields: dict[str, Any], column: str) -> Images:
    """The images of a cell of text, or of a list of texts; base64 is taken out of the fields."""
    value = fields[column]
    texts = [value] if isinstance(value, str) else value or []
    cell = tuple(None if is_base64(text or "") else text or "" for text in texts if value)
    if None in cell:
        del fields[column]
    return cell


def _footer_digest(path: Path) -> str:
    """SHA-256 of the footer, which knows size, place and range of every column, and of the file's size."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        end = file.read(8)
        if len(end) < 8 or end[4:] != b"PAR1":
            raise OSError("it does not end as a Parquet file does")
        length = int.from_bytes(end[:4], "little")
        file.seek(max(0, size - 8 - length))
        return hashlib.sha256(file.read(length) + size.to_bytes(8, "little")).hexdigest()


def _no_images(name: str, wanted: Sequence[str], schema: Any) -> str:
    found = ", ".join(f"{field.name} ({field.type})" for field in schema)
    return (
        f"{name}: has no images in a column {' or '.join(wanted)}; its columns are {found}: rename the one "
        "that holds them, or give another copy of the data."
    )


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split())
