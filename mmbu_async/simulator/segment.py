"""Finds roundish objects in a grey image: threshold, connected components, splitting of those that touch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Grey = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """What was found. Boxes are (x, y, width, height) in pixels of the image that was searched."""

    boxes: tuple[tuple[int, int, int, int], ...]
    whole: tuple[bool, ...]
    """For each box whether it stays clear of the image's border."""
    solidity: tuple[float, ...]
    """For each box the share of its inscribed ellipse that the object fills, at most 1."""
    mask: Mask


def otsu(values: NDArray[np.float32], bins: int = 256) -> float:
    """The threshold that separates two classes best (largest variance between them)."""
    counts, edges = np.histogram(values, bins=bins)
    centres = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)
    above = below[-1] - below
    sums = np.cumsum(counts * centres)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (sums / below - (sums[-1] - sums) / above) ** 2
    between[~np.isfinite(between)] = 0
    # Between two well separated classes the curve is flat: take the middle of the flat top.
    best = np.flatnonzero(between >= between.max() * (1 - 1e-9))
    return float(centres[int(best[len(best) // 2])])


def find(grey: Grey) -> Objects:
    """Bright objects on a dark ground (the caller turns dark objects bright).

    The logarithm makes dim objects beside very bright ones count; the ground is the image's own low end.
    """
    smooth = ndimage.gaussian_filter(grey, 1.0)
    low = float(np.percentile(smooth, 5))
    high = float(np.percentile(smooth, 99.8))
    if high - low < 1e-6:
        return Objects(boxes=(), whole=(), solidity=(), mask=np.zeros(grey.shape, np.bool_))
    level = np.log1p(np.clip((smooth - low) / (high - low), 0, 1) * 12).astype(np.float32)
    mask = level > otsu(level)
    mask = ndimage.binary_opening(ndimage.binary_fill_holes(mask), iterations=1)
    labels = _split(mask, level)
    return _measure(labels, mask)


def _split(mask: Mask, level: Grey) -> NDArray[np.int32]:
    """Watershed from the peaks of distance and brightness together."""
    distance = ndimage.distance_transform_edt(mask).astype(np.float32)
    radii = distance[distance == ndimage.maximum_filter(distance, 7)]
    radii = radii[radii > 2]
    radius = float(np.median(radii)) if radii.size else 3.0
    height = ndimage.gaussian_filter(distance / max(radius, 1.0) + 0.5 * level, max(1.0, radius / 4))
    size = max(3, int(radius * 1.2) | 1)
    peaks = (height == ndimage.maximum_filter(height, size)) & mask & (distance > 0.3 * radius)
    markers, count = ndimage.label(peaks, structure=np.ones((3, 3)))
    if count == 0:
        return np.zeros(mask.shape, np.int32)
    seeds = markers.astype(np.int32)
    seeds[~mask] = -1
    top = float(height.max()) or 1.0
    cost = np.clip((1 - height / top) * 65535, 0, 65535).astype(np.uint16)
    cost[~mask] = 65535
    flooded = ndimage.watershed_ift(cost, seeds)
    return np.where(mask & (flooded > 0), flooded, 0).astype(np.int32)


def _measure(labels: NDArray[np.int32], mask: Mask) -> Objects:
    areas = np.bincount(labels.ravel())
    areas[0] = 0
    present = areas[areas > 0]
    floor = max(12.0, 0.12 * float(np.median(present))) if present.size else 12.0
    height, width = labels.shape
    found = []
    for label, place in enumerate(ndimage.find_objects(labels), start=1):
        if place is None or areas[label] < floor:
            continue
        rows, columns = place
        box = (columns.start, rows.start, columns.stop - columns.start, rows.stop - rows.start)
        whole = box[0] > 0 and box[1] > 0 and columns.stop < width and rows.stop < height
        found.append((box, whole, min(1.0, float(areas[label]) / (0.7854 * box[2] * box[3]))))
    return Objects(
        boxes=tuple(item[0] for item in found),
        whole=tuple(item[1] for item in found),
        solidity=tuple(item[2] for item in found),
        mask=mask,
    )
