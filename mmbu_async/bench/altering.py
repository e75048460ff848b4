"""One image in any number of variants that differ in a few pixels at the lower right corner.

A server that keeps what it made of an image (vLLM does, by its pixels) would flatter every request after the
first. Encoding a whole image anew for each request costs 10 to 40 ms, which would flatter nobody either: so
all but the last row of pixels is encoded once, and a variant costs a tenth of a millisecond.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any, Protocol

from PIL import Image, JpegImagePlugin

from mmbu_async.model import PreparedImage

ALTERED_BYTES = 8
"""Of a PNG's last row of pixels, at most."""
BLOCK = 16
"""Side of the square of a JPEG that is altered, in pixels, at most."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_RESTART = re.compile(rb"\xff[\xd0-\xd7]")


class Variants(Protocol):
    """The same image, again and again, and never twice the same."""

    def variant(self, number: int) -> PreparedImage:
        """Another number gives another image."""


def variants(image: PreparedImage) -> Variants:
    """For an image that can be decoded. What is neither PNG nor JPEG becomes PNG."""
    picture = Image.open(io.BytesIO(image.data))
    # -1: a sampling of colours that no encoder here writes; of grey there is none.
    known = picture.mode == "L" or (picture.mode == "RGB" and JpegImagePlugin.get_sampling(picture) >= 0)
    if image.media_type == "image/jpeg" and known:
        return _Jpeg(image, picture)
    if image.media_type != "image/png" or not _plain(image.data):
        buffer = io.BytesIO()
        picture.convert("L" if picture.mode in ("1", "L") else "RGB").save(buffer, "PNG")
        image = replace(image, data=buffer.getvalue(), media_type="image/png")
    return _Png(image)


class _Png:
    """All rows of pixels but the last are one stretch of compressed data, the last one another."""

    def __init__(self, image: PreparedImage) -> None:
        self._image = image
        header, lines = b"", []
        before: list[bytes] = []
        for kind, data in _chunks(image.data):
            if kind == b"IDAT":
                lines.append(data)
            elif kind != b"IEND" and not lines:
                header = data if kind == b"IHDR" else header
                before.append(_chunk(kind, data))
        raw = zlib.decompress(b"".join(lines))
        height = struct.unpack(">I", header[4:8])[0]
        line = len(raw) // height
        first, self._last = raw[:-line], raw[-line:]
        self._altered = min(ALTERED_BYTES, line - 1)
        self._sum = zlib.adler32(first)
        packer = zlib.compressobj(6)
        packed = packer.compress(first) + packer.flush(zlib.Z_FULL_FLUSH)
        self._head = _SIGNATURE + b"".join(before) + _chunk(b"IDAT", packed)

    def variant(self, number: int) -> PreparedImage:
        line = self._last[: -self._altered] + Random(number).randbytes(self._altered)
        packer = zlib.compressobj(1, zlib.DEFLATED, -15)
        packed = packer.compress(line) + packer.flush()
        end = struct.pack(">I", zlib.adler32(line, self._sum))
        return replace(self._image, data=self._head + _chunk(b"IDAT", packed + end) + _chunk(b"IEND", b""))


class _Jpeg:
    """With a restart marker after each row of blocks the last row stands for itself, and is what a picture of
    that row alone would be."""

    def __init__(self, image: PreparedImage, picture: Image.Image) -> None:
        self._image = image
        picture.load()
        options: dict[str, Any] = {"quality": "keep"}
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", restart_marker_rows=1, **options)
        self._options: dict[str, Any] = {
            "qtables": getattr(picture, "quantization", None),
            "subsampling": JpegImagePlugin.get_sampling(picture),
        }
        whole = buffer.getvalue()
        marks = [found.end() for found in _RESTART.finditer(whole, _scan(whole))]
        rows = len(marks) + 1
        # Rows of blocks are 8 or 16 pixels high, by the sampling of colours.
        high = next(size for size in (8, 16) if -(-picture.height // size) == rows)
        self._head = whole[: marks[-1]] if marks else whole[: _scan(whole)]
        self._strip = picture.crop((0, (rows - 1) * high, picture.width, picture.height))
        self._block = (min(BLOCK, picture.width), self._strip.height)

    def variant(self, number: int) -> PreparedImage:
        strip = self._strip.copy()
        wide, high = self._block
        noise = Random(number).randbytes(wide * high * len(strip.getbands()))
        strip.paste(Image.frombytes(strip.mode, self._block, noise), (strip.width - wide, 0))
        buffer = io.BytesIO()
        strip.save(buffer, "JPEG", **self._options)
        alone = buffer.getvalue()
        return replace(self._image, data=self._head + alone[_scan(alone) :])


def _plain(png: bytes) -> bool:
    """Rows of whole bytes from top to bottom, and bytes that are values: no interlacing, no palette."""
    _, _, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", png[16:29])
    return depth >= 8 and colour != 3 and not interlaced


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += 12 + length


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _scan(jpeg: bytes) -> int:
    """Where the first scan's own data begin."""
    at = 2
    while jpeg[at + 1] != 0xDA:
        at += 2 + struct.unpack(">H", jpeg[at + 2 : at + 4])[0]
    return at + 2 + int(struct.unpack(">H", jpeg[at + 2 : at + 4])[0])
