"""Synthetic images in the manner of microscopes and scanners, with exactly known objects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import ndimage

Labels = NDArray[np.int32]
Plane = NDArray[np.float64]

PHOTONS = 300
"""That the brightest pixel of a fluorescence image has caught."""

_HE_GROUND, _HE_NUCLEUS = (0.90, 0.68, 0.80), (0.36, 0.22, 0.52)
_SMEAR_GROUND, _SMEAR_CELL = (0.95, 0.92, 0.90), (0.80, 0.46, 0.48)
_DAB_GROUND, _DAB_NUCLEUS, _DAB_BROWN = (0.91, 0.90, 0.91), (0.45, 0.50, 0.72), (0.55, 0.35, 0.16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An image and what is in it."""

    pixels: NDArray[np.uint8]
    """Grey (height, width) or RGB (height, width, 3)."""
    labels: Labels
    """0 is the ground, n the object number n."""
    deep: NDArray[np.uint16] | None = None
    """The same in 16 bits, where the instrument gives them."""

    @property
    def boxes(self) -> list[list[int]]:
        """[x, y, width, height] of every object, in order of their numbers."""
        return [
            [columns.start, rows.start, columns.stop - columns.start, rows.stop - rows.start]
            for rows, columns in ndimage.find_objects(self.labels)
        ]

    @property
    def whole_boxes(self) -> list[list[int]]:
        """Of the objects that the border does not cut."""
        height, width = self.labels.shape
        return [
            box
            for box in self.boxes
            if box[0] > 0 and box[1] > 0 and box[0] + box[2] < width and box[1] + box[3] < height
        ]


def scatter(rng: Generator, side: int, count: int, radius: tuple[float, float]) -> Labels:
    """`count` ellipses; some touch or lie partly over another, some are cut by the border."""
    labels = np.zeros((side, side), np.int32)
    placed: list[tuple[float, float, float]] = []
    distance = 0.72
    while len(placed) < count:
        long, short = sorted(rng.uniform(*radius, 2), reverse=True)
        x, y = rng.uniform(0.4 * short, side - 0.4 * short, 2)
        clear = all(np.hypot(x - px, y - py) > distance * (long + other) for px, py, other in placed)
        if not clear:
            distance *= 0.999
            continue
        placed.append((x, y, long))
        _ellipse(labels, x, y, long, short, rng.uniform(0, np.pi), len(placed))
    return labels


def _ellipse(labels: Labels, x: float, y: float, long: float, short: float, angle: float, value: int) -> None:
    side = labels.shape[0]
    top, left = max(0, int(y - long) - 1), max(0, int(x - long) - 1)
    rows, columns = np.mgrid[top : min(side, int(y + long) + 2), left : min(side, int(x + long) + 2)]
    cos, sin = np.cos(angle), np.sin(angle)
    along = ((columns - x) * cos + (rows - y) * sin) / long
    across = ((rows - y) * cos - (columns - x) * sin) / short
    labels[rows, columns] = np.where(along**2 + across**2 <= 1, value, labels[rows, columns])


def fluorescence(rng: Generator, count: int, side: int = 160) -> Scene:
    """Bright nuclei of uneven brightness on a dark ground, with the noise of few photons."""
    labels = scatter(rng, side, count, (7.5, 13))
    strength = np.concatenate([[0.0], rng.uniform(0.1, 0.8, count)])
    light = ndimage.gaussian_filter(strength[labels] * _texture(rng, side, 2, 0.12), 1.2) + 0.06
    light = rng.poisson(np.clip(light, 0, 1) * PHOTONS) / PHOTONS
    deep = (np.clip(light, 0, 1) * 52_000).astype(np.uint16)
    return Scene(pixels=_eight(light), labels=labels, deep=deep)


def tissue(rng: Generator, count: int, side: int = 192) -> Scene:
    """Purple nuclei in pink tissue, as hematoxylin and eosin stain it."""
    labels = scatter(rng, side, count, (6.5, 11))
    return Scene(pixels=_stained(rng, labels, _HE_GROUND, _HE_NUCLEUS, 0.08), labels=labels)


def smear(rng: Generator, count: int, side: int = 192) -> Scene:
    """Red cells on a light ground."""
    labels = scatter(rng, side, count, (10, 12.5))
    return Scene(pixels=_stained(rng, labels, _SMEAR_GROUND, _SMEAR_CELL, 0.03), labels=labels)


def immunostain(rng: Generator, count: int, side: int = 192) -> Scene:
    """Blue nuclei within brown membranes, as DAB stains them."""
    labels = scatter(rng, side, count, (6, 9))
    pixels = _stained(rng, labels, _DAB_GROUND, _DAB_NUCLEUS, 0.05).astype(np.float64) / 255
    reach = ndimage.distance_transform_edt(labels == 0)
    ring = ndimage.gaussian_filter(((reach > 1) & (reach < 7)).astype(np.float64), 1)[..., None]
    brown = np.asarray(_DAB_BROWN) * _texture(rng, side, 3, 0.15)[..., None]
    return Scene(pixels=_eight(pixels * (1 - ring) + brown * ring), labels=labels)


def single_cell(rng: Generator, side: int = 160) -> Scene:
    """One bright cell with a dark rim on an even grey ground, as phase contrast shows it."""
    labels = np.zeros((side, side), np.int32)
    x, y = rng.uniform(0.3 * side, 0.7 * side, 2)
    _ellipse(labels, x, y, 0.13 * side, 0.11 * side, rng.uniform(0, np.pi), 1)
    reach = ndimage.distance_transform_edt(labels == 0)
    light = 0.32 + 0.5 * (labels > 0) - 0.25 * np.exp(-((reach - 3) ** 2) / 12) * (labels == 0)
    light = ndimage.gaussian_filter(light, 1) + rng.normal(0, 0.012, labels.shape)
    return Scene(pixels=_eight(light), labels=labels)


def fundus(rng: Generator, side: int = 256) -> Scene:
    """An orange disc on black with vessels and a bright optic disc, which is object 1."""
    rows, columns = np.mgrid[:side, :side]
    radius = np.hypot(rows - side / 2, columns - side / 2) / (side / 2)
    labels = np.zeros((side, side), np.int32)
    x = side * (0.5 + rng.choice([-1, 1]) * rng.uniform(0.22, 0.28))
    y = side * rng.uniform(0.46, 0.54)
    _ellipse(labels, x, y, 0.072 * side, 0.062 * side, 0.0, 1)
    shade = (1 - 0.35 * radius**2) * _texture(rng, side, 12, 0.05)
    colour = np.stack([0.86 * shade, 0.40 * shade, 0.20 * shade], axis=-1)
    vessels = np.zeros((side, side))
    for start in rng.uniform(0, 2 * np.pi, 9):
        steps = np.arange(int(side * 0.55))
        angle = start + np.cumsum(rng.normal(0, 0.06, steps.size))
        across = np.clip(x + np.cumsum(np.cos(angle)), 0, side - 1).astype(int)
        down = np.clip(y + np.cumsum(np.sin(angle)), 0, side - 1).astype(int)
        vessels[down, across] = 1
    vessels = np.clip(ndimage.gaussian_filter(vessels, 1.3) * 3, 0, 0.55)[..., None]
    colour = colour * (1 - vessels * np.asarray([0.4, 0.8, 0.8]))
    disc = ndimage.gaussian_filter((labels > 0).astype(np.float64), 1.5)[..., None]
    colour = colour * (1 - disc) + np.asarray([0.98, 0.84, 0.52]) * disc
    colour[radius > 0.97] = 0.01
    return Scene(pixels=_eight(colour + rng.normal(0, 0.01, colour.shape)), labels=labels)


def computed_tomography(rng: Generator, side: int = 160) -> Scene:
    """An even body on black air with two black lungs and a bright spine, which is object 1."""
    labels = np.zeros((side, side), np.int32)
    _ellipse(labels, side / 2, side / 2, 0.46 * side, 0.34 * side, 0.0, 2)
    light = np.where(labels > 0, 0.46, 0.02)
    for direction in (-1, 1):
        lung = np.zeros_like(labels)
        x = side * (0.5 + direction * rng.uniform(0.2, 0.24))
        _ellipse(lung, x, 0.47 * side, 0.15 * side, 0.11 * side, np.pi / 2, 1)
        light[lung > 0] = 0.05
    labels[:] = 0
    _ellipse(labels, side * rng.uniform(0.47, 0.53), 0.7 * side, 0.06 * side, 0.05 * side, 0.0, 1)
    light[labels > 0] = 0.95
    light = ndimage.gaussian_filter(light, 0.8) + rng.normal(0, 0.012, light.shape)
    return Scene(pixels=_eight(light), labels=labels)


def magnetic_resonance(rng: Generator, side: int = 160) -> Scene:
    """A head of folded tissue under uneven brightness, with dark ventricles (object 1)."""
    head, labels = np.zeros((side, side), np.int32), np.zeros((side, side), np.int32)
    _ellipse(head, side / 2, side / 2, 0.45 * side, 0.36 * side, np.pi / 2, 1)
    _ellipse(labels, side * rng.uniform(0.47, 0.53), side / 2, 0.1 * side, 0.05 * side, np.pi / 2, 1)
    rim = ndimage.distance_transform_edt(head)
    light = (head > 0) * _texture(rng, side, 4, 0.3) * _texture(rng, side, 30, 0.25) * 0.5
    light[(rim > 0) & (rim < 4)] = 0.85
    light[(rim >= 4) & (rim < 8)] = 0.1
    light[labels > 0] = 0.08
    light = np.abs(ndimage.gaussian_filter(light, 0.9) + rng.normal(0, 0.015, light.shape))
    return Scene(pixels=_eight(light), labels=labels)


def radiograph(rng: Generator, side: int = 192) -> Scene:
    """A chest: light soft tissue, two dark lungs crossed by ribs, a heart (object 1)."""
    labels = np.zeros((side, side), np.int32)
    rows, columns = np.mgrid[:side, :side] / side
    light = 0.62 + 0.14 * np.cos((columns - 0.5) * 3) + 0.1 * rows
    lungs = np.zeros_like(labels)
    for direction in (-1, 1):
        _ellipse(lungs, side * (0.5 + direction * 0.22), 0.45 * side, 0.31 * side, 0.15 * side, np.pi / 2, 1)
    inside = ndimage.gaussian_filter((lungs > 0).astype(np.float64), 4)
    light -= 0.42 * inside
    ribs = np.clip(np.sin((rows + 1.2 * (columns - 0.5) ** 2) * 45), 0, 1)
    light += 0.12 * ribs * inside
    _ellipse(labels, side * rng.uniform(0.53, 0.57), 0.58 * side, 0.16 * side, 0.13 * side, 0.6, 1)
    light = np.maximum(light, 0.8 * ndimage.gaussian_filter((labels > 0).astype(np.float64), 3))
    light = ndimage.gaussian_filter(light, 1.5) + rng.normal(0, 0.01, light.shape)
    return Scene(pixels=_eight(light), labels=labels)


def with_red_box(pixels: NDArray[np.uint8], box: list[int]) -> NDArray[np.uint8]:
    """The image in colour with a red line of one pixel around the box."""
    marked = np.repeat(pixels[..., None], 3, axis=2) if pixels.ndim == 2 else pixels.copy()
    height, width = marked.shape[:2]
    x, y, wide, high = box
    left, top = max(0, x - 2), max(0, y - 2)
    right, bottom = min(width - 1, x + wide + 1), min(height - 1, y + high + 1)
    red = np.asarray((230, 20, 20), np.uint8)
    marked[top : bottom + 1, [left, right]] = red
    marked[[top, bottom], left : right + 1] = red
    return marked


def with_green_mask(pixels: NDArray[np.uint8], mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The image in colour with a half transparent green over the mask."""
    marked = np.repeat(pixels[..., None], 3, axis=2) if pixels.ndim == 2 else pixels.copy()
    marked[mask] = (marked[mask] * 0.55 + np.asarray((0, 110, 0))).astype(np.uint8)
    return marked


def _stained(
    rng: Generator,
    labels: Labels,
    ground: tuple[float, float, float],
    stain: tuple[float, float, float],
    unevenness: float,
) -> NDArray[np.uint8]:
    side = labels.shape[0]
    count = int(labels.max())
    depth = np.concatenate([[0.0], rng.uniform(0.75, 1.0, count)])[labels] * _texture(rng, side, 1.5, 0.12)
    depth = np.clip(ndimage.gaussian_filter(depth, 0.9), 0, 1)[..., None]
    base = np.asarray(ground) * _texture(rng, side, 3, unevenness)[..., None]
    return _eight(base * (1 - depth) + np.asarray(stain) * depth + rng.normal(0, 0.012, (side, side, 1)))


def _texture(rng: Generator, side: int, grain: float, strength: float) -> Plane:
    """Smooth noise around 1 with the given standard deviation."""
    noise = ndimage.gaussian_filter(rng.standard_normal((side, side)), grain, mode="wrap")
    return np.asarray(1 + strength * noise / noise.std())


def _eight(light: Plane) -> NDArray[np.uint8]:
    return (np.clip(light, 0, 1) * 255).round().astype(np.uint8)
