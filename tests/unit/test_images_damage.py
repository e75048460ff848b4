"""Bytes that are no image, or no longer one: always an ImageError of one sentence, never anything else."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from mmbu_async.errors import ImageError
from mmbu_async.images import ImageLimits, prepare, verify
from mmbu_async.images.sniff import sniff

ANY = ImageLimits(name="any")
SMALL = ImageLimits(name="small", max_edge=20, max_bytes_base64=2_000)


def picture(width: int = 40, height: int = 30) -> Image.Image:
    return Image.fromarray(np.random.default_rng(3).integers(0, 255, (height, width, 3), dtype=np.uint8))


def encode(image: Image.Image, name: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()


def rotated() -> Image.Exif:
    exif = Image.Exif()
    exif[274] = 6
    return exif


SEEDS = {
    "png": encode(picture(), "PNG"),
    "palette": encode(picture().convert("P"), "PNG", transparency=3),
    "16-bit": encode(Image.fromarray(np.arange(600, dtype=np.uint16).reshape(20, 30)), "PNG"),
    "apng": encode(picture(), "PNG", save_all=True, append_images=[picture(40, 30).rotate(90)]),
    "jpeg": encode(picture(), "JPEG", quality=60),
    "progressive": encode(picture(), "JPEG", progressive=True),
    "exif": encode(picture(), "JPEG", exif=rotated()),
    "cmyk": encode(picture().convert("CMYK"), "JPEG"),
    "gif": encode(picture().convert("P"), "GIF"),
    "animated": encode(picture(), "GIF", save_all=True, append_images=[picture().rotate(180)]),
    "webp": encode(picture(), "WEBP"),
    "webp exif": encode(picture(), "WEBP", exif=rotated()),
    "tiff": encode(picture(), "TIFF"),
    "tiff lzw": encode(picture(), "TIFF", compression="tiff_lzw"),
    "bmp": encode(picture(), "BMP"),
    "jpeg2000": encode(picture(), "JPEG2000"),
}


def attempt(data: bytes) -> None:
    for call in (lambda: prepare(data, ANY), lambda: prepare(data, SMALL), lambda: verify(data)):
        try:
            call()
        except ImageError as error:
            message = str(error)
            assert "\n" not in message
            assert len(message) < 400


@pytest.mark.parametrize("name", list(SEEDS))
def test_the_seeds_are_whole(name: str) -> None:
    prepare(SEEDS[name], ANY)
    prepare(SEEDS[name], SMALL)
    verify(SEEDS[name])


@pytest.mark.parametrize("name", list(SEEDS))
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9])
def test_a_cut_image_is_an_error(name: str, share: float) -> None:
    data = SEEDS[name][: int(len(SEEDS[name]) * share)]
    if name in ("apng", "animated") and share >= 0.6:
        pytest.skip("its first picture is whole")
    with pytest.raises(ImageError, match=r"^the image .*(truncated|damaged|no format)"):
        prepare(data, ANY)


@pytest.mark.parametrize("name", ["png", "jpeg", "progressive", "gif", "webp"])
def test_a_cut_of_one_byte_more_than_the_end_mark(name: str) -> None:
    with pytest.raises(ImageError, match="truncated"):
        prepare(SEEDS[name][:-40], ANY)


def test_a_jpeg_filled_up_with_zeros_is_an_error() -> None:
    """What an interrupted copy leaves; a decoder would show it half grey without a word."""
    half = SEEDS["jpeg"][: len(SEEDS["jpeg"]) // 2]
    with pytest.raises(ImageError, match="truncated"):
        prepare(half + bytes(len(half)), ANY)


def test_an_end_mark_in_a_thumbnail_is_not_the_end() -> None:
    thumbnail = b"Exif\x00\x00" + b"\x00" * 20 + SEEDS["jpeg"]
    segment = b"\xff\xe1" + struct.pack(">H", len(thumbnail) + 2) + thumbnail
    whole = SEEDS["jpeg"][:2] + segment + SEEDS["jpeg"][2:]
    assert prepare(whole, ANY).data == whole
    with pytest.raises(ImageError, match="truncated"):
        prepare(whole[: len(whole) - len(SEEDS["jpeg"]) // 2], ANY)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"hello, I am no image at all", "no format that can be read"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'></svg>", "SVG"),
        (b'\xef\xbb\xbf  <?xml version="1.0"?><svg/>', "SVG"),
        (b"<!DOCTYPE html><html>404</html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git lfs pull"),
        (b"%PDF-1.7 ...", "no format that can be read"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", "no format that can be read"),
        (b"\x89PNG\r\n\x1a\n", "truncated"),
        (b"\xff\xd8\xff", "truncated"),
        (b"\xff\xd8\xff\xd9", "truncated"),
        (b"GIF89a", "truncated"),
        (b"RIFF\x00\x00\x00\x00WEBP", "truncated|damaged"),
    ],
)
def test_what_often_lies_where_an_image_should_be(data: bytes, words: str) -> None:
    with pytest.raises(ImageError, match=words):
        prepare(data, ANY)
    with pytest.raises(ImageError, match=words):
        verify(data)


def flip(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]


def test_a_flipped_bit_in_a_png_header_is_found_without_decoding() -> None:
    for position in (18, 22, 30):
        with pytest.raises(ImageError, match="damaged"):
            sniff(flip(SEEDS["png"], position))
    palette = SEEDS["palette"]
    with pytest.raises(ImageError, match="PLTE"):
        sniff(flip(palette, palette.index(b"PLTE") + 10))


def test_damage_within_the_picture_is_found_by_verify() -> None:
    """`prepare` decodes nothing that it passes through; a dry run does."""
    damaged = flip(SEEDS["png"], len(SEEDS["png"]) // 2)
    assert prepare(damaged, ANY).data == damaged
    with pytest.raises(ImageError, match="damaged"):
        verify(damaged)


def test_a_png_without_picture_or_palette() -> None:
    png = SEEDS["palette"]
    picture, end = png.index(b"IDAT") - 4, png.index(b"IEND") - 4
    with pytest.raises(ImageError, match="holds no picture"):
        sniff(png[:picture] + png[end:])
    with pytest.raises(ImageError, match="palette is missing"):
        sniff(png[:33] + png[picture:])
    with pytest.raises(ImageError, match="before the end mark"):
        sniff(png[:end])


def test_too_many_chunks() -> None:
    head, tail = SEEDS["png"][:33], SEEDS["png"][33:]
    data = head + b"\x00\x00\x00\x00tEXt\x00\x00\x00\x00" * 100_001 + tail
    with pytest.raises(ImageError, match="PNG chunks"):
        prepare(data, ANY)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    attempt(data)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.sampled_from(list(SEEDS)),
    edits=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)), max_size=6),
    early=st.booleans(),
    cut=st.floats(0, 1),
)
def test_mutated_bytes(seed: str, edits: list[tuple[float, bytes]], early: bool, cut: float) -> None:
    data = bytearray(SEEDS[seed])
    for where, what in edits:
        span = min(200, len(data)) if early else len(data)
        position = int(where * (span - 1))
        data[position : position + len(what)] = what
    if cut < 0.5:
        del data[int(len(data) * cut * 2) :]
    attempt(bytes(data))


@settings(max_examples=100, deadline=None)
@given(
    kind=st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"II*\x00", b"BM"]),
    rest=st.binary(),
)
def test_right_beginnings_with_random_ends(kind: bytes, rest: bytes) -> None:
    attempt(kind + rest)
