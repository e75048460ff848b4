"""A dataset of the Hugging Face hub, through `datasets`; image bytes come as they were uploaded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from mmbu_async.errors import DataError, ImageError
from mmbu_async.model import DataSpec, ImageRef, RawRow
from mmbu_async.sources.embedded import located, locator

_BATCH_ROWS = 256

Load = Callable[..., Any]
"""(hub id, split) or (hub id, split, configuration) -> `datasets.Dataset`."""


def load_from_hub(name: str, split: str, config: str | None = None) -> Any:
    """`datasets.load_dataset`, imported here because it takes a second that local folders need not pay."""
    import datasets

    return datasets.load_dataset(name, config, split=split)


def cache_folders() -> Sequence[Path]:
    """Where `datasets` puts what it fetches. A table that names another file of this machine means no image
    of its own."""
    import datasets
    from huggingface_hub import constants

    config = datasets.config
    places = (constants.HF_HUB_CACHE, config.HF_DATASETS_CACHE, config.DOWNLOADED_DATASETS_PATH)
    return [Path(place) for place in places]


class HubDataset:
    """Rows and images of one split, its configurations one after the other.

    The tables are memory-mapped, not loaded; images are neither decoded nor copied before they are asked for.
    """

    def __init__(self, name: str, spec: DataSpec | None = None, *, load: Load = load_from_hub) -> None:
        spec = spec or DataSpec(hub=name)
        if name == spec.hub and spec.archives and not any(each.endswith(".parquet") for each in spec.tables):
            # Not even tried: `datasets` would fetch the archives and unpack them.
            raise DataError(
                f"{name}: its images lie in {', '.join(spec.archives)} beside the table; fetch both with "
                f"`hf download {name} --repo-type dataset --local-dir FOLDER` and give --data FOLDER."
            )
        self._parts = {config: _Part(name, config, spec, load) for config in spec.configs or ("",)}
        parts = list(self._parts.values())
        self.description = parts[0].where
        self.stamp = parts[0].stamp
        if len(parts) > 1:
            self.description = f"{name}, {len(parts)} configurations, split {spec.split}"
            self.stamp = hashlib.sha256("\n".join(part.stamp for part in parts).encode()).hexdigest()

    def rows(self) -> Iterator[RawRow]:
        position = 0
        for part in self._parts.values():
            for row, (fields, images) in enumerate(part.rows()):
                yield RawRow(
                    position=position,
                    fields=fields,
                    images=tuple(ImageRef(locator=part.locator(row, *image)) for image in images),
                    image_columns=tuple(column for column, _ in images),
                    where=f"{part.where}, row {row + 1}",
                )
                position += 1

    def image_problem(self, ref: ImageRef) -> str:
        part, row, column, item = self._place(ref)
        return part.problem(row, column, item)

    def read_image(self, ref: ImageRef) -> bytes:
        part, row, column, item = self._place(ref)
        return part.image(row, column, item)

    def describe(self) -> tuple[str, ...]:
        return tuple(part.describe() for part in self._parts.values())

    def _place(self, ref: ImageRef) -> tuple[_Part, int, str, int]:
        config, row, column, item = located(ref.locator) or ("", int(ref.locator), "", 0)
        part = self._parts[config]
        return part, row, column or part.columns[0], item


class _Part:
    """One configuration of a dataset."""

    def __init__(self, name: str, config: str, spec: DataSpec, load: Load) -> None:
        self.where = (
            f"{name}, configuration {config}, split {spec.split}" if config else f"{name}, split {spec.split}"
        )
        table = _loaded(name, config, spec.split, load)
        self.columns, hidden, kinds = _image_columns(name, table, spec)
        self.stamp = str(table._fingerprint)
        self._config = config
        self._count = len(table)
        self._kinds = kinds
        others = [column for column in table.column_names if column not in hidden]
        # Without the image columns: their bytes would be copied for nothing.
        self._others = table.select_columns(others) if others else repeat({})
        # As Arrow, not as Python: images are neither decoded nor copied.
        self._images = table.select_columns(self.columns).with_format("arrow")

    def rows(self) -> Iterator[tuple[dict[str, Any], list[tuple[str, int]]]]:
        """Fields, and (column, item) of each image."""
        others = iter(self._others)
        for counts in self._counts():
            fields = dict(next(others))
            if self._config:
                fields.setdefault("config", self._config)
            pairs = zip(self.columns, counts, strict=True)
            yield fields, [(column, item) for column, count in pairs for item in range(count)]

    def locator(self, row: int, column: str, item: int) -> str:
        """As short as it can be: the row's number alone where that says all."""
        if not self._config and len(self.columns) == 1 and not item:
            return str(row)
        return locator(self._config, row, column, item)

    def problem(self, row: int, column: str, item: int) -> str:
        from mmbu_async.sources.cells import item_of, name_of

        try:
            name = name_of(item_of(self._cell(row, column), item))
        except IndexError:
            name = ""
        if name is None:
            return ""
        if name and self._kinds[column] != "text" and Path(name).is_file():
            if _is_of_the_hub(Path(name)):
                return ""
            return f"column '{column}' names a file of this machine that does not belong to the dataset"
        if name and self._kinds[column] == "text":
            return (
                f"column '{column}' names a file, which the hub's table does not hold; get a local copy of "
                "the dataset and give it with --data FOLDER"
            )
        return f"column '{column}' has no image; choose a dataset where every row has one"

    def image(self, row: int, column: str, item: int) -> bytes:
        from mmbu_async.sources.cells import image_of, item_of

        where = f"{self.where}, row {row + 1}"
        if problem := self.problem(row, column, item):
            raise ImageError(f"{where}: {problem}.")
        image = image_of(item_of(self._cell(row, column), item), where)
        if isinstance(image, bytes):
            return image
        try:
            return Path(image).read_bytes()
        except OSError as error:
            raise ImageError(f"{image}: cannot be read ({error.strerror}).") from None

    def describe(self) -> str:
        kinds = ", ".join(f"{column} ({self._kinds[column]})" for column in self.columns)
        return f"{self.where}: {self._count:,} rows; images in {kinds}"

    def _counts(self) -> Iterator[tuple[int, ...]]:
        """Images of each row by column; a row's only image column has one, though it be empty."""
        from mmbu_async.sources.cells import images_in

        for batch in self._images.iter(batch_size=_BATCH_ROWS):
            counts = zip(*(images_in(batch.column(column)) for column in self.columns), strict=True)
            yield from ((max(1, each[0]),) for each in counts) if len(self.columns) == 1 else counts

    def _cell(self, row: int, column: str) -> Any:
        return self._images[row].column(column)[0]


def _is_of_the_hub(file: Path) -> bool:
    path = file.resolve()
    return any(path.is_relative_to(folder.resolve()) for folder in cache_folders())


def _image_columns(name: str, table: Any, spec: DataSpec) -> tuple[list[str], set[str], dict[str, str]]:
    """The columns that images are taken from, those that fields are not taken from, and what the former hold.

    Columns that the benchmark names win; `datasets` replaces names of files by a column of its own, which is
    then the only one declared to be an image; names and base64 text come last.
    """
    import datasets

    from mmbu_async.sources.cells import kind

    schema = table.features.arrow_schema
    kinds = {
        column: kind(schema.field(column).type) for column in spec.image_columns if column in schema.names
    }
    declared = [column for column, feature in table.features.items() if isinstance(feature, datasets.Image)]
    named = [column for column, what in kinds.items() if what and not what.endswith("text")]
    texts = [column for column, what in kinds.items() if what == "text"]
    columns = named or declared[:1] or texts
    if not columns:
        raise DataError(
            f"{name}: has no image column; name a dataset with images (its columns are "
            f"{', '.join(table.column_names)})."
        )
    return columns, {*declared, *columns}, {column: kind(schema.field(column).type) for column in columns}


def _loaded(name: str, config: str, split: str, load: Load) -> Any:
    import datasets
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return load(name, split, config) if config else load(name, split)
    except (datasets.exceptions.DatasetsError, HfHubHTTPError, OSError, ValueError) as error:
        raise DataError(f"{name}: {_reason(error, config, split)}") from error


def _reason(error: Exception, config: str, split: str) -> str:
    """Why the hub gave no dataset and what to do, in one sentence."""
    from datasets.exceptions import DatasetNotFoundError

    said = " ".join(str(error).split())
    if isinstance(error, DatasetNotFoundError):
        if "gated" in said:
            return "the dataset is gated; accept its terms on the hub and set HF_TOKEN to your token."
        return "there is neither such a folder here nor such a dataset on the hub; correct the name."
    if isinstance(error, ConnectionError):
        return f"the hub cannot be reached ({said}); connect, or give a local copy with --data FOLDER."
    if isinstance(error, ValueError) and "split" in said.lower():
        return f"the dataset has no split '{split}' ({said})."
    if isinstance(error, ValueError) and "config" in said.lower():
        wanted = (
            f"no configuration '{config}'" if config else "several configurations, none of which is named"
        )
        return f"the dataset has {wanted} ({said})."
    return f"the dataset cannot be loaded ({said or type(error).__name__})."
