"""Kind and size of an image from its first bytes, without decoding it."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One image as it arrived in a request."""

    data: bytes
    sha256: str
    """Of the decoded bytes, hexadecimal."""
    media_type: str
    """What the bytes are, whatever the request says they are."""
    declared: str
    """What the request says they are."""
    width: int
    height: int
    base64_chars: int

    @property
    def tokens(self) -> int:
        """Anthropic's published rule: pixels / 750, after scaling the long edge down to 1,568."""
        scale = min(1.0, 1568 / max(self.width, self.height, 1))
        return -(-int(self.width * scale) * int(self.height * scale) // 750)


def picture(data: bytes, declared: str, base64_chars: int) -> Picture | None:
    """The image, or None when the bytes are no PNG, JPEG, GIF or WebP."""
    found = _sniff(data)
    if found is None:
        return None
    media_type, width, height = found
    return Picture(
        data=data,
        sha256=hashlib.sha256(data).hexdigest(),
        media_type=media_type,
        declared=declared,
        width=width,
        height=height,
        base64_chars=base64_chars,
    )


def _sniff(data: bytes) -> tuple[str, int, int] | None:
    size: tuple[int, int] | None = None
    media_type = ""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        media_type, size = "image/png", struct.unpack(">II", data[16:24])
    elif data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        media_type, size = "image/gif", struct.unpack("<HH", data[6:10])
    elif data[:3] == b"\xff\xd8\xff":
        media_type, size = "image/jpeg", _jpeg_size(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        media_type, size = "image/webp", _webp_size(data)
    if size is None or min(size) < 1:
        return None
    return media_type, size[0], size[1]


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 2
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4])
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    chunk = data[12:16]
    if chunk == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if chunk == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8 ":
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return None
