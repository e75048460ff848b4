from __future__ import annotations

import csv
import hashlib
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from mmbu_async import tasks
from mmbu_async.errors import ConfigError, DataError, ImageError
from mmbu_async.model import DataSpec, ImageRef
from mmbu_async.sources import ImageFolder, RawRow, open_data, samples
from mmbu_async.sources.folder import LocalFolder
from mmbu_async.tasks.mmbu_public import MmbuPublic

MINI = Path(__file__).parents[1] / "data" / "mini_mmbu"


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    lines = [json.dumps(row) for row in rows]
    (folder / "metadata.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def read(folder: Path) -> list[RawRow]:
    return list(ImageFolder(folder).rows())


def test_the_mini_split_is_read_in_order() -> None:
    source = open_data(str(MINI), MmbuPublic.data)
    rows = list(source.rows())
    assert len(rows) == 33
    assert [row.position for row in rows] == list(range(33))
    assert rows[0].images == (ImageRef(locator="images/nuclei_00.png"),)
    assert rows[3].where == "metadata.jsonl, line 4"
    assert "metadata.tsv beside it is not read" in source.description
    assert source.stamp == hashlib.sha256((MINI / "metadata.jsonl").read_bytes()).hexdigest()


def test_image_bytes_come_untouched() -> None:
    source = ImageFolder(MINI)
    for row in source.rows():
        (ref,) = row.images
        assert source.image_problem(ref) == ""
        assert source.read_image(ref) == (MINI / ref.locator).read_bytes()


def test_jsonl_and_tsv_give_the_same_samples(tmp_path: Path) -> None:
    benchmark = tasks.load("mmbu-public")
    shutil.copytree(MINI, tmp_path / "tsv")
    (tmp_path / "tsv" / "metadata.jsonl").unlink()
    tsv = open_data(str(tmp_path / "tsv"), MmbuPublic.data)
    assert tsv.description.endswith("metadata.tsv")
    assert list(samples(tsv, benchmark)) == list(samples(ImageFolder(MINI), benchmark))


# ---------------------------------------------------------------- what `data` may say


def test_data_must_be_a_folder_or_a_hub_id(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is neither an existing folder nor a hub id"):
        open_data(str(tmp_path / "gone" / "deep"), MmbuPublic.data)
    (tmp_path / "metadata.jsonl").touch()
    with pytest.raises(ConfigError, match="is a file; give the folder"):
        open_data(str(tmp_path / "metadata.jsonl"), MmbuPublic.data)


def test_a_folder_without_metadata_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has neither metadata.jsonl nor metadata.tsv"):
        open_data(str(tmp_path), MmbuPublic.data)


def test_a_table_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [])

    def refuse(self: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match="cannot be read"):
        ImageFolder(tmp_path)


# ---------------------------------------------------------------- tables


def test_a_byte_order_mark_and_empty_lines_are_no_rows(tmp_path: Path) -> None:
    text = '\ufeff{"file_name": "a"}\r\n\r\n{"file_name": "b"}'
    (tmp_path / "metadata.jsonl").write_bytes(text.encode())
    assert [(row.position, row.where, row.images[0].locator) for row in read(tmp_path)] == [
        (0, "metadata.jsonl, line 1", "a"),
        (1, "metadata.jsonl, line 3", "b"),
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"file_name": "a",}', r"metadata.jsonl, line 2: is no valid JSON .*character"),
        (b'["a"]', "metadata.jsonl, line 2: is no JSON object"),
        (b'{"file_name": "\xff"}', "metadata.jsonl, line 2: is no UTF-8 text"),
        (b"[" * 100_000, "metadata.jsonl, line 2: cannot be read as JSON"),
        (b'{"n": ' + b"1" * 5000 + b"}", "metadata.jsonl, line 2: cannot be read as JSON"),
        (b'{"question": "x"}', "metadata.jsonl, line 2: there is no column 'file_name'"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: bytes, told: str) -> None:
    (tmp_path / "metadata.jsonl").write_bytes(b'{"file_name": "a"}\n' + line + b"\n")
    rows = ImageFolder(tmp_path).rows()
    assert next(rows).position == 0
    with pytest.raises(DataError, match=told):
        next(rows)


def test_tsv_fields_hold_tabs_line_ends_quotes_and_much_text(tmp_path: Path) -> None:
    values = ["a.png", 'tab\there, "quoted"\r\nand a second line', "x" * 200_000]
    with (tmp_path / "metadata.tsv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerows([["file_name", "question", "long"], values, [], ["b.png", "", '5" lesion']])
    rows = read(tmp_path)
    assert list(rows[0].fields.values()) == values
    assert (rows[0].where, rows[1].where) == ("metadata.tsv, line 2", "metadata.tsv, line 5")
    assert rows[1].fields == {"file_name": "b.png", "question": "", "long": '5" lesion'}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "metadata.tsv: has no header line"),
        ("a\tb\ta\n", "metadata.tsv, line 1: names column 'a' twice"),
        ("file_name\tb\nx\ty\nx\n", "metadata.tsv, line 3: has 1 columns where the header names 2"),
        ("file_name\tb\nx\ty\nx\ty\tz\n", "metadata.tsv, line 3: has 3 columns where the header names 2"),
        ('file_name\tb\nx\t"y" z\n', "metadata.tsv, line 2: is not quoted as it must be"),
        ('file_name\tb\nx\t"y\nnever closed\n', "metadata.tsv, line 2: is not quoted as it must be"),
        ("other\nx\n", "metadata.tsv, line 2: there is no column 'file_name'"),
    ],
)
def test_a_broken_tsv_is_named(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "metadata.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        read(tmp_path)


def test_a_table_that_goes_away_is_named(tmp_path: Path) -> None:
    source = ImageFolder(write(tmp_path, [{"file_name": "a"}]))
    (tmp_path / "metadata.jsonl").unlink()
    with pytest.raises(DataError, match="cannot be read"):
        list(source.rows())


# ---------------------------------------------------------------- images stay in the folder


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (None, "column 'file_name' is empty"),
        (" ", "column 'file_name' is empty"),
        ("gone.png", "names an image that is not there"),
        ("images", "names an image that is not there"),
        ("../outside.png", "leads out of the folder"),
        ("images/../../outside.png", "leads out of the folder"),
        ("images/../link.png", "leads out of the folder"),
        ("../data-beside/a.png", "leads out of the folder"),
        ("/etc/hostname", "leads out of the folder"),
        ("C:\\x.png", "names an image that is not there"),
        ("a\0b", "is no path that this system can follow"),
        ("link.png", "leads out of the folder"),
        ("way/outside.png", "leads out of the folder"),
        ("loop.png", "is (no path that this system can follow|.*not there)"),
        ("x" * 5000, "is no path that this system can follow"),
    ],
)
def test_a_name_that_leads_nowhere_or_out_is_told(tmp_path: Path, name: str | None, told: str) -> None:
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    (tmp_path / "outside.png").write_bytes(b"secret")
    (tmp_path / "data-beside").mkdir()
    (tmp_path / "data-beside" / "a.png").write_bytes(b"secret")
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    (folder / "way").symlink_to(tmp_path)
    (folder / "loop.png").symlink_to(folder / "loop.png")
    source = ImageFolder(write(folder, [{"file_name": name}]))
    (raw,) = source.rows()
    assert source.image_problem(raw.images[0])
    with pytest.raises(ImageError, match=told):
        source.read_image(raw.images[0])


def test_a_snapshot_of_the_hub_s_cache_is_a_folder_like_any_other(tmp_path: Path) -> None:
    """There each file is a link to `blobs`, beside the folder of snapshots; nothing else is let in."""
    snapshot = tmp_path / "datasets--a--b" / "snapshots" / "0123abcd"
    snapshot.mkdir(parents=True)
    blobs = tmp_path / "datasets--a--b" / "blobs"
    blobs.mkdir()
    (blobs / "feed").write_bytes(b"x")
    (tmp_path / "datasets--a--b" / "secret").write_bytes(b"y")
    (snapshot / "a.png").symlink_to("../../blobs/feed")
    (snapshot / "b.png").symlink_to("../../secret")
    source = ImageFolder(write(snapshot, []))
    assert source.read_image(ImageRef(locator="a.png")) == b"x"
    assert "leads out" in source.image_problem(ImageRef(locator="b.png"))


def test_links_inside_the_folder_are_followed(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    (tmp_path / "b.png").symlink_to("a.png")
    source = ImageFolder(write(tmp_path, []))
    assert source.read_image(ImageRef(locator="b.png")) == b"x"


def test_an_image_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    source = ImageFolder(write(tmp_path, []))

    def refuse(path: str, mode: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    # Permissions themselves do not hold back root, as which a container runs its tests.
    monkeypatch.setattr("mmbu_async.sources.names.open", refuse, raising=False)
    with pytest.raises(ImageError, match=r"a.png: cannot be read \(Permission denied\)"):
        source.read_image(ImageRef(locator="a.png"))


def test_a_table_that_is_a_link_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    secret = write(tmp_path, [{"file_name": "a.png"}]) / "metadata.jsonl"
    (folder / "metadata.jsonl").symlink_to(secret)
    with pytest.raises(
        DataError, match=r"metadata.jsonl: is a link that leads out of the folder; put the file"
    ):
        ImageFolder(folder)
    (folder / "metadata.jsonl").unlink()
    (folder / "there.txt").write_bytes(secret.read_bytes())
    (folder / "metadata.jsonl").symlink_to("there.txt")
    assert len(list(ImageFolder(folder).rows())) == 1, "links inside of it are followed"


def test_an_archive_that_is_a_link_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    with zipfile.ZipFile(tmp_path / "private.zip", "w") as archive:
        archive.writestr("a.png", b"secret")
    (folder / "images.zip").symlink_to(tmp_path / "private.zip")
    spec = DataSpec(hub="a/b", archives=("*.zip",))
    with pytest.raises(DataError, match=r"images.zip: is a link that leads out of the folder"):
        LocalFolder(write(folder, [{"file_name": "a.png"}]), spec)
