"""What the simulator sees in an image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Grey = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """What was found. Boxes are (x, y, width, height) in pixels of the image that was searched."""

    boxes: tuple[tuple[int, int, int, int], ...]
    whole: tuple[bool, ...]
    """For each box whether it stays clear of the image's border."""
    roundness: tuple[float, ...]
    """For each object the share of its ellipse of equal second moments that it fills, about 1 at most."""
    mask: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Cues:
    """Simple features of the whole image; all between 0 and 1."""

    grey: bool
    red: float
    green: float
    blue: float
    """Mean of each channel over the tissue or object (not black, not white)."""
    dark: float
    """Share of pixels that are almost black."""
    light: float
    """Share of pixels that are almost white."""
    brown: float
    """Share of pixels whose colour is that of DAB."""
    corners_dark: bool
    symmetry: float
    """Correlation of the image with its mirror image, left to right."""
    roughness: float
    """Mean step between neighbouring pixels, relative to the spread of grey values."""
    peak: float
    """Share of the non-black pixels within a twentieth of the commonest grey value."""

    @property
    def fundus(self) -> bool:
        """Orange on a round field: black corners, and red outweighs blue."""
        return not self.grey and self.corners_dark and self.red > self.blue + 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was seen in one image."""

    width: int
    height: int
    objects: Objects
    """Boxes in pixels of the image as sent."""
    cues: Cues
    marked: str
    """`box` when a red box is drawn in, `mask` when a green mask is, '' for neither."""
    marked_object: float
    """Share of the marked region that belongs to objects."""
