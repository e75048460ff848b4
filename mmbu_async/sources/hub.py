"""A dataset of the Hugging Face hub, through `datasets`; image bytes come as they were uploaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mmbu_async.errors import DataError, ImageError
from mmbu_async.model import ImageRef
from mmbu_async.sources.base import RawRow

SPLIT = "train"
"""The split that an ImageFolder on the hub has unless it says otherwise."""

Load = Callable[[str, str], Any]
"""(hub id, split) -> `datasets.Dataset`."""


def load_from_hub(name: str, split: str) -> Any:
    """`datasets.load_dataset`, imported here because it takes a second that local folders need not pay."""
    import datasets

    return datasets.load_dataset(name, split=split)


class HubDataset:
    """Rows and images of one split. The table is memory-mapped, not loaded."""

    def __init__(self, name: str, *, split: str = SPLIT, load: Load = load_from_hub) -> None:
        import datasets
        from huggingface_hub.errors import HfHubHTTPError

        try:
            table = load(name, split)
        except (datasets.exceptions.DatasetsError, HfHubHTTPError, OSError, ValueError) as error:
            raise DataError(f"{name}: {_reason(error, split)}") from error
        columns = [key for key, kind in table.features.items() if isinstance(kind, datasets.Image)]
        if not columns:
            raise DataError(f"{name}: has no image column; name a dataset with images.")
        self._table = table
        self._columns = columns
        # As Arrow, not as Python: images are neither decoded nor copied.
        self._images = table.select_columns(columns[:1]).with_format("arrow")
        self.description = f"{name}, split {split}"
        self.stamp = str(table._fingerprint)

    def rows(self) -> Iterator[RawRow]:
        # Without the image columns: their bytes would be copied for nothing.
        for position, fields in enumerate(self._table.remove_columns(self._columns)):
            yield RawRow(
                position=position,
                fields=fields,
                images=(ImageRef(locator=str(position)),),
                where=f"{self.description}, row {position + 1}",
            )

    def image_problem(self, ref: ImageRef) -> str:
        image = self._image(ref)
        if image.is_valid and (image["bytes"].is_valid or Path(image["path"].as_py() or "").is_file()):
            return ""
        return f"column '{self._columns[0]}' has no image; choose a dataset where every row has one"

    def read_image(self, ref: ImageRef) -> bytes:
        if problem := self.image_problem(ref):
            raise ImageError(f"{self.description}, row {int(ref.locator) + 1}: {problem}.")
        image = self._image(ref)
        if image["bytes"].is_valid:
            return bytes(image["bytes"].as_py())
        path = Path(image["path"].as_py())
        try:
            return path.read_bytes()
        except OSError as error:
            raise ImageError(f"{path}: cannot be read ({error.strerror}).") from None

    def _image(self, ref: ImageRef) -> Any:
        """Arrow's view of `{bytes, path}`: nothing is copied before it is asked for."""
        return self._images[int(ref.locator)].column(0)[0]


def _reason(error: Exception, split: str) -> str:
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
    return f"the dataset cannot be loaded ({said or type(error).__name__})."
