"""Runs of cells of a large column, decoded once for all the rows that lie beside each other.

Parquet can only be read from the start of a row group onwards, and a row group of images can be gigabytes.
So each column in use has a cursor that moves forward a segment (some 8 MB) at a time, and the segments that
were used last are kept. Rows that are read in about their order cost one pass and a bounded memory; a row far
behind costs another pass over its group.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

SEGMENT_BYTES = 8 * 1024 * 1024
KEPT_BYTES = 64 * 1024 * 1024
CURSORS = 8
"""Columns that are read onwards at the same time: each holds an open file and part of a page."""


class Segments:
    """Segments by column and number; thread-safe."""

    def __init__(self, kept_bytes: int = KEPT_BYTES, cursors: int = CURSORS) -> None:
        self._kept_bytes = kept_bytes
        self._most_cursors = cursors
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Hashable, int], Any] = OrderedDict()
        self._bytes = 0
        self._cursors: OrderedDict[Hashable, _Cursor] = OrderedDict()

    def get(self, column: Hashable, number: int, decode: Callable[[], Iterator[Any]]) -> Any:
        """The Arrow array that is segment `number` of a column; `decode` begins with its first one.

        Raises IndexError behind the last one, and what `decode` raises.
        """
        with self._lock:
            if (segment := self._find(column, number)) is not None:
                return segment
            cursor = self._cursors.setdefault(column, _Cursor())
            self._cursors.move_to_end(column)
            if len(self._cursors) > self._most_cursors:
                self._cursors.popitem(last=False)
        with cursor.lock:
            with self._lock:
                if (segment := self._find(column, number)) is not None:
                    return segment
            if cursor.segments is None or cursor.number > number:
                cursor.segments, cursor.number = decode(), 0
            while True:
                try:
                    segment = next(cursor.segments)
                except StopIteration:
                    cursor.segments = None
                    raise IndexError(number) from None
                except BaseException:
                    cursor.segments = None
                    raise
                with self._lock:
                    self._keep(column, cursor.number, segment)
                cursor.number += 1
                if cursor.number > number:
                    return segment

    def _find(self, column: Hashable, number: int) -> Any:
        key = (column, number)
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key]

    def _keep(self, column: Hashable, number: int, segment: Any) -> None:
        key = (column, number)
        if key in self._kept:
            return
        self._kept[key] = segment
        self._bytes += segment.nbytes
        while self._bytes > self._kept_bytes and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes


class _Cursor:
    """Where decoding of one column stands."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.segments: Iterator[Any] | None = None
        self.number = 0
        """Of the segment that comes next."""
