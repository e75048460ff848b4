"""The hub path over a local folder, through `datasets`; only the resolution of the hub id is replaced."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest
from huggingface_hub.errors import HfHubHTTPError

from mmbu_async import tasks
from mmbu_async.errors import DataError, ImageError
from mmbu_async.model import ImageRef
from mmbu_async.sources import HubDataset, ImageFolder, open_data, samples
from mmbu_async.sources.hub import cache_folders
from mmbu_async.tasks.mmbu_public import MmbuPublic

MINI = Path(__file__).parents[1] / "data" / "mini_mmbu"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def mini(cache: str, monkeypatch: pytest.MonkeyPatch) -> HubDataset:
    def load(name: str, split: str) -> Any:
        assert name == "mmbu/mmbu-public"
        return datasets.load_dataset("imagefolder", data_dir=str(MINI), split=split, cache_dir=cache)

    # As if it had been fetched.
    monkeypatch.setattr("mmbu_async.sources.hub.cache_folders", lambda: [MINI])
    source = open_data(None, MmbuPublic.data, load=load)
    assert isinstance(source, HubDataset)
    return source


def of(rows: dict[str, list[Any]], **features: Any) -> HubDataset:
    kinds = datasets.Features({name: features.get(name, datasets.Value("string")) for name in rows})
    return HubDataset("a/b", load=lambda name, split: datasets.Dataset.from_dict(rows, features=kinds))


def test_the_hub_gives_the_samples_that_the_folder_gives(mini: HubDataset) -> None:
    benchmark = tasks.load("mmbu-public")
    folder = {sample.id: sample for sample, _ in samples(ImageFolder(MINI), benchmark)}
    found = list(samples(mini, benchmark))
    assert len(found) == 33
    for sample, _ in found:
        # `datasets` replaces the column file_name by the images.
        twin = folder[sample.id]
        fields = {name: value for name, value in twin.fields.items() if name != "file_name"}
        assert {name: value for name, value in sample.fields.items() if name != "file_name"} == fields
        same = {"fields": sample.fields, "images": sample.images, "position": sample.position}
        assert dataclasses.replace(twin, **same) == sample  # type: ignore[arg-type]


def test_image_bytes_come_untouched(mini: HubDataset) -> None:
    folder = {row.fields["unique_id"]: row.images[0].locator for row in ImageFolder(MINI).rows()}
    for row in mini.rows():
        file = MINI / folder[row.fields["unique_id"]]
        assert mini.read_image(row.images[0]) == file.read_bytes()


def test_rows_hold_no_image_and_say_where_they_are(mini: HubDataset) -> None:
    rows = list(mini.rows())
    assert "image" not in rows[0].fields
    assert rows[2].where == "mmbu/mmbu-public, split train, row 3"
    assert rows[2].images == (ImageRef(locator="2"),)


def test_the_stamp_follows_the_content() -> None:
    image = {"image": datasets.Image()}
    one, same, other = (of({"a": [text], "image": [None]}, **image).stamp for text in ("x", "x", "y"))
    assert one == same != other


def test_bytes_inside_the_table_are_read() -> None:
    data = (MINI / "images" / "nuclei_00.png").read_bytes()
    source = of({"image": [{"bytes": data, "path": None}]}, image=datasets.Image())
    assert source.image_problem(ImageRef(locator="0")) == ""
    assert source.read_image(ImageRef(locator="0")) == data


@pytest.mark.parametrize("image", [None, {"bytes": None, "path": "/nowhere/a.png"}])
def test_a_row_without_its_image_is_named(image: Any) -> None:
    source = of({"picture": [image]}, picture=datasets.Image())
    assert source.image_problem(ImageRef(locator="0")).startswith("column 'picture' has no image")
    with pytest.raises(ImageError, match="a/b, split train, row 1: column 'picture' has no image"):
        source.read_image(ImageRef(locator="0"))


def test_an_image_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.png"
    file.write_bytes(b"x")
    monkeypatch.setattr("mmbu_async.sources.hub.cache_folders", lambda: [tmp_path])
    source = of({"image": [{"bytes": None, "path": str(file)}]}, image=datasets.Image())

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ImageError, match=r"a.png: cannot be read \(Permission denied\)"):
        source.read_image(ImageRef(locator="0"))


def test_a_table_names_no_file_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataset of others could have any picture sent away that lies on this disk."""
    own, private = tmp_path / "hub" / "a.png", tmp_path / "scan.png"
    own.parent.mkdir()
    picture = (MINI / "images" / "nuclei_00.png").read_bytes()
    for file in (own, private):
        file.write_bytes(picture)
    link = own.parent / "link.png"
    link.symlink_to(private)
    monkeypatch.setattr("mmbu_async.sources.hub.cache_folders", lambda: [own.parent])
    names = [own, private, link, own.parent / ".." / "scan.png"]
    source = of({"image": [{"bytes": None, "path": str(name)} for name in names]}, image=datasets.Image())
    assert source.read_image(ImageRef(locator="0")) == picture
    for row in (1, 2, 3):
        ref = ImageRef(locator=str(row))
        assert "names a file of this machine that does not belong" in source.image_problem(ref)
        with pytest.raises(ImageError, match="does not belong to the dataset"):
            source.read_image(ref)


def test_what_the_hub_fetches_lies_in_its_caches() -> None:
    folders = cache_folders()
    assert Path(huggingface_hub.constants.HF_HUB_CACHE) in folders
    assert Path(datasets.config.HF_DATASETS_CACHE) in folders


def test_a_dataset_without_images_is_refused() -> None:
    with pytest.raises(DataError, match="a/b: has no image column"):
        of({"question": ["x"]})


class _GoneError(HfHubHTTPError):
    def __init__(self) -> None:
        Exception.__init__(self, "503\nService Unavailable")

    def __str__(self) -> str:
        return "503\nService Unavailable"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            datasets.exceptions.DatasetNotFoundError("Dataset 'a/b' doesn't exist"),
            "neither such a folder here nor",
        ),
        (
            datasets.exceptions.DatasetNotFoundError("Dataset 'a/b' is a gated dataset"),
            "gated; accept its terms",
        ),
        (
            ConnectionError("Couldn't reach\n'a/b'"),
            r"cannot be reached \(Couldn't reach 'a/b'\); .* --data FOLDER",
        ),
        (ValueError("Unknown split 'train'"), "has no split 'train'"),
        (ValueError(""), r"cannot be loaded \(ValueError\)"),
        (_GoneError(), r"cannot be loaded \(503 Service Unavailable\)"),
    ],
)
def test_what_the_hub_says_becomes_one_sentence(error: Exception, told: str) -> None:
    def load(name: str, split: str) -> Any:
        raise error

    with pytest.raises(DataError, match=told) as caught:
        open_data("a/b", MmbuPublic.data, load=load)
    assert str(caught.value).startswith("a/b: ")
    assert "\n" not in str(caught.value)


def test_a_missing_hub_dataset_is_told_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The real loader, kept off the network."""
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    with pytest.raises(DataError, match="cannot be reached"):
        open_data("nobody/nothing-of-this-name", MmbuPublic.data)
