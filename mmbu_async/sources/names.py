"""Images that a table names: looked for in the archives beside it, then in files below the data's folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from mmbu_async.errors import ImageError
from mmbu_async.sources.archive import ZipArchive


class NamedImages:
    """Finds images by name; never outside the folder, whatever a table, a link or an archive says."""

    def __init__(
        self,
        root: Path,
        folders: Sequence[str],
        archives: Sequence[ZipArchive],
        wanted: Sequence[str],
        label: str,
    ) -> None:
        """`folders` are looked through in this order; `wanted` are the names of archives that could be there,
        and `label` is what messages call a cell, e.g. `column 'file_name'`."""
        self.archives = tuple(archives)
        self._root = str(root.resolve())
        self._allowed = _allowed(root.resolve())
        self._folders = tuple(folders)
        self._wanted = tuple(wanted)
        self._label = label

    def problem(self, name: str) -> str:
        """Why there is no such image and what to do, '' where there is one, or where an archive lacks it."""
        if member := self._member(name):
            return member[0].problem(member[1])
        return self._file(name)[1]

    def read(self, name: str) -> bytes:
        """Raises ImageError naming the image."""
        if member := self._member(name):
            return member[0].read(member[1])
        path, problem = self._file(name)
        if problem:
            raise ImageError(f"{problem} ({name}).")
        if not path:
            raise ImageError(
                f"{name}: is neither in {self._archive_names()} nor a file; complete the archive."
            )
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                return file.read()
        except OSError as error:
            raise ImageError(f"{name}: cannot be read ({error.strerror}).") from None

    def _member(self, name: str) -> tuple[ZipArchive, str] | None:
        for archive in self.archives:
            for folder in self._folders:
                member = f"{folder}/{name}" if folder else name
                if member in archive:
                    return archive, member
        return None

    def _file(self, name: str) -> tuple[str, str]:
        """Where the file lies, links followed, and what is wrong with that; '' and '' where an archive should
        have had it.

        Plain strings, since every image of a run comes by here: path objects cost several times as much, and
        enter the parts of each name into the interpreter's table of strings, which grows with the rows.
        """
        if not name.strip():
            return "", f"{self._label} is empty; name the row's image"
        for folder in self._folders:
            try:
                path = os.path.realpath(os.path.join(self._root, folder, name))  # noqa: PTH118
                inside = path.startswith(self._allowed) and not name.startswith("/")
                there = inside and stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
            except (FileNotFoundError, NotADirectoryError):
                there = False
            except (OSError, ValueError):  # a loop of links, a name too long, a zero byte
                return "", f"{self._label} is no path that this system can follow; rename the file"
            if not inside:
                return (
                    "",
                    f"{self._label} leads out of the folder; put the image below it and name it from there",
                )
            if there:
                return path, ""
        if self.archives:
            return "", ""
        bring = f"add it, or {' or '.join(self._wanted)}," if self._wanted else "add it,"
        return "", f"{self._label} names an image that is not there; {bring} or take the row out"

    def _archive_names(self) -> str:
        return " nor in ".join(archive.name for archive in self.archives)


def stays_inside(path: Path, root: Path) -> bool:
    """Whether a file is one of the folder's own, links followed: a copy of somebody else's data must not make
    us read, and send, what lies elsewhere on this machine."""
    return os.path.realpath(path).startswith(_allowed(root.resolve()))


def _allowed(root: Path) -> tuple[str, ...]:
    """What the path of a file may begin with: the folder, and where the hub's own cache keeps the files.

    `hf download` gives a folder `snapshots/<commit>` of links to `blobs` beside `snapshots`.
    """
    roots = [root]
    if root.parent.name == "snapshots":
        roots.append(root.parent.parent / "blobs")
    return tuple(os.path.join(each, "") for each in roots)  # noqa: PTH118
