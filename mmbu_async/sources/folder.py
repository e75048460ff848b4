"""An ImageFolder: a folder with metadata.jsonl or metadata.tsv, and the images that `file_name` names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath

from mmbu_async.errors import DataError, ImageError
from mmbu_async.model import ImageRef
from mmbu_async.sources.base import RawRow
from mmbu_async.sources.tables import TableRow, jsonl_rows, tsv_rows

READERS: Mapping[str, Callable[[Path], Iterator[TableRow]]] = {
    "metadata.jsonl": jsonl_rows,
    "metadata.tsv": tsv_rows,
}
"""Metadata files by name, in the order in which they are preferred."""


class ImageFolder:
    """Rows and images of a local folder."""

    def __init__(self, folder: Path) -> None:
        names = [name for name in READERS if (folder / name).is_file()]
        if not names:
            raise DataError(f"{folder}: has neither {' nor '.join(READERS)}; name the folder that holds one.")
        self._folder = folder
        self._root = folder.resolve()
        self._table = names[0]
        beside = f" ({names[1]} beside it is not read)" if len(names) > 1 else ""
        self.description = f"{folder / self._table}{beside}"
        try:
            with (folder / self._table).open("rb") as file:
                self.stamp = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DataError(f"{folder / self._table}: cannot be read ({error.strerror}).") from None

    def rows(self) -> Iterator[RawRow]:
        for position, (line, fields) in enumerate(READERS[self._table](self._folder / self._table)):
            where = f"{self._table}, line {line}"
            name = fields.get("file_name")
            if "file_name" not in fields:
                raise DataError(
                    f"{where}: there is no column 'file_name'; add it with the path of each row's image."
                )
            yield RawRow(
                position=position,
                fields=fields,
                images=(ImageRef(locator="" if name is None else str(name)),),
                where=where,
            )

    def image_problem(self, ref: ImageRef) -> str:
        name = ref.locator
        if not name.strip():
            return "column 'file_name' is empty; name the row's image"
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or PureWindowsPath(name).is_absolute() or "\0" in name:
            return "column 'file_name' leads out of the folder; name a file below it, without '..'"
        try:
            path = (self._root / parts).resolve()
            if not path.is_relative_to(self._root):
                return "column 'file_name' leads out of the folder through a link; put the file itself there"
            if not path.is_file():
                return "column 'file_name' names an image that is not there; add it, or take the row out"
        except (OSError, RuntimeError):  # a name too long for the file system, a loop of links
            return "column 'file_name' is no path that this system can follow; rename the file"
        return ""

    def read_image(self, ref: ImageRef) -> bytes:
        if problem := self.image_problem(ref):
            raise ImageError(f"{problem} ({ref.locator}).")
        try:
            return (self._root / ref.locator).read_bytes()
        except OSError as error:
            raise ImageError(f"{ref.locator}: cannot be read ({error.strerror}).") from None
