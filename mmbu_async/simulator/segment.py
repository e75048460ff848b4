"""Finds roundish objects in a grey image: a threshold for each object, and a split of those that touch.

One threshold for the whole image loses dim objects beside bright ones and melts neighbours together. So
the image is cut at rising levels, and a component becomes an object at the lowest level at which it is an
ellipse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from mmbu_async.simulator.findings import Grey, Mask, Objects

Labels = NDArray[np.int32]

CUT_ROUND = 0.93
"""The same for objects that the border cuts."""
LEVELS = 24
"""Cuts between the ground and the brightest object."""
ROUND = 0.97
"""Least share of its ellipse of equal second moments that an object fills; two touching discs fill 0.89."""
HALO = 0.25
"""Of the usual radius: as far reaches the glow around an object."""
CRUMB = 0.3
"""Of the usual object's area; smaller remainders are glow."""
LEAST_AREA = 20
"""Pixels; what is smaller is noise."""
RELATIVE_AREA = 0.15
"""Of the median object; what is smaller is a crumb."""
MOST_AREA = 0.2
"""Of the image; what is larger is ground or organ."""


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Measures of the components 1..n, in arrays that begin with component 1."""

    area: NDArray[np.float64]
    roundness: NDArray[np.float64]


def otsu(values: Grey, bins: int = 256) -> tuple[float, float]:
    """The threshold that separates two classes best, and the share of the variance that lies between them."""
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
    variance = float(values.var()) * float(below[-1]) ** 2
    threshold = float(centres[int(best[len(best) // 2])])
    return threshold, float(between.max()) / variance if variance > 0 else 0.0


def find(grey: Grey, sigma: float = 1.2) -> Objects:
    """Bright objects on a dark ground (the caller turns dark objects bright)."""
    smooth = ndimage.gaussian_filter(grey, sigma)
    ground = float(np.median(smooth[smooth <= np.median(smooth)]))
    noise = float(np.median(np.abs(smooth[smooth <= ground] - ground))) * 1.48
    top = float(np.percentile(smooth, 99.9))
    floor = _floor(smooth, ground, noise, top)
    if top - floor < 1e-3:
        return _measure(np.zeros(grey.shape, np.int32))
    levels = ground + np.geomspace(floor - ground, (top - ground) * 0.9, LEVELS)
    labels = _cut(smooth, levels, MOST_AREA * grey.size)
    labels = _rest(labels, smooth > levels[0])
    return _measure(_trim(labels, smooth, ground))


def _floor(smooth: Grey, ground: float, noise: float, top: float) -> float:
    """The lowest level that is surely not ground: Otsu's threshold over logarithms, but above the noise."""
    relative = np.log1p(np.clip((smooth - ground) / max(top - ground, 1e-6), 0, 1) * 20)
    threshold, _ = otsu(relative.astype(np.float32))
    otsus = float(np.expm1(threshold)) / 20 * (top - ground)
    return ground + max(0.8 * otsus, 5 * noise, 0.01)


def _cut(smooth: Grey, levels: NDArray[np.float64], most: float) -> Labels:
    """At each level from the lowest, takes the components that are ellipses out of the image."""
    found = np.zeros(smooth.shape, np.int32)
    count = 0
    for level in levels:
        labelled, number = ndimage.label((smooth > level) & (found == 0))
        components = np.asarray(labelled, dtype=np.int32)
        if number == 0:
            continue
        shapes = _shapes(components, number)
        least = np.where(_touching(components, number), CUT_ROUND, ROUND)
        good = (shapes.roundness >= least) & (shapes.area >= LEAST_AREA) & (shapes.area <= most)
        names = np.zeros(number + 1, np.int32)
        names[1:][good] = np.arange(count + 1, count + 1 + int(good.sum()))
        count += int(good.sum())
        found += names[components]
    return found


def _touching(labels: Labels, number: int) -> NDArray[np.bool_]:
    """For the components 1..n, whether the border cuts them."""
    edges = np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])
    touching = np.zeros(number + 1, np.bool_)
    touching[edges] = True
    return touching[1:]


def _shapes(labels: Labels, number: int) -> _Shapes:
    rows, columns = np.nonzero(labels)
    which = labels[rows, columns] - 1
    area = np.bincount(which, minlength=number).astype(np.float64)

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(which, values, number) / np.maximum(area, 1)

    x, y = columns.astype(np.float64), rows.astype(np.float64)
    x_mean, y_mean = mean(x), mean(y)
    # A pixel is a square, not a point: its own spread is 1/12 along each axis.
    xx = mean(x * x) - x_mean**2 + 1 / 12
    yy = mean(y * y) - y_mean**2 + 1 / 12
    xy = mean(x * y) - x_mean * y_mean
    ellipse = 4 * np.pi * np.sqrt(np.maximum(xx * yy - xy**2, 1e-9))
    return _Shapes(area, area / ellipse)


def _rest(labels: Labels, mask: Mask) -> Labels:
    """What never became an ellipse: clumps of equal brightness, split where they are narrow."""
    usual = np.bincount(labels.ravel())[1:]
    radius = float(np.sqrt(np.median(usual[usual > 0]) / np.pi)) if usual.any() else 6.0
    halo = max(2, round(HALO * radius))
    near = ndimage.binary_dilation(labels > 0, iterations=halo)
    clumps, _ = ndimage.label(ndimage.binary_opening(mask & ~near, iterations=halo))
    result = labels.copy()
    count = int(labels.max())
    for clump, (rows, columns) in enumerate(ndimage.find_objects(clumps), start=1):
        inside = np.pad(clumps[rows, columns] == clump, 1)
        if inside.sum() < max(LEAST_AREA, CRUMB * np.pi * radius**2):
            continue
        parts = _split(inside, radius)[1:-1, 1:-1]
        result[rows, columns] = np.where(parts > 0, parts + count, result[rows, columns])
        count += int(parts.max())
    distance, nearest = ndimage.distance_transform_edt(result == 0, return_indices=True)
    return np.where(mask & (distance <= halo), result[nearest[0], nearest[1]], 0).astype(np.int32)


def _split(inside: Mask, radius: float) -> Labels:
    """Each pixel goes to the nearest of the discs that the clump holds."""
    distance = ndimage.distance_transform_edt(inside)
    smooth = ndimage.gaussian_filter(distance, radius / 5)
    size = max(3, int(radius * 1.1) | 1)
    peaks = (smooth == ndimage.maximum_filter(smooth, size)) & (distance > 0.4 * radius)
    seeds, number = ndimage.label(peaks, structure=np.ones((3, 3)))
    if number < 2:
        return inside.astype(np.int32)
    discs = np.zeros(inside.shape, np.int32)
    rows, columns = np.indices(inside.shape)
    for seed in range(1, number + 1):
        y, x = np.argwhere(seeds == seed)[0]
        discs[(rows - y) ** 2 + (columns - x) ** 2 <= (0.6 * distance[y, x]) ** 2] = seed
    nearest = ndimage.distance_transform_edt(discs == 0, return_distances=False, return_indices=True)
    return np.where(inside, discs[nearest[0], nearest[1]], 0).astype(np.int32)


def _trim(labels: Labels, smooth: Grey, ground: float) -> Labels:
    """The outline of an object is where it falls to half of its own height over the ground."""
    number = int(labels.max())
    if number == 0:
        return labels
    heights = np.asarray(ndimage.median(smooth, labels, np.arange(1, number + 1)))
    half = np.concatenate([[np.inf], ground + 0.5 * (heights - ground)])
    return np.where(smooth >= half[labels], labels, 0).astype(np.int32)


def _measure(labels: Labels) -> Objects:
    number = int(labels.max())
    shapes = _shapes(labels, max(number, 1))
    present = shapes.area[shapes.area > 0]
    floor = max(LEAST_AREA, RELATIVE_AREA * float(np.median(present))) if present.size else LEAST_AREA
    height, width = labels.shape
    found = []
    for index, place in enumerate(ndimage.find_objects(labels)):
        if place is None:
            continue
        rows, columns = place
        box = (columns.start, rows.start, columns.stop - columns.start, rows.stop - rows.start)
        whole = box[0] > 0 and box[1] > 0 and columns.stop < width and rows.stop < height
        if shapes.area[index] < (floor if whole else LEAST_AREA):
            continue
        found.append((box, whole, float(shapes.roundness[index])))
    return Objects(
        boxes=tuple(item[0] for item in found),
        whole=tuple(item[1] for item in found),
        roundness=tuple(item[2] for item in found),
        mask=labels > 0,
    )
