"""Hub datasets with several configurations and image columns, through `datasets` on local Parquet files."""

from __future__ import annotations

import base64
import random
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mmbu_async.errors import DataError, ImageError
from mmbu_async.model import DataSpec, ImageRef
from mmbu_async.sources import HubDataset, open_data
from mmbu_async.sources.hub import load_from_hub

MMMU = DataSpec(
    hub="MMMU/MMMU",
    configs=("Accounting", "Biology"),
    split="validation",
    tables=("*/validation-*.parquet",),
    image_columns=("image_1", "image_2"),
)


def picture(seed: int) -> bytes:
    """No image at all: whoever decoded it would fail."""
    return b"\xff\xd8\xff" + random.Random(seed).randbytes(300)


def inside(seed: int) -> dict[str, Any]:
    return {"bytes": picture(seed), "path": None}


def of(spec: DataSpec, rows: dict[str, list[Any]], **features: Any) -> HubDataset:
    kinds = datasets.Features({name: features.get(name, datasets.Value("string")) for name in rows})

    def load(name: str, split: str, config: str | None = None) -> Any:
        return datasets.Dataset.from_dict(rows, features=kinds)

    return HubDataset("a/b", spec, load=load)


@pytest.fixture
def mmmu(tmp_path: Path) -> HubDataset:
    image = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    schema = pa.schema({"id": pa.string(), "image_1": image, "image_2": image})
    features = datasets.Features(
        {"id": datasets.Value("string"), "image_1": datasets.Image(), "image_2": datasets.Image()}
    )
    for config, first in (("Accounting", 0), ("Biology", 10)):
        (tmp_path / config).mkdir()
        table = {
            "id": [f"{config}_{n}" for n in range(3)],
            "image_1": [inside(first + n) for n in range(3)],
            "image_2": [None, inside(first + 5), None],
        }
        pq.write_table(pa.Table.from_pydict(table, schema), tmp_path / config / "validation-0.parquet")

    def load(name: str, split: str, config: str) -> Any:
        assert (name, split) == ("MMMU/MMMU", "validation")
        return datasets.load_dataset(
            "parquet",
            data_files={"validation": str(tmp_path / config / "validation-0.parquet")},
            split=split,
            features=features,
            cache_dir=str(tmp_path / "cache"),
        )

    source = open_data(None, MMMU, load=load)
    assert isinstance(source, HubDataset)
    return source


def test_configurations_come_one_after_the_other(mmmu: HubDataset) -> None:
    rows = list(mmmu.rows())
    assert [row.position for row in rows] == list(range(6))
    assert [row.fields for row in rows[2:4]] == [
        {"id": "Accounting_2", "config": "Accounting"},
        {"id": "Biology_0", "config": "Biology"},
    ]
    assert rows[3].where == "MMMU/MMMU, configuration Biology, split validation, row 1"
    assert rows[4].image_columns == ("image_1", "image_2")
    assert rows[4].images[1].locator == "Biology#1#image_2"
    assert rows[5].image_columns == ("image_1",)


def test_images_of_every_column_come_untouched(mmmu: HubDataset) -> None:
    found = [[mmmu.read_image(ref) for ref in row.images] for row in mmmu.rows()]
    seeds = [[0], [1, 5], [2], [10], [11, 15], [12]]
    assert found == [[picture(seed) for seed in row] for row in seeds]
    assert {mmmu.image_problem(ref) for row in mmmu.rows() for ref in row.images} == {""}


def test_what_was_found_is_described(mmmu: HubDataset) -> None:
    assert mmmu.description == "MMMU/MMMU, 2 configurations, split validation"
    assert mmmu.describe()[1] == (
        "MMMU/MMMU, configuration Biology, split validation: 3 rows; images in image_1 (bytes and path), "
        "image_2 (bytes and path)"
    )


def test_the_stamp_follows_every_configuration() -> None:
    def load(name: str, split: str, config: str) -> Any:
        rows = {"image": [inside(1)], "q": [texts[config]]}
        return datasets.Dataset.from_dict(rows, datasets.Features({"image": datasets.Image(), "q": TEXT}))

    spec = DataSpec(hub="a/b", configs=("x", "y"), image_columns=("image",))
    texts = {"x": "1", "y": "2"}
    stamp = HubDataset("a/b", spec, load=load).stamp
    assert HubDataset("a/b", spec, load=load).stamp == stamp
    texts["y"] = "3"
    assert HubDataset("a/b", spec, load=load).stamp != stamp


TEXT = datasets.Value("string")


def test_a_row_s_own_config_is_kept() -> None:
    spec = DataSpec(hub="a/b", configs=("x",), image_columns=("image",))
    source = of(spec, {"image": [inside(1)], "config": ["mine"]}, image=datasets.Image())
    (row,) = source.rows()
    assert row.fields == {"config": "mine"}
    assert row.images == (ImageRef(locator="x#0#image"),)
    assert source.read_image(row.images[0]) == picture(1)


def test_the_benchmark_s_column_wins_over_others_that_hold_images() -> None:
    spec = DataSpec(hub="a/b", image_columns=("scan",))
    rows: dict[str, list[Any]] = {"thumbnail": [inside(1)], "scan": [inside(2)], "q": ["x"]}
    source = of(spec, rows, thumbnail=datasets.Image(), scan=datasets.Image())
    (row,) = source.rows()
    assert row.fields == {"q": "x"}
    assert row.images == (ImageRef(locator="0"),)
    assert source.read_image(row.images[0]) == picture(2)


def test_lists_of_images() -> None:
    spec = DataSpec(hub="a/b", image_columns=("images",))
    rows = {"images": [[inside(1), inside(2)], [inside(3)], []]}
    source = of(spec, rows, images=[datasets.Image()])
    found = list(source.rows())
    assert [[ref.locator for ref in row.images] for row in found] == [["0", "#0#images[1]"], ["1"], ["2"]]
    assert [source.read_image(ref) for row in found[:2] for ref in row.images] == [
        picture(n) for n in (1, 2, 3)
    ]
    assert "has no image" in source.image_problem(found[2].images[0])
    assert found[0].fields == {}, "a table of images alone has rows too"


def test_structs_and_bytes_that_are_not_declared_as_images() -> None:
    spec = DataSpec(hub="a/b", image_columns=("image", "raw"))
    struct = {"bytes": datasets.Value("binary"), "path": TEXT}
    rows: dict[str, list[Any]] = {"image": [inside(1), None], "raw": [None, b"raw"], "q": ["x", "y"]}
    source = of(spec, rows, image=struct, raw=datasets.Value("binary"))
    found = list(source.rows())
    assert [row.image_columns for row in found] == [("image",), ("raw",)]
    assert [source.read_image(row.images[0]) for row in found] == [picture(1), b"raw"]


def test_text_is_base64_or_the_name_of_a_file_that_the_hub_s_table_has_not() -> None:
    text = base64.b64encode(picture(1)).decode()
    source = of(
        DataSpec(hub="a/b", image_columns=("image",)), {"image": [text, "a.png", None], "q": list("xyz")}
    )
    first, second, third = source.rows()
    assert source.read_image(first.images[0]) == picture(1)
    assert "names a file, which the hub's table does not hold" in source.image_problem(second.images[0])
    with pytest.raises(ImageError, match="give it with --data FOLDER"):
        source.read_image(second.images[0])
    assert "has no image" in source.image_problem(third.images[0])


def test_archives_are_not_fetched_unasked() -> None:
    spec = DataSpec(hub="a/PMC-VQA", tables=("test.csv",), image_columns=("p",), archives=("images.zip",))

    def load(*_: str) -> Any:
        raise AssertionError("nothing is to be fetched")

    with pytest.raises(DataError) as caught:
        open_data(None, spec, load=load)
    assert str(caught.value) == (
        "a/PMC-VQA: its images lie in images.zip beside the table; fetch both with `hf download a/PMC-VQA "
        "--repo-type dataset --local-dir FOLDER` and give --data FOLDER."
    )

    def other(name: str, split: str) -> Any:
        return datasets.Dataset.from_dict(
            {"image": [inside(1)], "p": ["a.png"]}, datasets.Features({"image": datasets.Image(), "p": TEXT})
        )

    source = open_data("someone/with-images-inside", spec, load=other)
    assert [source.read_image(row.images[0]) for row in source.rows()] == [picture(1)]


@pytest.mark.parametrize(
    ("config", "said", "told"),
    [
        ("x", "BuilderConfig 'x' not found. Available: ['y']", r"has no configuration 'x' \(.*\['y'\]\)"),
        (
            "",
            "Config name is missing. Please pick one",
            r"has several configurations, none of which is named",
        ),
    ],
)
def test_a_configuration_that_is_not_there_is_told(config: str, said: str, told: str) -> None:
    def load(*_: str) -> Any:
        raise ValueError(said)

    with pytest.raises(DataError, match=told):
        open_data("a/b", DataSpec(hub="a/b", configs=(config,) if config else ()), load=load)


def test_the_loader_passes_split_and_configuration_on(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(datasets, "load_dataset", lambda *args, **named: calls.append((args, named)))
    load_from_hub("a/b", "test")
    load_from_hub("a/b", "test", "x")
    assert calls == [(("a/b", None), {"split": "test"}), (("a/b", "x"), {"split": "test"})]
