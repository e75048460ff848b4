"""A Parquet table of a local folder, with images as structs of bytes and path, as bytes, or named by files.

Rows are streamed without the image bytes: whether a cell holds an image is told from statistics and from the
paths beside the bytes, and the bytes are read for it only where those do not say. An image is read when it is
asked for.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mmbu_async.errors import DataError, ImageError
from mmbu_async.sources.base import TableRow
from mmbu_async.sources.cells import image_of, is_list, item_of, kind
from mmbu_async.sources.embedded import is_base64, locator
from mmbu_async.sources.segments import SEGMENT_BYTES, Segments

_BATCH_BYTES = 4 * 1024 * 1024
_MOST_ROWS = 1024
"""Rows of a batch, however small they are."""
_BUFFER_BYTES = 256 * 1024
"""Read at a time, so that a column is streamed and not fetched whole."""

Images = tuple[str | None, ...]
"""The images of one cell: None for one inside the table, else the name of its file."""
_INSIDE: Images = (None,)


class ParquetTable:
    """One Parquet file."""

    def __init__(self, path: Path, name: str, image_columns: Sequence[str], segments: Segments) -> None:
        """`segments` is shared by the tables of a folder. Raises DataError."""
        self.name = name
        self._path = path
        self._segments = segments
        try:
            self.digest = _footer_digest(path)
            self._metadata = pq.read_metadata(path)
            schema = self._metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None
        self.count: int | None = self._metadata.num_rows
        self._types = {
            column: schema.field(column).type for column in image_columns if column in schema.names
        }
        kinds = {column: kind(type_) for column, type_ in self._types.items()}
        if not kinds or not all(kinds.values()):
            raise DataError(_no_images(name, image_columns, schema))
        self.image_kinds = ", ".join(f"{column} ({what})" for column, what in kinds.items())
        self._single = len(image_columns) == 1
        self._other_columns = [column for column in schema.names if column not in self._types]
        self._texts = [column for column, what in kinds.items() if what.endswith("text")]
        groups = range(self._metadata.num_row_groups)
        self._begins = [0, *accumulate(self._metadata.row_group(group).num_rows for group in groups)]

    def rows(self) -> Iterator[TableRow]:
        try:
            yield from self._rows()
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None

    def image(self, row: int, column: str, item: int) -> bytes | str:
        where = locator(self.name, row, column, item)
        group = bisect_right(self._begins, row) - 1
        if group >= self._metadata.num_row_groups or column not in self._types:
            raise ImageError(f"{where}: is not there any more; the table was changed.")
        within = row - self._begins[group]
        size = self._rows_in(group, [column], SEGMENT_BYTES)
        try:
            segment = self._segments.get(
                (self.name, group, column), within // size, lambda: self._decode(group, column, size)
            )
            return image_of(item_of(segment[within % size], item), where)
        except IndexError:
            raise ImageError(f"{where}: is not there any more; the table was changed.") from None
        except (pa.ArrowException, OSError) as error:
            raise ImageError(f"{where}: cannot be read ({_said(error)}); get the file again.") from None

    def _rows(self) -> Iterator[TableRow]:
        file = self._open()
        columns = self._other_columns + self._texts
        number = 0
        for group in range(self._metadata.num_row_groups):
            found = {column: self._cells(file, group, column) for column in self._types}
            batches = file.iter_batches(
                self._rows_in(group, columns, _BATCH_BYTES), [group], columns, use_threads=False
            )
            for batch in batches:
                for fields in batch.to_pylist():
                    within = number - self._begins[group]
                    images: list[tuple[str, str]] = []
                    for column, cells in found.items():
                        cell = _text_cell(fields, column) if cells is None else cells[within]
                        images += self._located(number, column, cell)
                    where = f"{self.name}, row {number + 1}"
                    yield TableRow(where=where, fields=fields, images=tuple(images))
                    number += 1

    def _located(self, row: int, column: str, cell: Images) -> list[tuple[str, str]]:
        if not cell and self._single:
            return [(column, "")]
        return [
            (column, locator(self.name, row, column, item) if name is None else name)
            for item, name in enumerate(cell)
        ]

    def _cells(self, file: Any, group: int, column: str) -> Sequence[Images] | None:
        """The images of each row of a group; None for a column of text, which is read with the others."""
        type_ = self._types[column]
        if column in self._texts:
            return None
        rows = self._metadata.row_group(group).num_rows
        if is_list(type_):
            return self._cells_of_lists(file, group, column)
        leaf = self._leaf(column, "bytes") or column
        nulls = self._nulls(group, leaf)
        if nulls == 0:
            return [_INSIDE] * rows
        path_leaf = self._leaf(column, "path")
        if path_leaf is None and nulls == rows:
            return [()] * rows
        has_bytes: list[bool] | None = [False] * rows if nulls == rows else None
        paths: list[str | None] = [None] * rows
        if path_leaf is not None:
            structs = pa.concat_arrays(list(self._batches(file, group, path_leaf)))
            paths = pc.struct_field(structs, "path").to_pylist()
            if has_bytes is None and structs.null_count == nulls:
                has_bytes = structs.is_valid().to_pylist()
        if has_bytes is None:
            has_bytes = self._valid(file, group, column, leaf)
        return [
            _INSIDE if inside else (path,) if path else ()
            for inside, path in zip(has_bytes, paths, strict=True)
        ]

    def _cells_of_lists(self, file: Any, group: int, column: str) -> list[Images]:
        """As many images as a list is long; that an item is empty is seen when it is read."""
        found: list[Images] = []
        for lists in self._batches(file, group, self._leaf(column, "path") or column):
            found += [(None,) * (length or 0) for length in pc.list_value_length(lists).to_pylist()]
        return found

    def _valid(self, file: Any, group: int, column: str, leaf: str) -> list[bool]:
        """Whether a cell has bytes, where only the bytes themselves can tell."""
        found: list[bool] = []
        for cells in self._batches(file, group, leaf):
            found += (cells if leaf == column else pc.struct_field(cells, "bytes")).is_valid().to_pylist()
        return found

    def _batches(self, file: Any, group: int, leaf: str) -> Iterator[Any]:
        """A column of a group, or one leaf of it, in arrays of bounded size."""
        size = self._rows_in(group, [leaf], _BATCH_BYTES)
        for batch in file.iter_batches(size, [group], [leaf], use_threads=False):
            yield batch.column(0)

    def _decode(self, group: int, column: str, size: int) -> Iterator[Any]:
        for batch in self._open().iter_batches(size, [group], [column], use_threads=False):
            yield batch.column(0)

    def _open(self) -> Any:
        """A reader of its own: one is not to be shared between threads."""
        return pq.ParquetFile(
            self._path,
            metadata=self._metadata,
            buffer_size=_BUFFER_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )

    def _chunks(self, group: int, column: str) -> Iterator[Any]:
        """The column chunks of a column or of a leaf of one."""
        chunks = self._metadata.row_group(group)
        for number in range(chunks.num_columns):
            chunk = chunks.column(number)
            if chunk.path_in_schema == column or chunk.path_in_schema.startswith(f"{column}."):
                yield chunk

    def _leaf(self, column: str, name: str) -> str | None:
        """The path of `bytes` or `path` inside a column."""
        if not self._metadata.num_row_groups:
            return None
        paths = [chunk.path_in_schema for chunk in self._chunks(0, column)]
        return next((path for path in paths if path != column and path.endswith(f".{name}")), None)

    def _nulls(self, group: int, leaf: str) -> int | None:
        """Empty cells of a leaf, as its statistics say; None where there are none."""
        statistics = next(self._chunks(group, leaf)).statistics
        if statistics is None or not statistics.has_null_count:
            return None
        return int(statistics.null_count)

    def _rows_in(self, group: int, columns: Sequence[str], size: int) -> int:
        """How many rows of these columns take about `size` bytes."""
        used = sum(
            chunk.total_uncompressed_size for column in columns for chunk in self._chunks(group, column)
        )
        mean = used / max(1, self._metadata.row_group(group).num_rows)
        return max(1, min(_MOST_ROWS, int(size / max(1.0, mean))))

    def _unreadable(self, error: Exception) -> DataError:
        return DataError(f"{self._path}: cannot be read as Parquet ({_said(error)}); get the file again.")


def _text_cell(fields: dict[str, Any], column: str) -> Images:
    """A cell of text or of a list of texts, as `_cells` tells of others; base64 is taken out of fields."""
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
