"""Segmentation: how much a predicted mask and the true one overlap, Dice and IoU.

Dice is 2·|A∩B| / (|A|+|B|), IoU is |A∩B| / |A∪B|, counted in pixels. Where both masks are empty both are 1:
to find nothing where nothing is, is right. Where one is empty both are 0. Masks of different sizes are an
error: which one to scale is not for a scorer to guess.

A mask is kept as its runs of foreground, some hundred numbers instead of a million pixels, and many rows are
measured at once: the overlap of a run with the other mask is a difference of two values of that mask's
running area. With several classes a row's figures are means over the classes that either image shows; where
neither shows any, 1.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from mmbu_async.model import Json
from mmbu_async.scoring.rle import Ints, runs

Floats = npt.NDArray[np.float64]

MOST_PNG_PIXELS = 80_000_000
"""A PNG of a few kilobytes can unpack to any size; Pillow itself warns from 89 million on."""
CHUNK_ROWS = 128
"""Rows measured at once: with some hundred runs a row their arrays stay in cache, which doubles the speed."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SIGNATURE_BASE64 = "iVBORw0KGgo"
_DATA_URL = "data:image/png;base64,"
_MOST_OBJECTS = 64
"""JSON objects of a text that are tried as a mask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """Runs of foreground, down the columns: they ascend, do not overlap, and none is empty."""

    height: int
    width: int
    starts: Ints
    ends: Ints

    @classmethod
    def from_rle(cls, rle: Json) -> Mask:
        """From COCO's run lengths, plain or compressed. ValueError says what is wrong with them."""
        height, width, starts, ends = runs(rle)
        return cls(height=height, width=width, starts=starts, ends=ends)

    @classmethod
    def from_array(cls, pixels: npt.NDArray[np.generic]) -> Mask:
        """From an image of rows and columns; all that is not 0 is foreground."""
        if pixels.ndim != 2 or not pixels.size:
            raise ValueError(f"a mask is an image of rows and columns, not of shape {pixels.shape}")
        inside = np.zeros(pixels.size + 2, dtype=np.int8)
        inside[1:-1] = (pixels != 0).ravel(order="F")
        edges = np.flatnonzero(np.diff(inside)).astype(np.int64)
        height, width = pixels.shape
        return cls(height=height, width=width, starts=edges[::2], ends=edges[1::2])

    @classmethod
    def from_png(cls, data: bytes) -> Mask:
        """From a PNG image; all that is not 0 (of a palette: not its first entry) is foreground."""
        return cls.from_array(png_labels(data))

    @property
    def area(self) -> int:
        """Pixels of foreground."""
        return int((self.ends - self.starts).sum())

    @property
    def pixels(self) -> npt.NDArray[np.bool_]:
        """The image, rows and columns."""
        steps = np.zeros(self.height * self.width + 1, dtype=np.int8)
        np.add.at(steps, self.starts, 1)
        np.add.at(steps, self.ends, -1)
        return np.cumsum(steps[:-1], dtype=np.int8).astype(np.bool_).reshape(self.width, self.height).T


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlaps:
    """One entry a row, or a row and class. Areas are pixels."""

    shared: Ints
    predicted: Ints
    true: Ints

    @property
    def dice(self) -> Floats:
        return _share(2 * self.shared, self.predicted + self.true)

    @property
    def iou(self) -> Floats:
        return _share(self.shared, self.predicted + self.true - self.shared)

    @property
    def mean_dice(self) -> Floats:
        """Over the last axis, the classes."""
        return self._mean(self.dice)

    @property
    def mean_iou(self) -> Floats:
        """Over the last axis, the classes."""
        return self._mean(self.iou)

    def _mean(self, values: Floats) -> Floats:
        shown = self.predicted + self.true > 0
        return _share(np.where(shown, values, 0.0).sum(axis=-1), shown.sum(axis=-1))


def overlaps(predicted: Sequence[Mask], truth: Sequence[Mask]) -> Overlaps:
    """The overlap of each row's two masks. ValueError names the first row whose sizes differ."""
    for row, (one, other) in enumerate(zip(predicted, truth, strict=True)):
        if (one.height, one.width) != (other.height, other.width):
            raise ValueError(
                f"row {row}: the predicted mask is {one.height} x {one.width} pixels, the true one "
                f"{other.height} x {other.width}"
            )
    chunks = [
        _chunk(predicted[first : first + CHUNK_ROWS], truth[first : first + CHUNK_ROWS])
        for first in range(0, len(truth), CHUNK_ROWS)
    ]
    return Overlaps(
        shared=np.concatenate([_NOTHING, *(chunk.shared for chunk in chunks)]),
        predicted=np.concatenate([_NOTHING, *(chunk.predicted for chunk in chunks)]),
        true=np.concatenate([_NOTHING, *(chunk.true for chunk in chunks)]),
    )


def class_overlaps(
    predicted: npt.NDArray[np.integer],
    true: npt.NDArray[np.integer],
    classes: Sequence[int],
    *,
    ignore: int | None = None,
) -> Overlaps:
    """The overlap of each class between two images of labels.

    Pixels whose true label is `ignore` do not count. Other labels than these classes are wrong wherever they
    are predicted.
    """
    if predicted.shape != true.shape:
        raise ValueError(f"the predicted labels have the shape {predicted.shape}, the true ones {true.shape}")
    if not classes or len(set(classes)) != len(classes) or ignore in classes:
        raise ValueError("there is a class, each is named once, and the label to ignore is none of them")
    counted = np.ones(true.shape, dtype=np.bool_) if ignore is None else true != ignore
    one, other = _places(predicted[counted], classes), _places(true[counted], classes)
    count = len(classes)

    def areas(places: Ints) -> Ints:
        return np.bincount(places, minlength=count + 1)[:count].astype(np.int64)

    return Overlaps(shared=areas(one[one == other]), predicted=areas(one), true=areas(other))


def png_labels(data: bytes) -> npt.NDArray[np.integer]:
    """The numbers in a PNG: grey values, or the entries of a palette. ValueError where there are none."""
    if not data.startswith(_SIGNATURE) or len(data) < 24:
        raise ValueError("the mask is no PNG image")
    width, height = struct.unpack(">II", data[16:24])
    if width * height > MOST_PNG_PIXELS:
        raise ValueError(f"the PNG mask has {height} x {width} pixels, more than {MOST_PNG_PIXELS:,}")
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            values = np.asarray(image)
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error) as error:
        raise ValueError(f"the PNG mask is damaged ({error})") from error
    if values.ndim == 3:
        colours = values[..., :3] if values.shape[2] > 2 else values[..., :1]
        opaque = values.shape[2] == 3 or bool((values[..., -1] == 255).all())
        if not opaque or (colours != colours[..., :1]).any():
            raise ValueError(
                "the PNG mask has colours or is see-through; labels are grey values or a palette"
            )
        values = colours[..., 0]
    return values.astype(np.int64)


def read_mask(text: str) -> Mask:
    """The mask in a committed answer: run lengths as JSON, or a PNG in base64. ValueError without one."""
    stripped = text.strip().removeprefix(_DATA_URL)
    if stripped.startswith(_SIGNATURE_BASE64):
        try:
            return Mask.from_png(base64.b64decode("".join(stripped.split()), validate=True))
        except binascii.Error as error:
            raise ValueError("the PNG mask is no base64, or was cut off") from error
    decoder, place = json.JSONDecoder(), -1
    for _ in range(_MOST_OBJECTS):
        place = text.find("{", place + 1)
        if place < 0:
            break
        try:
            found, _ = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            continue
        if "counts" in found:
            return Mask.from_rle(found)
    raise ValueError("there is no mask: neither run lengths as JSON nor a PNG in base64")


def _chunk(predicted: Sequence[Mask], truth: Sequence[Mask]) -> Overlaps:
    offsets = np.cumsum([0, *(mask.height * mask.width for mask in truth)], dtype=np.int64)
    left, right = _Runs.of(predicted, offsets), _Runs.of(truth, offsets)
    return Overlaps(
        shared=right.by_row(left.area_before(right.ends) - left.area_before(right.starts)),
        predicted=left.by_row(left.ends - left.starts),
        true=right.by_row(right.ends - right.starts),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """The runs of many masks, one mask's pixels after the other's."""

    starts: Ints
    ends: Ints
    areas: Ints
    """Pixels of foreground before each run, and of all."""
    rows: Ints
    """Where each mask's runs begin, and the number of all."""

    @classmethod
    def of(cls, masks: Sequence[Mask], offsets: Ints) -> _Runs:
        counts = np.array([mask.starts.size for mask in masks], dtype=np.int64)
        shift = np.repeat(offsets[:-1], counts)
        starts = np.concatenate([_NOTHING, *(mask.starts for mask in masks)]) + shift
        ends = np.concatenate([_NOTHING, *(mask.ends for mask in masks)]) + shift
        return cls(starts=starts, ends=ends, areas=_running(ends - starts), rows=_running(counts))

    def by_row(self, values: Ints) -> Ints:
        """Sums of one value a run."""
        total = _running(values)
        return total[self.rows[1:]] - total[self.rows[:-1]]

    def area_before(self, places: Ints) -> Ints:
        """Pixels of foreground before each place."""
        if not self.starts.size:
            return np.zeros_like(places)
        run = np.searchsorted(self.starts, places, side="right") - 1
        known = np.maximum(run, 0)
        inside = np.minimum(places, self.ends[known]) - self.starts[known]
        return np.where(run >= 0, self.areas[known] + inside, 0)


_NOTHING: Ints = np.empty(0, dtype=np.int64)


def _running(values: Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(values)))


def _places(labels: npt.NDArray[np.integer], classes: Sequence[int]) -> Ints:
    """Each label's place among the classes; their number for any other label."""
    order = np.argsort(classes)
    ascending = np.asarray(classes, dtype=np.int64)[order]
    near = np.minimum(np.searchsorted(ascending, labels), len(classes) - 1)
    return np.where(ascending[near] == labels, order[near], len(classes)).astype(np.int64)


def _share(part: npt.NDArray[np.generic], whole: Ints) -> Floats:
    """part / whole, 1 where there is nothing to share."""
    shares: Floats = np.ones(np.shape(whole), dtype=np.float64)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares
