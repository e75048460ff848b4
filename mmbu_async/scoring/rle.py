"""Run-length masks as COCO writes them, to runs of foreground.

`{"size": [height, width], "counts": …}`: pixels go down the columns, runs of background and foreground take
turns, background first. The counts are a list of numbers, or text: each number in groups of five bits, lowest
first, a character a group, from the fourth number on as the difference to the last but one before it.

ValueError says what is wrong with one that does not cover its image exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from mmbu_async.model import Json

Ints = npt.NDArray[np.int64]

MOST_PIXELS = 1 << 31
"""Larger images are an error of the file."""
_ZERO = 48
"""The character that stands for a group of five zero bits."""
_MORE, _SIGN, _BITS = 0x20, 0x10, 0x1F
_LONGEST_NUMBER = 7
"""Characters, 35 bits: enough for all pixels."""


def runs(rle: Json) -> tuple[int, int, Ints, Ints]:
    """Height, width, and where the runs of foreground start and end, in pixels down the columns."""
    if not isinstance(rle, Mapping) or "size" not in rle or "counts" not in rle:
        raise ValueError("a run-length mask is an object with 'size' and 'counts'")
    height, width = _size(rle["size"])
    counts = rle["counts"]
    if isinstance(counts, bytes):
        counts = counts.decode("latin-1")
    numbers = _from_text(counts) if isinstance(counts, str) else _from_list(counts)
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) <= MOST_PIXELS:
        raise ValueError("a run-length mask has a run that is negative, or longer than any image")
    if (total := int(numbers.sum())) != height * width:
        raise ValueError(f"the runs cover {total} pixels, the image has {height} x {width}")
    edges = np.cumsum(numbers)
    starts = edges[: numbers.size - 1 : 2] if numbers.size else edges
    ends = edges[1::2]
    filled = ends > starts
    return height, width, starts[filled], ends[filled]


def _size(size: Json) -> tuple[int, int]:
    sides = list(size) if isinstance(size, list | tuple) else []
    if len(sides) != 2 or not all(type(side) is int and side > 0 for side in sides):
        raise ValueError("'size' of a run-length mask is [height, width], two whole numbers above 0")
    if sides[0] * sides[1] > MOST_PIXELS:
        raise ValueError(f"a mask of {sides[0]} x {sides[1]} pixels is too large")
    return sides[0], sides[1]


def _from_list(counts: Json) -> Ints:
    if not isinstance(counts, list | tuple) or not all(type(count) is int for count in counts):
        raise ValueError("'counts' of a run-length mask is a text, or a list of whole numbers")
    return np.array([min(max(count, -1), MOST_PIXELS + 1) for count in counts], dtype=np.int64)


def _from_text(text: str) -> Ints:
    if not text:
        return np.empty(0, dtype=np.int64)
    try:
        groups = np.frombuffer(text.encode("ascii"), dtype=np.uint8).astype(np.int64) - _ZERO
    except UnicodeEncodeError:
        _garbled()
    last = np.flatnonzero(groups & _MORE == 0)
    if groups.min() < 0 or groups.max() >= 2 * _MORE or not last.size or last[-1] != groups.size - 1:
        _garbled()
    first = np.concatenate(([0], last[:-1] + 1))
    lengths = last - first + 1
    if lengths.max() > _LONGEST_NUMBER:
        _garbled()
    shifts = 5 * (np.arange(groups.size) - np.repeat(first, lengths))
    numbers = np.add.reduceat((groups & _BITS) << shifts, first)
    numbers -= np.where(groups[last] & _SIGN, np.int64(1) << (5 * lengths), 0)
    for chain in (slice(1, None, 2), slice(2, None, 2)):
        numbers[chain] = np.cumsum(numbers[chain])
    return numbers


def _garbled() -> NoReturn:
    raise ValueError("'counts' of a run-length mask is no text that COCO's tools write, or was cut off")
