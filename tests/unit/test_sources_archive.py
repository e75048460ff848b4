"""Zip archives read in place: as several writers make them, damaged, and with an intent."""

from __future__ import annotations

import gc
import io
import os
import random
import struct
import tracemalloc
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mmbu_async.errors import DataError, ImageError
from mmbu_async.sources import archive as archive_module
from mmbu_async.sources.archive import PositionedFile, ZipArchive


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def packed(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def opened(path: Path) -> ZipArchive:
    return ZipArchive(path, path.name)


def spoilt(path: Path, old: bytes, new: bytes, count: int = -1) -> Path:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new, count))
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_come_untouched(tmp_path: Path, method: int) -> None:
    members = {
        "images/a.jpg": noise(1, 70_000),
        "images/ä é 图.png": b"text " * 5000,
        "deep/er/b.jpg": b"x",
        "empty.png": b"",
    }
    archive = opened(packed(tmp_path / "images.zip", members, method))
    assert len(archive) == len(members)
    for name, data in members.items():
        assert name in archive
        assert archive.problem(name) == ""
        assert archive.read(name) == data
    assert "images/gone.jpg" not in archive


def test_folders_are_no_members(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.mkdir("images")
        archive.writestr("images/a.png", b"x")
    found = opened(tmp_path / "a.zip")
    assert len(found) == 1
    assert "images/" not in found


def test_a_member_that_was_streamed_into_the_archive(tmp_path: Path) -> None:
    """Its local header knows neither size nor checksum; they follow the data."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise io.UnsupportedOperation

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", noise(2, 9000))
    assert pipe.getvalue()[14:26] == bytes(12), "sizes and checksum are in the local header"
    (tmp_path / "a.zip").write_bytes(pipe.getvalue())
    assert opened(tmp_path / "a.zip").read("a.png") == noise(2, 9000)


def test_an_archive_with_something_in_front_and_a_comment(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", {"a.png": b"abc" * 99})
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"PK made by hand"
    path.write_bytes(b"#!/bin/sh\n" + path.read_bytes())
    assert opened(path).read("a.png") == b"abc" * 99


def test_extra_fields_may_differ_between_header_and_directory(tmp_path: Path) -> None:
    """Info-ZIP writes longer ones into the local header: the directory does not tell where the data begin."""
    member = zipfile.ZipInfo("a.png")
    member.extra = struct.pack("<HHI", 0x7075, 4, 7)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(member, b"picture")
        archive.filelist[0].extra = b""
    assert opened(tmp_path / "a.zip").read("a.png") == b"picture"


def test_zip64_beyond_four_gigabytes(tmp_path: Path) -> None:
    """A file with a hole: the members' real offsets need more than 32 bits."""
    path = tmp_path / "large.zip"
    with path.open("wb") as file:
        file.truncate(5 * 2**30)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images/a.jpg", noise(3, 50_000))
        archive.writestr("images/b.jpg", noise(4, 50_000))
        assert archive.filelist[0].header_offset >= 5 * 2**30
    assert opened(path).read("images/b.jpg") == noise(4, 50_000)
    path.unlink()


def test_zip64_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zip64 fields for every size, as some writers always put them."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    path = packed(tmp_path / "a.zip", {f"{n}.png": noise(n, 5000) for n in range(3)})
    monkeypatch.undo()
    assert b"PK\x06\x06" in path.read_bytes(), "no zip64 end record was written"
    archive = opened(path)
    assert [archive.read(f"{n}.png") for n in range(3)] == [noise(n, 5000) for n in range(3)]


def test_many_threads_read_at_once(tmp_path: Path) -> None:
    members = {f"images/{n}.jpg": noise(n, 20_000 + n) for n in range(50)}
    archive = opened(packed(tmp_path / "images.zip", members))
    wanted = random.Random(5).choices(list(members), k=600)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(archive.read, wanted)) == [members[name] for name in wanted]


def test_a_system_without_reads_at_a_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has none."""
    members = {f"{n}.jpg": noise(n, 20_000) for n in range(20)}
    archive = opened(packed(tmp_path / "images.zip", members))
    monkeypatch.delattr(os, "pread")
    wanted = random.Random(6).choices(list(members), k=200)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(archive.read, wanted)) == [members[name] for name in wanted]


def test_the_file_is_closed_with_its_archive(tmp_path: Path) -> None:
    file = PositionedFile(packed(tmp_path / "a.zip", {"a": b"x"}))
    descriptor = file._descriptor
    os.fstat(descriptor)
    del file
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


# ---------------------------------------------------------------- damage


def test_a_spoilt_byte_is_seen_by_the_checksum(tmp_path: Path) -> None:
    path = packed(tmp_path / "images.zip", {"images/a.jpg": b"picture " * 40, "images/b.jpg": b"whole"}, 0)
    archive = opened(spoilt(path, b"picture picture", b"picture pixture", 1))
    with pytest.raises(ImageError) as caught:
        archive.read("images/a.jpg")
    assert str(caught.value) == (
        "images.zip, images/a.jpg: is damaged (its checksum is wrong); get the archive again."
    )
    assert archive.read("images/b.jpg") == b"whole"


def test_data_that_cannot_be_inflated(tmp_path: Path) -> None:
    path = packed(tmp_path / "images.zip", {"a.jpg": b"picture " * 400})
    compressor = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION, zlib.DEFLATED, -15)
    inside = compressor.compress(b"picture " * 400) + compressor.flush()
    with pytest.raises(ImageError, match=r"images.zip, a.jpg: is damaged \(it cannot be unpacked\)"):
        opened(spoilt(path, inside, b"\xff" * len(inside))).read("a.jpg")


def test_a_member_that_unpacks_to_more_than_it_says(tmp_path: Path) -> None:
    """A bomb: the directory says ten bytes, the data hold many megabytes."""
    bomb = b"\0" * 2**25
    path = packed(tmp_path / "a.zip", {"a.jpg": bomb})
    size = len(bomb).to_bytes(4, "little")
    archive = opened(spoilt(path, size, (10).to_bytes(4, "little")))
    del bomb
    tracemalloc.start()
    try:
        with pytest.raises(ImageError, match="is damaged"):
            archive.read("a.jpg")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20


def test_a_member_too_large_to_be_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = opened(packed(tmp_path / "a.zip", {"a.jpg": b"\0" * 2000}))
    monkeypatch.setattr(archive_module, "LARGEST", 1000)
    assert "of 2,000 bytes, which no image should have" in archive.problem("a.jpg")
    with pytest.raises(ImageError, match=r"\(a\.jpg\)"):
        archive.read("a.jpg")


def test_an_archive_that_is_cut_off_later(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", {"a.jpg": noise(1, 5000), "b.jpg": noise(2, 5000)}, 0)
    archive = opened(path)
    os.truncate(path, 7000)
    with pytest.raises(ImageError, match=r"a.zip, b.jpg: is damaged \(it is cut off\)"):
        archive.read("b.jpg")
    os.truncate(path, 10)
    with pytest.raises(ImageError, match=r"a.zip, a.jpg: is damaged \(it is cut off\)"):
        archive.read("a.jpg")


def test_a_directory_that_points_elsewhere(tmp_path: Path) -> None:
    archive = opened(spoilt(packed(tmp_path / "a.zip", {"a.jpg": b"x"}), b"PK\x03\x04", b"KP\x03\x04"))
    with pytest.raises(ImageError, match=r"is damaged \(the directory does not point to it\)"):
        archive.read("a.jpg")


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = opened(packed(tmp_path / "a.zip", {"a.jpg": b"x"}))

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(ImageError, match=r"a.zip, a.jpg: cannot be read \(Input/output error\)"):
        archive.read("a.jpg")


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_archive_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "images.zip").write_bytes(content)
    with pytest.raises(DataError, match=r"images.zip: is no zip archive that can be read \(.*get it again"):
        opened(tmp_path / "images.zip")


def test_a_download_that_was_cut_off_is_named(tmp_path: Path) -> None:
    path = packed(tmp_path / "images.zip", {"a.jpg": noise(1, 5000)})
    os.truncate(path, 4000)
    with pytest.raises(DataError, match="is no zip archive that can be read"):
        opened(path)


def test_an_archive_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        opened(tmp_path / "gone.zip")


# ---------------------------------------------------------------- what is refused


def test_encrypted_members_are_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", {"a.jpg": b"x"})
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\x01\x02")
    content[directory + 8] |= 1
    path.write_bytes(content)
    archive = opened(path)
    assert archive.problem("a.jpg").startswith("names an image that a.zip holds encrypted; pack the archive")
    with pytest.raises(ImageError, match=r"encrypted; .* \(a.jpg\)\."):
        archive.read("a.jpg")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packing_is_refused(tmp_path: Path, method: int) -> None:
    archive = opened(packed(tmp_path / "a.zip", {"a.jpg": b"x" * 100}, method))
    assert f"by a method that is not read here ({method})" in archive.problem("a.jpg")


@pytest.mark.parametrize(
    "name",
    [
        "../out.jpg",
        "images/../../out.jpg",
        "/etc/out.jpg",
        "C:/out.jpg",
        "..\\out.jpg",
        "images//etc/out.jpg",
    ],
)
def test_members_whose_names_lead_out_cannot_be_asked_for(tmp_path: Path, name: str) -> None:
    archive = opened(packed(tmp_path / "a.zip", {name: b"x", "in.jpg": b"y"}))
    assert (len(archive), archive.unsafe) == (1, 1)
    assert name not in archive
    assert archive.read("in.jpg") == b"y"


def test_names_with_backslashes_are_paths(tmp_path: Path) -> None:
    """As some Windows programs write them."""
    archive = opened(packed(tmp_path / "a.zip", {"images\\a.jpg": b"x"}))
    assert archive.read("images/a.jpg") == b"x"
