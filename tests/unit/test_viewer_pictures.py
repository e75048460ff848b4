"""Images for the pages: out of every kind of source, converted where no browser shows them."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from mmbu_async.config import RunConfig
from mmbu_async.errors import DataError
from mmbu_async.model import Benchmark, DataSpec, ImageRef, PreparedImage
from mmbu_async.sources import open_data
from mmbu_async.viewer.pictures import Missing, Picture, Pictures


def image(kind: str, size: tuple[int, int] = (60, 40), mode: str = "L") -> bytes:
    pixels = np.arange(size[0] * size[1], dtype=np.uint16 if mode == "I;16" else np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels.reshape(size[::-1])).save(file, kind)
    return file.getvalue()


@dataclass
class Kit:
    pictures: Pictures

    async def get(self, data: Path, spec: DataSpec, locator: str, *, small: bool = False) -> Picture:
        config = RunConfig(model="m", data=str(data))
        benchmark = cast(Benchmark, SimpleNamespace(data=spec))
        key = ("run", 1, 0, small)
        return await self.pictures.get(key, ImageRef(locator=locator), config, benchmark)


@pytest.fixture
def kit() -> Iterator[Kit]:
    pictures = Pictures(kept_bytes=10_000)
    yield Kit(pictures)
    pictures.close()


FOLDER = DataSpec(hub="a/b")


def folder_with(data: Path, **files: bytes) -> Path:
    data.mkdir()
    (data / "metadata.jsonl").write_text('{"file_name": "x"}\n')
    for name, content in files.items():
        (data / name.replace("_", ".")).write_bytes(content)
    return data


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
async def test_what_browsers_show_comes_as_it_is(kit: Kit, tmp_path: Path, kind: str) -> None:
    content = image(kind)
    data = folder_with(tmp_path / "data", **{f"x_{kind}": content})
    found = await kit.get(data, FOLDER, f"x.{kind}")
    assert isinstance(found, PreparedImage)
    assert (found.data, found.media_type, found.converted) == (content, f"image/{kind}", "")
    assert (found.width, found.height, found.scale) == (60, 40, 1.0)


@pytest.mark.parametrize(
    ("content", "converted"),
    [
        (image("tiff"), "tiff"),
        (image("bmp"), "bmp"),
        (image("png", mode="I;16"), "16-bit"),
        (image("tiff", mode="I;16"), "tiff, 16-bit"),
    ],
)
async def test_what_browsers_do_not_show_is_converted(
    kit: Kit, tmp_path: Path, content: bytes, converted: str
) -> None:
    found = await kit.get(folder_with(tmp_path / "data", x_y=content), FOLDER, "x.y")
    assert isinstance(found, PreparedImage)
    assert (found.media_type, found.converted, found.width, found.height) == ("image/png", converted, 60, 40)


async def test_a_turned_photograph_is_shown_as_it_stands(kit: Kit, tmp_path: Path) -> None:
    """In the frame in which its boxes are."""
    turned, exif = io.BytesIO(), Image.Exif()
    exif[274] = 6
    Image.open(io.BytesIO(image("png"))).save(turned, "jpeg", exif=exif)
    found = await kit.get(folder_with(tmp_path / "data", x_jpg=turned.getvalue()), FOLDER, "x.jpg")
    assert isinstance(found, PreparedImage)
    assert (found.width, found.height) == (40, 60)


async def test_images_out_of_a_zip_and_a_parquet_table(kit: Kit, tmp_path: Path) -> None:
    content = image("png")
    zipped = folder_with(tmp_path / "zipped")
    with zipfile.ZipFile(zipped / "images.zip", "w") as archive:
        archive.writestr("inner/x.png", content)
    spec = DataSpec(hub="a/b", archives=("*.zip",))
    found = await kit.get(zipped, spec, "inner/x.png")
    assert isinstance(found, PreparedImage)
    assert found.data == content
    table = tmp_path / "table"
    table.mkdir()
    cells = [{"bytes": image("gif"), "path": "0.gif"}, {"bytes": content, "path": "1.png"}]
    pq.write_table(pa.table({"image": cells}), table / "rows.parquet")
    pictures = Kit(Pictures())
    found = await pictures.get(
        table, DataSpec(hub="a/b", tables=("*.parquet",), image_columns=("image",)), "rows.parquet#1#image"
    )
    pictures.pictures.close()
    assert isinstance(found, PreparedImage)
    assert found.data == content


async def test_small_images_are_small(kit: Kit, tmp_path: Path) -> None:
    data = folder_with(tmp_path / "data", x_png=image("png", (1000, 500)))
    found = await kit.get(data, FOLDER, "x.png", small=True)
    assert isinstance(found, PreparedImage)
    assert (found.width, found.height) == (192, 96)


async def test_what_is_not_there_or_no_image_is_said_in_words(kit: Kit, tmp_path: Path) -> None:
    data = folder_with(tmp_path / "data", x_png=b"no image", html_png=b"<html>")
    said = [
        await kit.get(data, FOLDER, name)
        for name in ("gone.png", "x.png", "html.png", "../out.png", "", "a\0b", "metadata.jsonl#9#file_name")
    ]
    said.append(await Kit(Pictures()).get(tmp_path / "nowhere", FOLDER, "x.png"))
    for found in said:
        assert isinstance(found, Missing)
        assert found.reason.rstrip(")").endswith(".")
    words = [found.reason for found in said if isinstance(found, Missing)]
    assert "names an image that is not there" in words[0]
    assert "in no format that can be read" in words[1]
    assert "leads out of the folder" in words[3]
    assert "nowhere: the run's data were here; put them back to see its images." in words[-1]


async def test_a_place_that_the_data_have_not_is_said_in_words(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other:
        def read_image(self, ref: ImageRef) -> bytes:
            raise KeyError(ref.locator)

    monkeypatch.setattr("mmbu_async.viewer.pictures.open_data", lambda *_: Other())
    found = await kit.get(tmp_path, FOLDER, "5")
    assert found == Missing(reason="the data have no such image any more; they are not those of the run.")


async def test_data_that_failed_to_open_are_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def fail(*_: object) -> Any:
        tried.append(1)
        raise DataError("not yet.")

    now = [100.0]
    kit = Kit(Pictures(clock=lambda: now[0]))
    monkeypatch.setattr("mmbu_async.viewer.pictures.open_data", fail)
    for _ in range(3):
        assert await kit.get(tmp_path, FOLDER, "x") == Missing(reason="not yet.")
    assert len(tried) == 1
    now[0] += 60
    data = folder_with(tmp_path / "data", x_png=image("png"))
    monkeypatch.setattr("mmbu_async.viewer.pictures.open_data", open_data)
    assert isinstance(await kit.get(data, FOLDER, "x.png"), PreparedImage)
    kit.pictures.close()


async def test_the_last_images_are_kept_within_bounds(kit: Kit, tmp_path: Path) -> None:
    data = folder_with(tmp_path / "data", x_png=image("png"))
    config = RunConfig(model="m", data=str(data))
    benchmark = cast(Benchmark, SimpleNamespace(data=FOLDER))
    size = len(image("png"))
    for number in range(100):
        await kit.pictures.get(("run", number, 0, False), ImageRef(locator="x.png"), config, benchmark)
    kept = [number for number in range(100) if kit.pictures.kept(("run", number, 0, False))]
    assert kept == list(range(100 - 10_000 // size, 100))


async def test_a_reader_who_is_gone_is_not_worked_for(kit: Kit, tmp_path: Path) -> None:
    """Jobs that nobody waits for any more are left out."""
    import threading

    from mmbu_async.viewer.workers import Workers

    workers, hold, done = Workers(1, "test"), threading.Event(), []
    first = asyncio.create_task(workers.run(hold.wait))
    second = asyncio.create_task(workers.run(lambda: done.append("second")))
    third = asyncio.create_task(workers.run(lambda: done.append("third")))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    hold.set()
    await third
    assert await first
    assert done == ["third"]
    with pytest.raises(ZeroDivisionError):
        await workers.run(lambda: 1 // 0)
    workers.close()
