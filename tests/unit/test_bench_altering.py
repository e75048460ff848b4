"""Variants of an image: all different in pixels, all alike but for the lower right corner."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mmbu_async.bench.altering import variants
from mmbu_async.model import PreparedImage


def picture(mode: str, width: int, height: int) -> Image.Image:
    random = np.random.default_rng(4)
    x, y = np.meshgrid(np.linspace(0, 6, width), np.linspace(0, 4, height))
    waves = 120 + 60 * np.sin(x)[..., None] + 40 * np.cos(y[..., None] * np.array([1, 2, 3]))
    pixels = np.clip(waves + random.normal(0, 5, (height, width, 3)), 0, 255).astype(np.uint8)
    return Image.fromarray(pixels).convert(mode)


def prepared(image: Image.Image, form: str, **options: Any) -> PreparedImage:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    kind = {"PNG": "image/png", "JPEG": "image/jpeg", "WEBP": "image/webp", "GIF": "image/gif"}[form]
    return PreparedImage(data=buffer.getvalue(), media_type=kind, width=image.width, height=image.height)


def pixels(image: PreparedImage) -> np.ndarray:
    opened = Image.open(io.BytesIO(image.data))
    opened.load()
    assert Image.MIME[str(opened.format)] == image.media_type
    assert opened.size == (image.width, image.height)
    return np.asarray(opened.convert("RGB")).astype(int)


SIZES = [(640, 480), (641, 483), (16, 16), (50, 7), (1000, 17)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("mode", "form", "options"),
    [
        ("RGB", "JPEG", {"quality": 90}),
        ("RGB", "JPEG", {"quality": 75, "subsampling": 0}),
        ("RGB", "JPEG", {"quality": 80, "progressive": True, "optimize": True}),
        ("RGB", "JPEG", {"quality": 80, "subsampling": 1}),
        ("L", "JPEG", {"quality": 90}),
        ("RGB", "PNG", {}),
        ("L", "PNG", {}),
        ("P", "PNG", {}),
        ("RGBA", "PNG", {}),
        ("1", "PNG", {}),
        ("RGB", "WEBP", {"quality": 80}),
        ("RGB", "GIF", {}),
    ],
)
def test_variants(size: tuple[int, int], mode: str, form: str, options: dict[str, Any]) -> None:
    image = prepared(picture(mode, *size), form, **options)
    original = pixels(image)
    made = variants(image)
    found = [made.variant(number) for number in (1, 2, 3, 2)]
    assert len({one.data for one in found}) == 3, "another number gives another image, the same the same"
    seen = [pixels(one) for one in found]
    assert len({one.tobytes() for one in seen}) == 3
    # A block at most, and a little of what a decoder smooths over its edge.
    for one in seen:
        different = np.argwhere(np.abs(one - original).max(axis=2) > 24)
        assert len(different)
        rows, columns = different[:, 0], different[:, 1]
        assert rows.min() >= size[1] - 16 - 2
        assert columns.min() >= size[0] - 16 - 2


def test_a_variant_has_about_the_size_of_the_image() -> None:
    for form in ("JPEG", "PNG"):
        image = prepared(picture("RGB", 800, 600), form)
        assert len(variants(image).variant(1).data) == pytest.approx(len(image.data), rel=0.25)


def test_an_interlaced_png_is_altered_too() -> None:
    # Pillow writes none: 2 x 2 grey pixels, the passes written by hand.
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 1)
    passes = b"\x00\x0a" + b"\x00\x14" + b"\x00\x1e\x28"
    data = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(passes))
        + chunk(b"IEND", b"")
    )
    image = PreparedImage(data=data, media_type="image/png", width=2, height=2)
    assert len({variants(image).variant(number).data for number in range(5)}) == 5
