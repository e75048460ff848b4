"""Tables as text, record by record: JSON Lines, a JSON list, and CSV or TSV with CSV quoting.

Text is UTF-8, with or without a byte-order mark. Anything else is refused with the place of the first bad
byte and a guess at the encoding: a wrong guess made in silence would change questions and answers. Fields
are kept as they are written, HTML entities and line ends included.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mmbu_async.errors import DataError
from mmbu_async.model import Json

_LARGEST_FIELD = 64 * 1024 * 1024
"""Characters of one field. Python's own limit of 131,072 is less than an image as base64 takes."""
_TWO_HIGH_BYTES = re.compile(rb"[\x81-\xfe][\x40-\x7e\x80-\xfe][\x81-\xfe]")


class Record(NamedTuple):
    """One row of a table; a tuple, since every row of every run is one."""

    number: int
    """The line on which it begins, or its place in a JSON list; from 1."""
    offset: int
    """Bytes before it in the file; -1 where it cannot be read by itself."""
    fields: dict[str, Json]


Reader = Callable[[Path, str, int], Iterator[Record]]
"""(file, its name in messages, offset of the record to begin with) -> records."""


def records(path: Path, name: str) -> Iterator[Record]:
    """Every record of a table, streamed; messages call it `name`. Raises DataError naming the line."""
    return READERS[path.suffix.lower()](path, name, 0)


def record_at(path: Path, name: str, offset: int) -> dict[str, Json] | None:
    """The fields of the one record at an offset that `records` gave; None behind the end."""
    record = next(READERS[path.suffix.lower()](path, name, offset), None)
    return record.fields if record is not None else None


def unit(path: Path) -> str:
    """What `Record.number` counts."""
    return "item" if _is_list(path) else "line"


def _json_lines(path: Path, name: str, start: int) -> Iterator[Record]:
    """One JSON object a line; empty lines are skipped."""
    lines = _Lines(path, name, start)
    for line in lines:
        if not line.strip():
            continue
        where = f"{name}, line {lines.number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{where}: is no valid JSON ({error.msg}, character {error.colno}); repair the line."
            ) from None
        except (RecursionError, ValueError) as error:
            raise DataError(f"{where}: cannot be read as JSON ({error}); repair the line.") from None
        if not isinstance(row, dict):
            raise DataError(f"{where}: is no JSON object; write one object a line.")
        yield Record(lines.number, lines.begin, row)


def _json(path: Path, name: str, start: int) -> Iterator[Record]:
    """A file `.json`: a list of objects, which must be held whole, or JSON Lines under another name."""
    return _json_list(path, name) if _is_list(path) else _json_lines(path, name, start)


def _json_list(path: Path, name: str) -> Iterator[Record]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        rows = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise _foreign(name, line, 0, raw, error) from None
    except json.JSONDecodeError as error:
        raise DataError(
            f"{name}, line {error.lineno}: is no valid JSON ({error.msg}, character {error.colno}); "
            "repair the file."
        ) from None
    except (RecursionError, ValueError) as error:
        raise DataError(f"{name}: cannot be read as JSON ({error}); repair the file.") from None
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise DataError(f"{name}, item {number}: is no JSON object; write a list of objects.")
        yield Record(number, -1, row)


def _delimited(delimiter: str, path: Path, name: str, start: int) -> Iterator[Record]:
    """A header line, then one row a record; a quoted field may hold delimiters and line ends."""
    if csv.field_size_limit() < _LARGEST_FIELD:
        csv.field_size_limit(_LARGEST_FIELD)
    lines = _Lines(path, name, 0)
    reader = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    number = 1
    try:
        header = next(reader, None)
        if not header:
            raise DataError(f"{name}: has no header line; the first line must name the columns.")
        if twice := sorted({column for column in header if header.count(column) > 1}):
            raise DataError(f"{name}, line 1: names column '{twice[0]}' twice; rename one.")
        if start:
            lines = _Lines(path, name, start)
            reader = csv.reader(iter(lines), delimiter=delimiter, strict=True)
        while True:
            number, offset = reader.line_num + 1, lines.offset
            record = next(reader, None)
            if record is None:
                return
            if not record:
                continue
            if len(record) != len(header):
                raise DataError(
                    f"{name}, line {number}: has {len(record)} columns where the header names "
                    f"{len(header)}; repair the line."
                )
            yield Record(number, offset, dict(zip(header, record, strict=True)))
    except csv.Error as error:
        raise DataError(
            f"{name}, line {number}: is not quoted as it must be ({error}); repair the line."
        ) from None


READERS: Mapping[str, Reader] = {
    ".jsonl": _json_lines,
    ".json": _json,
    ".csv": partial(_delimited, ","),
    ".tsv": partial(_delimited, "\t"),
}
"""By the ending of the file's name."""


class _Lines:
    """Numbered lines with their ends, decoded one by one so that an error can name the line."""

    def __init__(self, path: Path, name: str, start: int) -> None:
        self.number = 0
        """Of the last line, from 1 at the place where reading began."""
        self.begin = start
        """Bytes before the last line."""
        self.offset = start
        """Bytes up to its end."""
        self._path = path
        self._name = name

    def __iter__(self) -> Iterator[str]:
        try:
            with self._path.open("rb") as file:
                file.seek(self.offset)
                for raw in file:
                    self.number += 1
                    self.begin = self.offset
                    self.offset += len(raw)
                    yield self._decoded(raw)
        except OSError as error:
            raise _unreadable(self._path, error) from None

    def _decoded(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8-sig" if self.begin == 0 else "utf-8")
        except UnicodeDecodeError as error:
            raise _foreign(self._name, self.number, self.begin, raw, error) from None


def _is_list(path: Path) -> bool:
    """Whether a file is one JSON list: it begins with a bracket."""
    if path.suffix.lower() != ".json":
        return False
    try:
        with path.open("rb") as file:
            return file.read(4096).removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"["
    except OSError as error:
        raise _unreadable(path, error) from None


def _foreign(name: str, line: int, offset: int, raw: bytes, error: UnicodeDecodeError) -> DataError:
    """Text in another encoding; `raw` begins `offset` bytes into the file."""
    # A byte-order mark is taken off before the decoder counts.
    offset += len(raw) - len(error.object) + error.start
    guess = "utf-16" if raw.startswith(_UTF16) else _encoding(raw)
    return DataError(
        f"{name}, line {line}: is no UTF-8 text (byte 0x{error.object[error.start]:02x} at offset {offset:,} "
        f"of the file: {error.reason}); if it is {guess}, convert the file with `iconv -f {guess} -t utf-8`."
    )


_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _encoding(raw: bytes) -> str:
    """The likelier of the two that tables of this field come in: Western letters stand alone among ASCII,
    Chinese characters are pairs of bytes that follow each other."""
    return "gb18030" if _TWO_HIGH_BYTES.search(raw) and _decodes(raw, "gb18030") else "cp1252"


def _decodes(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path}: cannot be read ({error.strerror}).")
