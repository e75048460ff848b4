"""Tables that people hand in: text as spreadsheets save it."""

from __future__ import annotations

import codecs
import csv
import io
from pathlib import Path

from mmbu_async.errors import ConfigError

SEPARATORS = (",", ";", "\t", "|")


def read_text(path: Path, flag: str) -> str:
    """The text of a CSV file, in UTF-8, or in UTF-16 where it is marked as such. Raises ConfigError naming
    the flag that asked for the file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{flag} {path}: cannot be read ({error.strerror or error}).") from None
    # Spreadsheets mark what they write as "Unicode text".
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{flag} {path}: is no UTF-8 text (at byte {error.start}); save it as CSV in UTF-8."
        ) from None


def read_header(text: str) -> tuple[list[str], str]:
    """The names of the columns, and the separator under which there are most of them."""
    found = [(next(csv.reader(io.StringIO(text), delimiter=one), []), one) for one in SEPARATORS]
    cells, separator = max(found, key=lambda header: len(header[0]))
    return [cell.strip() for cell in cells], separator
