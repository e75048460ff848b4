"""Images that stand in a table themselves: how they are named, and how base64 text is read.

A locator `validation.parquet#12#image_3` is table, row and column, and `…#images[1]` an item of a list. For
text tables the row is the offset of its first byte, so that one row can be read without those before it.
"""

from __future__ import annotations

import binascii
import re

import pybase64

from mmbu_async.errors import ImageError

_SHORTEST = 100
"""Characters. No image is smaller, and names of files are seldom longer."""
_BEGINNINGS = ("/9j/", "iVBORw0KGg", "R0lGOD", "UklGR", "SUkqA", "TU0AK", "Qk", "AAAAAAAA")
"""Of JPEG, PNG, GIF, WebP, the two TIFFs, BMP and DICOM as base64."""
_DATA_URL = re.compile(r"data:[\w/+.-]*;base64,", re.IGNORECASE)


_LOCATOR = re.compile(r"(.*)#(\d+)#(.+?)(?:\[(\d+)\])?", re.DOTALL)


def locator(table: str, row: int, column: str, item: int = 0) -> str:
    """The first item of a cell is the cell itself."""
    return f"{table}#{row}#{column}" + (f"[{item}]" if item else "")


def located(text: str) -> tuple[str, int, str, int] | None:
    """Table, row, column and item of a locator; None for the name of a file."""
    if "#" not in text or not (match := _LOCATOR.fullmatch(text)):
        return None
    table, row, column, item = match.groups()
    return table, int(row), column, int(item or 0)


def is_base64(text: str) -> bool:
    """Whether a cell holds an image itself and not the name of one. A name has a dot before its ending, which
    base64 has not; so it does not matter that `/9j/` can begin a path as well."""
    if len(text) < _SHORTEST:
        return False
    return bool(_DATA_URL.match(text)) or (text.startswith(_BEGINNINGS) and "." not in text)


def decoded(text: str, where: str) -> bytes:
    """The image's bytes. Raises ImageError."""
    if url := _DATA_URL.match(text):
        text = text[url.end() :]
    try:
        try:
            return pybase64.b64decode(text, validate=True)
        except binascii.Error:
            return pybase64.b64decode("".join(text.split()), validate=True)  # with line ends in it
    except (binascii.Error, ValueError) as error:
        raise ImageError(f"{where}: is no valid base64 text ({error}); repair the row.") from None
