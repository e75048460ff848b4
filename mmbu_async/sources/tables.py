"""Metadata files, row by row: JSON Lines, and tab-separated values with CSV quoting."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

from mmbu_async.errors import DataError
from mmbu_async.model import Json

_LARGEST_FIELD = 64 * 1024 * 1024
"""Characters of one TSV field. Python's own limit of 131,072 is less than a long list of boxes takes."""

TableRow = tuple[int, dict[str, Json]]
"""Line number on which the row begins, from 1, and its columns."""


def jsonl_rows(path: Path) -> Iterator[TableRow]:
    """One JSON object a line; empty lines are skipped."""
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{path.name}, line {number}: is no valid JSON ({error.msg}, character {error.colno}); "
                "repair the line."
            ) from None
        except (RecursionError, ValueError) as error:
            raise DataError(
                f"{path.name}, line {number}: cannot be read as JSON ({error}); repair the line."
            ) from None
        if not isinstance(row, dict):
            raise DataError(f"{path.name}, line {number}: is no JSON object; write one object a line.")
        yield number, row


def tsv_rows(path: Path) -> Iterator[TableRow]:
    """A header line, then one row a record; a quoted field may hold tabs and line ends."""
    if csv.field_size_limit() < _LARGEST_FIELD:
        csv.field_size_limit(_LARGEST_FIELD)
    reader = csv.reader((line for _, line in _lines(path)), delimiter="\t", strict=True)
    number = 1
    try:
        header = next(reader, None)
        if not header:
            raise DataError(f"{path.name}: has no header line; the first line must name the columns.")
        if twice := sorted({name for name in header if header.count(name) > 1}):
            raise DataError(f"{path.name}, line 1: names column '{twice[0]}' twice; rename one.")
        while True:
            number = reader.line_num + 1
            record = next(reader, None)
            if record is None:
                return
            if not record:
                continue
            if len(record) != len(header):
                raise DataError(
                    f"{path.name}, line {number}: has {len(record)} columns where the header names "
                    f"{len(header)}; repair the line."
                )
            yield number, dict(zip(header, record, strict=True))
    except csv.Error as error:
        raise DataError(
            f"{path.name}, line {number}: is not quoted as it must be ({error}); repair the line."
        ) from None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines with their ends, decoded one by one so that an error can name the line."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                try:
                    yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{path.name}, line {number}: is no UTF-8 text ({error.reason}, "
                        f"byte {error.start + 1}); save the file as UTF-8."
                    ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None
