"""An ImageFolder: a folder with metadata.jsonl or metadata.tsv, and the images that `file_name` names."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

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
        self._root = str(folder.resolve())
        self._allowed = _allowed(folder.resolve())
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
        return self._find(ref.locator)[1]

    def read_image(self, ref: ImageRef) -> bytes:
        path, problem = self._find(ref.locator)
        if problem:
            raise ImageError(f"{problem} ({ref.locator}).")
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise ImageError(f"{ref.locator}: cannot be read ({error.strerror}).") from None

    def _find(self, name: str) -> tuple[str, str]:
        """Where the file lies, links followed, and what is wrong with that.

        Never outside the folder, whatever the metadata or a link says. Plain strings, since every image of a
        run comes by here and path objects cost several times as much.
        """
        if not name.strip():
            return "", "column 'file_name' is empty; name the row's image"
        try:
            path = os.path.realpath(os.path.join(self._root, name))  # noqa: PTH118
            inside = path.startswith(self._allowed) and not name.startswith("/")
            there = inside and stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
        except FileNotFoundError:
            there = False
        except (OSError, ValueError):  # a loop of links, a name too long, a zero byte
            return "", "column 'file_name' is no path that this system can follow; rename the file"
        if not inside:
            return (
                "",
                "column 'file_name' leads out of the folder; put the image below it and name it from there",
            )
        if not there:
            return "", "column 'file_name' names an image that is not there; add it, or take the row out"
        return path, ""


def _allowed(root: Path) -> tuple[str, ...]:
    """What the path of an image may begin with: the folder, and where the hub's own cache keeps the files.

    `hf download` gives a folder `snapshots/<commit>` of links to `blobs` beside `snapshots`.
    """
    roots = [root]
    if root.parent.name == "snapshots":
        roots.append(root.parent.parent / "blobs")
    return tuple(os.path.join(each, "") for each in roots)  # noqa: PTH118
