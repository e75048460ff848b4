from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mmbu_async import api, tasks
from mmbu_async.cli import show
from mmbu_async.errors import DataError
from mmbu_async.model import DataSpec, Sample
from mmbu_async.sources import ImageFolder, open_data, samples


def row(number: int, **changes: Any) -> dict[str, Any]:
    plain = {
        "unique_id": f"r{number}",
        "question": "Which?",
        "task": "counting | x",
        "options": ["A) 1", "B) 2"],
        "answer": "1",
        "file_name": "a.png",
    }
    return plain | changes


def collect(folder: Path, rows: list[dict[str, Any]]) -> list[tuple[Sample, str]]:
    (folder / "a.png").write_bytes(b"x")
    (folder / "metadata.jsonl").write_text(
        "".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8"
    )
    return list(samples(ImageFolder(folder), tasks.load("mmbu-public")))


def test_samples_carry_their_images_and_family(tmp_path: Path) -> None:
    ((sample, family),) = collect(tmp_path, [row(1)])
    assert family == "counting"
    assert [ref.locator for ref in sample.images] == ["a.png"]


def test_one_bad_row_is_named_with_file_line_id_and_column(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        collect(tmp_path, [row(1), row(2, answer="")])
    assert str(caught.value) == (
        "metadata.jsonl, line 2: row r2: column 'answer' is empty; fill it in, or take the row out."
    )


def test_rows_with_one_problem_are_listed_together(tmp_path: Path) -> None:
    rows = [row(number, file_name=f"{number}.png") for number in range(12)] + [row(12), row(13, answer=None)]
    with pytest.raises(DataError) as caught:
        collect(tmp_path, rows)
    listed = ", ".join(f"r{number} ({number}.png)" for number in range(10))
    assert str(caught.value) == (
        "metadata.jsonl, line 1: column 'file_name' names an image that is not there; "
        f"add it, or take the row out; 12 rows are so: {listed} and 2 more. Rows with other problems: 1."
    )


def test_good_rows_come_before_the_error(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    lines = [json.dumps(row(1, answer="")), json.dumps(row(2)), json.dumps(row(3))]
    (tmp_path / "metadata.jsonl").write_text("\n".join(lines), encoding="utf-8")
    found = samples(ImageFolder(tmp_path), tasks.load("mmbu-public"))
    assert [next(found)[0].id, next(found)[0].id] == ["r2", "r3"]
    with pytest.raises(DataError, match="row r1"):
        next(found)


def test_a_dataset_without_rows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no rows"):
        collect(tmp_path, [])


def test_a_benchmark_is_told_which_column_each_image_came_from(tmp_path: Path) -> None:
    """Where there are several: `<image 3>` of MMMU is the second image of a row that has no `image_2`."""
    (tmp_path / "a.png").write_bytes(b"x")
    fields = {key: value for key, value in row(1).items() if key != "file_name"}
    (tmp_path / "t.jsonl").write_text(
        json.dumps({**fields, "one": "a.png", "three": "a.png"}), encoding="utf-8"
    )
    several = DataSpec(hub="a/b", tables=("t.jsonl",), image_columns=("one", "two", "three"))
    (raw,) = open_data(str(tmp_path), several).rows()
    assert raw.image_columns == ("one", "three")
    assert len(raw.images) == 2


def test_a_cell_that_is_no_name_is_shown_shortened(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        collect(tmp_path, [row(1, file_name="x" * 90_000)])
    assert str(caught.value).endswith(f"rename the file ({'x' * 200}…).")


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    with (tmp_path / "metadata.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row(number, note="x" * 1000)) + "\n" for number in range(3000))
    benchmark = tasks.load("mmbu-public")
    tracemalloc.start()
    try:
        count = sum(1 for _ in samples(ImageFolder(tmp_path), benchmark))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 3000
    assert peak < 1_000_000, "3 MB of metadata passed through"


def test_rows_of_another_format_are_counted(tmp_path: Path) -> None:
    """Of the closed format are rows whose answer is an option."""
    rows = [row(1), row(2, answer="neither"), row(3), row(4, answer="nor this")]
    collect(tmp_path, rows)
    left: list[int] = []
    found = samples(ImageFolder(tmp_path), tasks.load("mmbu-closed"), left_out=lambda: left.append(1))
    assert [sample.id for sample, _ in found] == ["r1", "r3"]
    assert len(left) == 2
    checked = api.check_data("mmbu-closed", str(tmp_path))
    assert checked.rows.left_out == 2
    console = Console(width=100, record=True)
    show.data_check(checked, console)
    assert "2 rows of the data are none of this benchmark and were left out" in console.export_text()
