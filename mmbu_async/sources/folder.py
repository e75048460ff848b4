"""A local copy: a folder with tables, and images below it, in archives beside it, or in the tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from mmbu_async.errors import DataError
from mmbu_async.model import DataSpec, ImageRef, RawRow
from mmbu_async.sources.archive import ZipArchive
from mmbu_async.sources.base import Table
from mmbu_async.sources.embedded import located
from mmbu_async.sources.names import NamedImages, stays_inside
from mmbu_async.sources.segments import Segments
from mmbu_async.sources.tables import READERS
from mmbu_async.sources.text_table import TextTable

_PARQUET = ".parquet"
_WILDCARDS = frozenset("*?[")


class LocalFolder:
    """Rows and images of a local folder."""

    def __init__(self, folder: Path, spec: DataSpec) -> None:
        self._folder = folder
        pattern, files, others = _find_tables(folder, spec)
        self._tables = _open_tables(folder, files, spec)
        # A folder that stands in the pattern by name says nothing about a row.
        self._named_folders = bool(_WILDCARDS & set(Path(pattern).parent.as_posix()))
        self._by_name = {table.name: table for table in self._tables}
        self._images = NamedImages(
            folder,
            spec.image_folders,
            [
                ZipArchive(path, path.relative_to(folder).as_posix())
                for path in _archives(folder, files, spec)
            ],
            spec.archives,
            f"column '{spec.image_columns[0]}'" if len(spec.image_columns) == 1 else "an image column",
        )
        beside = f" ({', '.join(others)} beside it is not read)" if others else ""
        many = f" ({len(files)} tables)" if len(files) > 1 else ""
        self.description = f"{folder / (pattern if many else self._tables[0].name)}{many}{beside}"
        self.stamp = _stamp(self._tables)

    def rows(self) -> Iterator[RawRow]:
        position = 0
        for table in self._tables:
            config = {"config": Path(table.name).parent.name} if self._named_folders else {}
            for row in table.rows():
                yield RawRow(
                    position=position,
                    fields=config | dict(row.fields) if config else row.fields,
                    images=tuple(ImageRef(locator=locator) for _, locator in row.images),
                    image_columns=tuple(column for column, _ in row.images),
                    where=row.where,
                )
                position += 1

    def image_problem(self, ref: ImageRef) -> str:
        return "" if self._inside(ref) else self._images.problem(ref.locator)

    def read_image(self, ref: ImageRef) -> bytes:
        name: bytes | str = ref.locator
        if inside := self._inside(ref):
            table, row, column, item = inside
            name = table.image(row, column, item)
        return name if isinstance(name, bytes) else self._images.read(name)

    def describe(self) -> tuple[str, ...]:
        lines = []
        for table in self._tables:
            rows = f"{table.count:,} rows" if table.count is not None else "rows not counted"
            lines.append(f"table {table.name}: {rows}; images in {table.image_kinds}")
        for archive in self._images.archives:
            unsafe = f", {archive.unsafe:,} more have names that lead out of it" if archive.unsafe else ""
            lines.append(f"archive {archive.name}: {len(archive):,} files{unsafe}")
        return tuple(lines)

    def _inside(self, ref: ImageRef) -> tuple[Table, int, str, int] | None:
        """The table that holds the image itself, and where in it."""
        if not (place := located(ref.locator)) or place[0] not in self._by_name:
            return None
        return self._by_name[place[0]], *place[1:]


class ImageFolder(LocalFolder):
    """The layout that the hub calls so: metadata.jsonl or metadata.tsv, and images that `file_name` names."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, DataSpec(hub=""))


def _find_tables(folder: Path, spec: DataSpec) -> tuple[str, list[Path], list[str]]:
    """The first pattern that matches, its files in the order of their names, and what else is there."""
    found = {pattern: _matches(folder, pattern) for pattern in spec.tables}
    patterns = [pattern for pattern, files in found.items() if files]
    if not patterns:
        names = " nor ".join(spec.tables)
        has = f"has neither {names}" if len(spec.tables) > 1 else f"has no {names}"
        raise DataError(f"{folder}: {has}; name the folder that holds one.")
    others = [file for pattern in patterns[1:] for file in found[pattern] if file not in found[patterns[0]]]
    return patterns[0], found[patterns[0]], [path.relative_to(folder).as_posix() for path in others]


def _matches(folder: Path, pattern: str) -> list[Path]:
    """Files below the folder; hidden ones (downloaders keep their notes there) are none."""
    files = [
        path
        for path in folder.glob(pattern)
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    return sorted(
        (_own(folder, path) for path in files), key=lambda path: path.relative_to(folder).as_posix()
    )


def _own(folder: Path, path: Path) -> Path:
    """The path, where it is no link out of the folder."""
    if not stays_inside(path, folder):
        raise DataError(
            f"{path}: is a link that leads out of the folder; put the file itself there, or name the folder "
            "in which it lies."
        )
    return path


def _open_tables(folder: Path, files: Sequence[Path], spec: DataSpec) -> list[Table]:
    segments = Segments()
    tables: list[Table] = []
    for path in files:
        name = path.relative_to(folder).as_posix()
        if path.suffix.lower() == _PARQUET:
            # Imported here: pyarrow takes a third of a second that text tables need not pay.
            from mmbu_async.sources.parquet import ParquetTable

            tables.append(ParquetTable(path, name, spec.image_columns, segments))
        elif path.suffix.lower() in READERS:
            tables.append(TextTable(path, name, spec.image_columns))
        else:
            endings = ", ".join([*READERS, _PARQUET])
            raise DataError(f"{path}: is no table of a kind that is read ({endings}); convert it.")
    return tables


def _archives(folder: Path, tables: Sequence[Path], spec: DataSpec) -> list[Path]:
    """Archives beside the tables or in the folder itself, each once."""
    places = dict.fromkeys([folder, *(path.parent for path in tables)])
    found = [path for place in places for pattern in spec.archives for path in sorted(place.glob(pattern))]
    return [_own(folder, path) for path in dict.fromkeys(found) if path.is_file()]


def _stamp(tables: Sequence[Table]) -> str:
    """One table's digest, or one over all of them and their names."""
    if len(tables) == 1:
        return tables[0].digest
    lines = "".join(f"{table.name}\0{table.digest}\n" for table in tables)
    return hashlib.sha256(lines.encode()).hexdigest()
