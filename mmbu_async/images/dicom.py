"""DICOM -> an 8-bit picture, as a viewer shows it: rescale, window, inverted where white means little.

An extra: `pip install "mmbu-async[dicom]"`.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mmbu_async.errors import ImageError
from mmbu_async.images.decode import stretch
from mmbu_async.images.sniff import MAX_PIXELS, too_large


def decode_dicom(data: bytes) -> Image.Image:
    """The first frame in mode L or RGB. Raises ImageError and whatever pydicom raises on damaged files."""
    try:
        import pydicom
        from pydicom.pixels.processing import apply_color_lut, apply_modality_lut
        from pydicom.pixels.utils import pixel_array
    except ImportError:
        raise ImageError(
            'the image is DICOM, which needs an extra: run `pip install "mmbu-async[dicom]"`.'
        ) from None
    dataset = pydicom.dcmread(io.BytesIO(data))
    if "PixelData" not in dataset:
        raise ImageError("the DICOM file holds no picture (no Pixel Data element).")
    width, height = int(dataset.Columns), int(dataset.Rows)
    if width * height > MAX_PIXELS:
        raise too_large(width, height)
    pixels = np.asarray(pixel_array(dataset, index=0))
    kind = str(dataset.PhotometricInterpretation)
    if kind == "PALETTE COLOR":
        pixels = np.asarray(apply_color_lut(pixels, dataset))
        return Image.fromarray((pixels >> 8 if pixels.dtype.itemsize > 1 else pixels).astype(np.uint8))
    if pixels.ndim == 3:
        return Image.fromarray(pixels.astype(np.uint8))
    grey = _windowed(np.asarray(apply_modality_lut(pixels, dataset), dtype=np.float64), dataset)
    return Image.fromarray(255 - grey if kind == "MONOCHROME1" else grey)


def _windowed(values: NDArray[np.float64], dataset: Any) -> NDArray[np.uint8]:
    """0..255 by the file's first window (DICOM PS3.3 C.11.2.1.2), else by the image's own range."""
    centre, width = _first(dataset.get("WindowCenter")), _first(dataset.get("WindowWidth"))
    if centre is None or width is None or width < 1:
        return stretch(values)
    exact = dataset.get("VOILUTFunction", "LINEAR") == "LINEAR_EXACT"
    span = width if exact else max(width - 1, 1e-9)
    return np.rint(np.clip((values - (centre - width / 2)) / span, 0, 1) * 255).astype(np.uint8)


def _first(value: Any) -> float | None:
    """The first of one or more values."""
    if value is None:
        return None
    try:
        return float(value[0])
    except (TypeError, IndexError):
        return None if isinstance(value, list) else float(value)
