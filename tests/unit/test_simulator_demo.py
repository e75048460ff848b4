"""The drawn split: MMBU's layout, known truth, the same bytes for the same seed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mmbu_async.simulator import paint
from mmbu_async.simulator.demo import COLUMNS, draw_split

MINI = Path(__file__).parent.parent / "data" / "mini_mmbu"


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_split(tmp_path_factory.mktemp("split"), rows=60, seed=4)


def _rows(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "metadata.jsonl").read_text("utf-8").splitlines()]


def test_columns_are_those_of_the_real_split_in_their_order(split: Path) -> None:
    real = json.loads((MINI / "metadata.jsonl").read_text("utf-8").splitlines()[0])
    assert tuple(real) == COLUMNS
    assert all(tuple(row) == COLUMNS for row in _rows(split))


def test_the_tsv_mirrors_the_jsonl(split: Path) -> None:
    with (split / "metadata.tsv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file, delimiter="\t"))
    for cells, row in zip(table, _rows(split), strict=True):
        assert json.loads(cells.pop("options")) == row.pop("options")
        assert cells == {name: "" if value is None else str(value) for name, value in row.items()}


def test_all_categories_formats_and_several_strata_are_there(split: Path) -> None:
    rows = _rows(split)
    assert {str(row["task"]).partition(" |")[0] for row in rows} == {
        "object detection",
        "fine-grained classification (from detection)",
        "fine-grained classification (from segmentation)",
        "classification",
        "counting",
    }
    assert {Path(str(row["file_name"])).suffix for row in rows} == {".png", ".jpg", ".tif"}
    assert len({row["metadata_modality"] for row in rows}) >= 5
    assert len({row["metadata_stain"] for row in rows}) >= 4
    assert len({row["unique_id"] for row in rows}) == 60
    assert any("," in str(row["answer"]) and "from segmentation" in str(row["task"]) for row in rows)


def test_the_first_five_rows_show_every_category(tmp_path: Path) -> None:
    tasks = {str(row["task"]).partition(" |")[0] for row in _rows(draw_split(tmp_path, rows=5, seed=0))}
    assert len(tasks) == 5


def test_the_truth_is_among_the_options_and_detection_has_none(split: Path) -> None:
    for row in _rows(split):
        options = row["options"]
        assert isinstance(options, list)
        labels = [str(option).partition(") ")[2] for option in options]
        if str(row["task"]).startswith("object detection"):
            assert labels == []
            continue
        assert len(set(labels)) == len(labels) >= 2
        parts = str(row["answer"]).split(", ") if "from segmentation" in str(row["task"]) else [row["answer"]]
        assert all(part in labels for part in parts)


def test_boxes_of_the_truth_lie_inside_the_image(split: Path) -> None:
    for row in _rows(split):
        if str(row["task"]).startswith("object detection"):
            with Image.open(split / str(row["file_name"])) as image:
                width, height = image.size
            boxes = json.loads(str(row["answer"]))
            for x, y, wide, high in boxes if isinstance(boxes[0], list) else [boxes]:
                assert x >= 0 and y >= 0 and wide > 0 and high > 0
                assert x + wide <= width and y + high <= height


def test_tiffs_have_sixteen_bits(split: Path) -> None:
    paths = list((split / "images").glob("*.tif"))
    assert paths
    for path in paths:
        with Image.open(path) as image:
            assert np.asarray(image).dtype == np.uint16
            assert np.asarray(image).max() > 1000


def test_the_same_seed_draws_the_same_bytes_and_another_others(tmp_path: Path) -> None:
    one, again = (draw_split(tmp_path / name, rows=22, seed=4) for name in ("a", "b"))
    names = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert len(names) == 24
    assert names == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert all((one / name).read_bytes() == (again / name).read_bytes() for name in names)
    other = draw_split(tmp_path / "c", rows=1, seed=5)
    assert (other / "images" / "count_0000.png").read_bytes() != (
        one / "images" / "count_0000.png"
    ).read_bytes()


@pytest.mark.parametrize("count", [1, 12, 30])
def test_every_object_that_is_counted_can_be_seen(count: int) -> None:
    for seed in range(5):
        labels = paint.scatter(np.random.default_rng(seed), 192, count, (7, 12))
        areas = np.bincount(labels.ravel(), minlength=count + 1)[1:]
        assert len(areas) == count
        assert areas.min() >= 20
