"""Image bytes -> an 8-bit grey or RGB picture as shown. The rules are written in the package's docstring."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from mmbu_async.errors import ImageError
from mmbu_async.images.sniff import MAX_PIXELS, Header, damaged, too_large, truncated

_FORMATS = ("BMP", "GIF", "ICO", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""What Pillow may try. Formats that start other programs (EPS) or read other files stay closed."""
_PHOTOMETRIC, _ORIENTATION = 262, 274
_WHITE_IS_ZERO = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A picture that only needs scaling and encoding."""

    image: Image.Image
    """Mode L or RGB; smaller than width x height where a JPEG was decoded at reduced size."""
    width: int
    height: int
    """Pixels of the original as shown."""
    notes: tuple[str, ...] = ()
    """What was done, for the record."""
    icc_profile: bytes | None = None


def decode(data: bytes, header: Header, draft: tuple[int, int] | None) -> Decoded:
    """Decode the first picture. `draft`: a JPEG may be decoded smaller, down to this size as stored.

    Raises ImageError, and nothing else, whatever the bytes are.
    """
    try:
        if header.format == "dicom":
            from mmbu_async.images.dicom import decode_dicom

            picture = decode_dicom(data)
            return Decoded(image=picture, width=picture.width, height=picture.height, notes=("dicom",))
        return _decode(data, header, draft)
    except ImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ImageError(
            f"the image claims more than the {MAX_PIXELS:,} pixels that are decoded "
            "(a decompression bomb, or a picture to be scaled down first)."
        ) from None
    except UnidentifiedImageError:
        raise ImageError(
            "the image is in no format that can be read (PNG, JPEG, WebP, GIF, TIFF, BMP, DICOM, a few more)."
        ) from None
    # Decoders meet hostile bytes with every error there is: struct.error, KeyError, SyntaxError, MemoryError.
    except Exception as error:
        if "truncated" in str(error).lower():
            raise truncated("its picture data end early") from error
        words = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise damaged(f"it cannot be decoded ({words[:200]})") from error


def _decode(data: bytes, header: Header, draft: tuple[int, int] | None) -> Decoded:
    with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
        stored = image.size
        if stored[0] * stored[1] > MAX_PIXELS:
            raise too_large(*stored)
        notes = [(image.format or "").lower()] if header.format in ("tiff", "bmp", "") else []
        if header.why and header.why not in (header.format, "other format"):
            notes.append(header.why)
        if draft is not None:
            image.draft(None, draft)
        turned = image.getexif().get(_ORIENTATION, 1) in (5, 6, 7, 8)
        image.load()
        shown = ImageOps.exif_transpose(image)
        icc_profile = image.info.get("icc_profile") if image.mode in ("RGB", "RGBA") else None
        white_is_zero = image.format == "TIFF" and image.getexif().get(_PHOTOMETRIC) == _WHITE_IS_ZERO
    if shown.mode.startswith(("I", "F")) and "16-bit" not in notes:
        notes.append("float" if shown.mode == "F" else "16-bit")
    width, height = shown.size
    if draft is not None:
        width, height = stored[::-1] if turned else stored
    picture = _to_eight_bits(shown, white_is_zero=white_is_zero)
    return Decoded(image=picture, width=width, height=height, notes=tuple(notes), icc_profile=icc_profile)


def _to_eight_bits(image: Image.Image, *, white_is_zero: bool) -> Image.Image:
    """Mode L or RGB from any mode."""
    if image.mode.startswith(("I", "F")):
        grey = stretch(np.asarray(image))
        return Image.fromarray(255 - grey if white_is_zero else grey)
    if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        picture = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")
    if image.mode in ("L", "RGB"):
        return image
    return image.convert("L" if image.mode == "1" else "RGB")


def stretch(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Grey values of any range to 0..255, linearly from their own minimum and maximum.

    Not-a-number becomes 0, infinities the ends; a picture of one value is black.
    """
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if not finite.size or finite.min() == finite.max():
        return np.zeros(values.shape, dtype=np.uint8)
    low, high = float(finite.min()), float(finite.max())
    if values.dtype.kind == "u" and values.dtype.itemsize == 2:
        # A table of all values there are: a tenth of the memory of the arithmetic below, and faster.
        table = np.clip((np.arange(65536) - low) * (255.0 / (high - low)), 0, 255)
        return np.take(np.rint(table).astype(np.uint8), values)
    scaled = (np.clip(values.astype(np.float64), low, high) - low) * (255.0 / (high - low))
    return np.nan_to_num(np.rint(scaled), nan=0.0).astype(np.uint8)
