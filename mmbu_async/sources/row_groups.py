"""The row groups of a Parquet file, and which of their cells hold an image.

That is told from statistics and from the paths beside the bytes; the bytes are read for it only where these
do not say.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mmbu_async.sources.cells import is_list

BATCH_BYTES = 4 * 1024 * 1024
_MOST_ROWS = 1024
"""Rows of a batch, however small they are."""
_BUFFER_BYTES = 256 * 1024
"""Read at a time, so that a column is streamed and not fetched whole."""

Images = tuple[str | None, ...]
"""The images of one cell: None for one inside the table, else the name of its file."""
INSIDE: Images = (None,)


class RowGroups:
    """One file's row groups. Thread-safe: whoever reads opens a reader of their own."""

    def __init__(self, path: Path, types: Mapping[str, Any], metadata: Any) -> None:
        """`types` are the Arrow types of the image columns."""
        self._path = path
        self._types = types
        self._metadata = metadata
        groups = range(metadata.num_row_groups)
        self._begins = [0, *accumulate(self.rows_of(group) for group in groups)]

    def __len__(self) -> int:
        return int(self._metadata.num_row_groups)

    def place(self, row: int) -> tuple[int, int]:
        """The group of a row, and the row's number in it. Raises IndexError behind the last row."""
        group = bisect_right(self._begins, row) - 1
        if group >= len(self):
            raise IndexError(row)
        return group, row - self._begins[group]

    def rows_of(self, group: int) -> int:
        return int(self._metadata.row_group(group).num_rows)

    def open(self) -> Any:
        """A reader; one is not to be shared between threads."""
        return pq.ParquetFile(
            self._path,
            metadata=self._metadata,
            buffer_size=_BUFFER_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )

    def batches(self, reader: Any, group: int, columns: Sequence[str], rows: int = 0) -> Generator[Any]:
        """Columns of a group, or leaves of them, in batches of so many rows, or of bounded size."""
        rows = rows or self.rows_within(group, columns, BATCH_BYTES)
        yield from reader.iter_batches(rows, [group], columns, use_threads=False)

    def rows_within(self, group: int, columns: Sequence[str], size: int) -> int:
        """How many rows of these columns take about `size` bytes."""
        used = sum(chunk.total_uncompressed_size for name in columns for chunk in self._chunks(group, name))
        mean = used / max(1, self.rows_of(group))
        return max(1, min(_MOST_ROWS, int(size / max(1.0, mean))))

    def images(self, reader: Any, group: int, column: str) -> Sequence[Images]:
        """The images of each row of a group in a column that holds no text."""
        type_ = self._types[column]
        rows = self.rows_of(group)
        if not rows:
            return []
        if is_list(type_):
            return self._of_lists(reader, group, column)
        if not pa.types.is_struct(type_):
            return [INSIDE if there else () for there in self._valid(reader, group, column)]
        parts = {field.name: f"{column}.{field.name}" for field in type_}
        nulls = self._nulls(group, parts["bytes"]) if "bytes" in parts else rows
        if nulls == 0:
            return [INSIDE] * rows
        there: Sequence[bool] | None = [False] * rows if nulls == rows else None
        paths: Sequence[str | None] = [None] * rows
        if "path" in parts:
            structs = pa.concat_arrays(list(self._column(reader, group, parts["path"])))
            paths = pc.struct_field(structs, "path").to_pylist()
            if there is None and structs.null_count == nulls:
                there = structs.is_valid().to_pylist()
        if there is None:
            there = self._valid(reader, group, parts["bytes"])
        return [INSIDE if here else (path,) if path else () for here, path in zip(there, paths, strict=True)]

    def _of_lists(self, reader: Any, group: int, column: str) -> list[Images]:
        """As many images as a list is long; that an item is empty is seen when it is read."""
        leaves = [chunk.path_in_schema for chunk in self._chunks(group, column)]
        light = next((leaf for leaf in leaves if leaf.endswith(".path")), column)
        lengths = (pc.list_value_length(cells).to_pylist() for cells in self._column(reader, group, light))
        return [(None,) * (length or 0) for part in lengths for length in part]

    def _valid(self, reader: Any, group: int, leaf: str) -> list[bool]:
        """Whether each cell has bytes, by the statistics, else by the bytes themselves."""
        rows, nulls = self.rows_of(group), self._nulls(group, leaf)
        if nulls in (0, rows):
            return [not nulls] * rows
        found: list[bool] = []
        for cells in self._column(reader, group, leaf):
            bytes_ = pc.struct_field(cells, "bytes") if pa.types.is_struct(cells.type) else cells
            found += bytes_.is_valid().to_pylist()
        return found

    def _column(self, reader: Any, group: int, leaf: str) -> Iterator[Any]:
        for batch in self.batches(reader, group, [leaf]):
            yield batch.column(0)

    def _chunks(self, group: int, column: str) -> Iterator[Any]:
        """The column chunks of a column, or the one of a leaf."""
        chunks = self._metadata.row_group(group)
        for number in range(chunks.num_columns):
            chunk = chunks.column(number)
            if chunk.path_in_schema == column or chunk.path_in_schema.startswith(f"{column}."):
                yield chunk

    def _nulls(self, group: int, leaf: str) -> int | None:
        """Empty cells of a leaf, as its statistics say; None where they do not."""
        statistics = next(self._chunks(group, leaf)).statistics
        if statistics is None or not statistics.has_null_count:
            return None
        return int(statistics.null_count)
