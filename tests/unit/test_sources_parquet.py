"""Parquet tables as several writers make them: which cells hold an image, and the images themselves."""

from __future__ import annotations

import base64
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mmbu_async.errors import DataError, ImageError
from mmbu_async.model import DataSpec, ImageRef
from mmbu_async.sources import LocalFolder, RawRow
from mmbu_async.sources import parquet as parquet_module

STRUCT = pa.struct({"bytes": pa.binary(), "path": pa.string()})


def picture(seed: int, size: int = 500) -> bytes:
    return b"\xff\xd8\xff" + random.Random(seed).randbytes(size)


def inside(seed: int) -> dict[str, Any]:
    return {"bytes": picture(seed), "path": f"{seed}.jpg"}


def opened(folder: Path, *columns: str) -> LocalFolder:
    return LocalFolder(folder, DataSpec(hub="a/b", tables=("*.parquet",), image_columns=columns))


def write(folder: Path, table: dict[str, Any], *, groups: int = 100, **options: Any) -> None:
    arrays = {
        name: cells if isinstance(cells, pa.Array) else pa.array(cells) for name, cells in table.items()
    }
    pq.write_table(pa.table(arrays), folder / "t.parquet", row_group_size=groups, **options)


def read(source: LocalFolder) -> list[list[bytes]]:
    """The images of every row."""
    return [[source.read_image(ref) for ref in row.images] for row in source.rows()]


def locators(rows: list[RawRow]) -> list[list[str]]:
    return [[ref.locator for ref in row.images] for row in rows]


# ---------------------------------------------------------------- which cells hold an image


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("fields", [("bytes", "path"), ("bytes",), ("path", "bytes", "sha")])
def test_empty_cells_are_known(tmp_path: Path, statistics: bool, fields: tuple[str, ...]) -> None:
    """Null structs, structs of nulls, both at once, and groups that have nothing else; with and without
    statistics and paths to tell them by."""
    nothing = dict.fromkeys(fields)
    cells: list[list[dict[str, Any] | None]] = [
        [{**nothing, "bytes": picture(n)} for n in range(4)],
        [None] * 4,
        [nothing] * 4,
        [{**nothing, "bytes": picture(12)}, None, None, None],
        [{**nothing, "bytes": picture(16)}, nothing, None, nothing],
        [None, {**nothing, "bytes": b""}, None, None],
    ]
    flat = [cell for group in cells for cell in group]
    type_ = pa.struct({name: pa.binary() if name == "bytes" else pa.string() for name in fields})
    table = {"n": list(range(24)), "image": pa.array(flat, type_), "other": [None] * 24}
    write(tmp_path, table, groups=4, write_statistics=statistics)
    rows = list(opened(tmp_path, "image", "second").rows())
    expected = [cell is not None and cell["bytes"] is not None for cell in flat]
    assert [bool(row.images) for row in rows] == expected
    assert [row.fields for row in rows] == [{"n": n, "other": None} for n in range(24)]
    source = opened(tmp_path, "image", "second")
    assert read(source)[:4] == [[picture(n)] for n in range(4)]
    assert read(source)[12] == [picture(12)]
    assert read(source)[21] == [b""]


def test_the_only_image_column_keeps_its_empty_cells(tmp_path: Path) -> None:
    """There a row without an image is a mistake, and is told as one."""
    write(tmp_path, {"image": pa.array([inside(1), None], STRUCT)})
    source = opened(tmp_path, "image")
    rows = list(source.rows())
    assert locators(rows) == [["t.parquet#0#image"], [""]]
    assert source.image_problem(rows[1].images[0]) == "column 'image' is empty; name the row's image"


def test_paths_without_bytes_name_files(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(b"file")
    cells = [{"bytes": None, "path": "a.png"}, inside(1), {"bytes": None, "path": "../x"}, None]
    write(tmp_path, {"image": pa.array(cells, STRUCT)})
    source = opened(tmp_path, "image")
    rows = list(source.rows())
    assert locators(rows) == [["a.png"], ["t.parquet#1#image"], ["../x"], [""]]
    assert [source.read_image(row.images[0]) for row in rows[:2]] == [b"file", picture(1)]
    assert "leads out" in source.image_problem(rows[2].images[0])


def test_paths_alone_name_files(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"file")
    type_ = pa.struct({"path": pa.string()})
    write(tmp_path, {"image": pa.array([{"path": "a.png"}, None], type_)})
    assert locators(list(opened(tmp_path, "image").rows())) == [["a.png"], [""]]


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()])
def test_bytes_without_a_struct(tmp_path: Path, type_: Any) -> None:
    table = {"image": pa.array([picture(1), None, picture(2)], type_), "second": [None, None, b"x"]}
    for rows_a_group in (1, 2, 3):
        write(tmp_path, table, groups=rows_a_group)
        assert read(opened(tmp_path, "image", "second")) == [[picture(1)], [], [picture(2), b"x"]]


def test_lists_of_images(tmp_path: Path) -> None:
    """As MicroVQA has them."""
    cells = [[inside(1), inside(2)], [], None, [inside(3), {"bytes": None, "path": "a.png"}]]
    (tmp_path / "a.png").write_bytes(b"file")
    write(tmp_path, {"images": pa.array(cells, pa.list_(STRUCT)), "q": list("abcd")}, groups=3)
    source = opened(tmp_path, "images", "image")
    assert locators(list(source.rows()))[0] == ["t.parquet#0#images", "t.parquet#0#images[1]"]
    assert read(source) == [[picture(1), picture(2)], [], [], [picture(3), b"file"]]


def test_lists_of_bytes_and_of_names(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"file")
    text = base64.b64encode(picture(4)).decode()
    table = {"raw": [[picture(1), picture(2)], None], "names": [["a.png", text], []], "q": ["x", "y"]}
    write(tmp_path, table)
    source = opened(tmp_path, "raw", "names")
    rows = list(source.rows())
    assert locators(rows)[0][2:] == ["a.png", "t.parquet#0#names[1]"]
    assert read(source) == [[picture(1), picture(2), b"file", picture(4)], []]


def test_text_is_base64_or_a_name(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"file")
    text = base64.b64encode(picture(4)).decode()
    write(tmp_path, {"image": [text, "a.png", None], "q": list("abc")})
    source = opened(tmp_path, "image")
    rows = list(source.rows())
    assert [row.fields for row in rows] == [
        {"q": "a"},
        {"image": "a.png", "q": "b"},
        {"image": None, "q": "c"},
    ]
    assert [source.read_image(row.images[0]) for row in rows[:2]] == [picture(4), b"file"]


def test_a_table_without_rows(tmp_path: Path) -> None:
    write(tmp_path, {"image": pa.array([], STRUCT), "q": pa.array([], pa.string())})
    source = opened(tmp_path, "image")
    assert list(source.rows()) == []
    assert source.describe()[0].startswith("table t.parquet: 0 rows; images in image (bytes and path)")


# ---------------------------------------------------------------- reading images


@pytest.mark.parametrize("names", [("bytes", "path"), ("bytes",)])
def test_rows_are_streamed_without_the_images(tmp_path: Path, names: tuple[str, ...]) -> None:
    cells: list[Any] = [
        {"bytes": random.Random(n).randbytes(200_000)} | dict.fromkeys(names[1:], "x") for n in range(100)
    ]
    type_ = pa.struct([STRUCT.field(name) for name in names])
    write(tmp_path, {"image": pa.array(cells, type_), "q": [str(n) for n in range(100)]}, groups=50)
    del cells
    source = opened(tmp_path, "image")
    pool = pa.proxy_memory_pool(pa.default_memory_pool())
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        assert sum(1 for _ in source.rows()) == 100
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 2_000_000, "20 MB of images were read"


def test_a_row_group_is_decoded_in_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_module, "SEGMENT_BYTES", 5000)
    pictures = [picture(n, 900) for n in range(95)]
    cells = [{"bytes": data, "path": None} for data in pictures]
    write(tmp_path, {"image": pa.array(cells, STRUCT), "q": [1] * 95}, groups=40)
    source = opened(tmp_path, "image")
    refs = [ImageRef(locator=f"t.parquet#{n}#image") for n in range(95)]
    assert [source.read_image(ref) for ref in refs] == pictures
    order = random.Random(1).choices(range(95), k=300)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(source.read_image, [refs[n] for n in order]))
    assert found == [pictures[n] for n in order]


@pytest.mark.parametrize(
    "locator", ["t.parquet#7#image", "t.parquet#0#gone", "t.parquet#0#image[3]", "t.parquet#1#images"]
)
def test_an_image_that_is_not_there_any_more_is_told(tmp_path: Path, locator: str) -> None:
    table = {
        "image": pa.array([inside(1), inside(2)], STRUCT),
        "images": pa.array([[], None], pa.list_(STRUCT)),
    }
    write(tmp_path, table)
    with pytest.raises(ImageError, match="is not there any more; the table was changed"):
        opened(tmp_path, "image", "images").read_image(ImageRef(locator=locator))


def test_pages_that_are_damaged_are_told(tmp_path: Path) -> None:
    """By the checksums of the pages, where the writer made them."""
    cells = [{"bytes": picture(n), "path": None} for n in range(20)]
    write(
        tmp_path,
        {"image": pa.array(cells, STRUCT), "q": ["x" * 50 for _ in cells]},
        write_page_checksum=True,
        use_dictionary=False,
        compression="none",
    )
    path = tmp_path / "t.parquet"
    content = path.read_bytes()
    path.write_bytes(content.replace(picture(3)[:100], b"\0" * 100))
    source = opened(tmp_path, "image")
    ref = ImageRef(locator="t.parquet#3#image")
    for _ in range(2):
        with pytest.raises(ImageError, match=r"t\.parquet#3#image: cannot be read \(.*; get the file again"):
            source.read_image(ref)
    path.write_bytes(content.replace(b"x" * 50, b"y" * 50))
    with pytest.raises(DataError, match=r"t\.parquet: cannot be read as Parquet"):
        list(opened(tmp_path, "image").rows())
    path.write_bytes(content)
    assert source.read_image(ref) == picture(3), "a reader recovers when the file does"


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"no table at all", b"\xff\0\0\0PAR1", b"PAR1\x02\0\0\0\0\0PAR1"]
)
def test_what_is_no_parquet_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"t\.parquet: cannot be read as Parquet \(.*; get the file again"):
        opened(tmp_path, "image")


def test_a_file_that_goes_away_is_named(tmp_path: Path) -> None:
    write(tmp_path, {"image": pa.array([inside(1)], STRUCT)})
    source = opened(tmp_path, "image")
    (tmp_path / "t.parquet").unlink()
    with pytest.raises(DataError, match="No such file"):
        list(source.rows())
    with pytest.raises(ImageError, match="No such file"):
        source.read_image(ImageRef(locator="t.parquet#0#image"))


@pytest.mark.parametrize(
    "cells", [[1, 2], [[["a"]], None], [{"width": 3}, None], [{"bytes": [1, 2], "path": "a"}]]
)
def test_a_table_without_images_says_what_it_has(tmp_path: Path, cells: list[Any]) -> None:
    write(tmp_path, {"image": cells, "q": ["x"] * len(cells)})
    with pytest.raises(
        DataError, match=r"t\.parquet: has no images in a column image; its columns are image \("
    ):
        opened(tmp_path, "image")
    with pytest.raises(DataError, match=r"has no images in a column one or two; .* q \(string\)"):
        opened(tmp_path, "one", "two")


def test_the_stamp_is_that_of_the_footer(tmp_path: Path) -> None:
    write(tmp_path, {"image": pa.array([inside(1)], STRUCT), "q": ["x"]})
    stamp = opened(tmp_path, "image").stamp
    assert stamp == opened(tmp_path, "image").stamp
    write(tmp_path, {"image": pa.array([inside(1)], STRUCT), "q": ["y"]})
    assert opened(tmp_path, "image").stamp != stamp
