"""One image: pass it through, or decode it, scale it and encode it anew."""

from __future__ import annotations

import hashlib
import io
import math
from dataclasses import dataclass

from PIL import Image

from mmbu_async.errors import ImageError
from mmbu_async.images.decode import Decoded, decode
from mmbu_async.images.limits import ImageLimits
from mmbu_async.images.sniff import Header, sniff
from mmbu_async.model import PreparedImage

_JPEG_QUALITY = 95
_MARGIN = 0.97
"""By how much more than the estimate an image shrinks that is too many bytes, so that one try mostly does."""
_PNG_LEVEL = 4
"""zlib level: under half the time of the usual 6 for a few per cent more bytes."""
_JPEG_TO_PNG = 3
"""A photograph is at least this many times larger as PNG than as the JPEG it was."""


def base64_size(size: int) -> int:
    """Bytes after base64."""
    return (size + 2) // 3 * 4


def prepare(data: bytes, limits: ImageLimits) -> PreparedImage:
    """The image as it is sent. Untouched where the endpoint accepts it. Thread-safe; pure.

    Raises ImageError where the bytes are no image, are damaged or claim an absurd size.
    """
    header = sniff(data)
    digest = hashlib.sha256(data).hexdigest()
    acceptable = not header.why and header.media_type in limits.accepted
    too_many_bytes = base64_size(len(data)) > limits.max_bytes_base64
    if acceptable and not too_many_bytes and _factor(header.width, header.height, limits) == 1.0:
        return PreparedImage(
            data=data,
            media_type=header.media_type,
            width=header.width,
            height=header.height,
            original_sha256=digest,
        )
    # What is converted anyhow has another size afterwards; only bytes that would go through are too many.
    shrink = math.sqrt(limits.max_bytes_base64 / base64_size(len(data))) * _MARGIN
    factor = shrink if acceptable and too_many_bytes else 1.0
    picture = decode(data, header, _draft_size(header, limits, factor))
    sent = _fit(picture, header, limits, factor, len(data))
    notes = [*picture.notes]
    if header.media_type not in limits.accepted and not header.why:
        notes.insert(0, header.format)
    if sent.scale != 1.0:
        notes.append("scaled")
    if sent.media_type == "image/jpeg":
        notes.append("as jpeg")
    return PreparedImage(
        data=sent.data,
        media_type=sent.media_type,
        width=sent.width,
        height=sent.height,
        scale=sent.scale,
        original_sha256=digest,
        converted=", ".join(notes),
    )


def verify(data: bytes) -> None:
    """Decode the whole image, which finds damage that `prepare` lets through. ImageError where it fails."""
    decode(data, sniff(data), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    data: bytes
    media_type: str
    width: int
    height: int
    scale: float


def _factor(width: int, height: int, limits: ImageLimits) -> float:
    """By how much an image of this size must shrink for the limits in pixels; 1: not at all."""
    edge = limits.max_edge / max(width, height)
    area = math.sqrt(limits.max_pixels / (width * height))
    return min(1.0, edge, area)


def _draft_size(header: Header, limits: ImageLimits, factor: float) -> tuple[int, int] | None:
    """The size below which a JPEG's decoder may stop, where the image is to shrink."""
    if header.format != "jpeg":
        return None
    factor *= _factor(header.width, header.height, limits)
    return None if factor == 1.0 else (int(header.width * factor), int(header.height * factor))


def _fit(picture: Decoded, header: Header, limits: ImageLimits, factor: float, source_bytes: int) -> _Sent:
    """Scale and encode until the limits hold: lossless first, JPEG where that does not fit, then smaller."""
    width, height = picture.width, picture.height
    factor = min(factor, _factor(width, height, limits))
    # Trying PNG costs a second for a photograph of a telephone, to learn what is known before.
    hopeless = header.format == "jpeg" and base64_size(source_bytes) * _JPEG_TO_PNG > limits.max_bytes_base64
    formats = ["png", "jpeg"] if "image/png" in limits.accepted else ["jpeg"]
    if "image/jpeg" not in limits.accepted:
        formats = ["png"]
    elif hopeless and factor > 0.5:
        formats = ["jpeg"]
    while True:
        size = (max(1, int(width * factor)), max(1, int(height * factor)))
        image = picture.image
        if image.size != size:
            image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
        for name in formats:
            data = _encode(image, name, picture.icc_profile)
            if base64_size(len(data)) <= limits.max_bytes_base64:
                longer = max(size) / max(width, height)
                return _Sent(
                    data=data, media_type=f"image/{name}", width=size[0], height=size[1], scale=longer
                )
        if size == (1, 1):
            raise ImageError(
                f"the image does not fit {limits.max_bytes_base64} bytes however small it is made; "
                f"check max_bytes_base64 of the image limits [{limits.name}]."
            )
        factor *= min(_MARGIN, math.sqrt(limits.max_bytes_base64 / base64_size(len(data))) * _MARGIN)


def _encode(image: Image.Image, name: str, icc_profile: bytes | None) -> bytes:
    buffer = io.BytesIO()
    if name == "png":
        image.save(buffer, "PNG", compress_level=_PNG_LEVEL, icc_profile=icc_profile)
    else:
        # Full colour resolution: stains and thin structures are what these pictures are about.
        image.save(buffer, "JPEG", quality=_JPEG_QUALITY, subsampling=0, icc_profile=icc_profile)
    return buffer.getvalue()
