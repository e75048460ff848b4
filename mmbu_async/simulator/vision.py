"""The simulator's eyes: a small classical-vision baseline. Pixels in, findings out; no answer key."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mmbu_async.simulator.findings import Cues, Findings, Grey, Mask, Objects
from mmbu_async.simulator.pictures import Picture
from mmbu_async.simulator.segment import find, otsu

MAX_PIXELS = 64_000_000
"""Larger images are not decoded."""
WORK_EDGE = 512
"""Longest side that is searched; larger images are shrunk first and boxes mapped back."""


def look(picture: Picture) -> Findings | None:
    if picture.width * picture.height > MAX_PIXELS:
        return None
    try:
        with Image.open(io.BytesIO(picture.data)) as image:
            image.draft("RGB", (WORK_EDGE, WORK_EDGE))
            image.load()
            pixels, factor = _pixels(image, picture.width)
    except (OSError, ValueError, SyntaxError):
        return None
    return _findings(pixels, factor, picture)


def _pixels(image: Image.Image, width: int) -> tuple[NDArray[np.float32], float]:
    """RGB between 0 and 1, at most WORK_EDGE long, and original pixels per pixel."""
    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image, dtype=np.float32)
        values = values / max(float(values.max()), 1.0)
        image = Image.fromarray((values * 255).astype(np.uint8))
    image = image.convert("RGB")
    if max(image.size) > WORK_EDGE:
        image.thumbnail((WORK_EDGE, WORK_EDGE))
    return np.asarray(image, dtype=np.float32) / np.float32(255), width / image.width


def _findings(rgb: NDArray[np.float32], factor: float, picture: Picture) -> Findings:
    brightest, darkest = _extremes(rgb)
    red_line = (rgb[..., 0] > 0.7) & (rgb[..., 1] < 0.35) & (rgb[..., 2] < 0.35)
    green = rgb[..., 1] - np.maximum(rgb[..., 0], rgb[..., 2]) > 0.15
    greyish = float(np.mean(brightest - darkest < 0.06))
    region, marked = _region(red_line, green, greyish)
    grey = greyish > 0.75
    luminance = (rgb[..., 0] + rgb[..., 1] + rgb[..., 2]) / np.float32(3)
    if marked == "box":
        luminance = np.where(red_line, np.median(luminance), luminance)
    elif marked == "mask":
        luminance = np.where(green, _under_green(rgb, green), luminance)
    cues = _cues(rgb, luminance, grey)
    objects = _scaled(find(_bright_objects(rgb, luminance, cues)), factor)
    inside = float(objects.mask[region].mean()) if region is not None else 0.0
    return Findings(
        width=picture.width,
        height=picture.height,
        objects=objects,
        cues=cues,
        marked=marked,
        marked_object=inside,
    )


def _extremes(rgb: NDArray[np.float32]) -> tuple[Grey, Grey]:
    """Brightest and darkest channel of each pixel; by planes, which is much faster than by axis."""
    red, green, blue = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    return np.maximum(np.maximum(red, green), blue), np.minimum(np.minimum(red, green), blue)


def _under_green(rgb: NDArray[np.float32], green: Mask) -> Grey:
    """The grey image under a translucent green: it adds to green alone and dims all channels alike."""
    under = (rgb[..., 0] + rgb[..., 2]) / 2
    opacity = float(np.median((rgb[..., 1] - under)[green]))
    return np.clip(under / np.float32(max(1 - opacity, 0.05)), 0, 1)


def _bright_objects(rgb: NDArray[np.float32], luminance: Grey, cues: Cues) -> Grey:
    """Polarity and channel: stained objects are dark where light shines through."""
    if cues.grey:
        return luminance if float(np.median(luminance)) < 0.55 else np.float32(1) - luminance
    if cues.fundus:
        return rgb[..., 1]
    brightest, _ = _extremes(rgb)
    if float(np.median(brightest)) > 0.5:
        channels = [np.float32(1) - rgb[..., channel] for channel in range(3)]
        return max(channels, key=lambda channel: otsu(channel)[1])
    return brightest


def _region(red_line: Mask, green: Mask, greyish: float) -> tuple[tuple[slice, slice] | Mask | None, str]:
    """A region that was drawn in: only colours on an otherwise grey image count."""
    if greyish < 0.6 or greyish > 0.9999:
        return None, ""
    if red_line.sum() > 12 and red_line.sum() > green.sum() / 4:
        rows = np.flatnonzero(red_line.any(axis=1))
        columns = np.flatnonzero(red_line.any(axis=0))
        if rows[-1] - rows[0] > 4 and columns[-1] - columns[0] > 4:
            return (slice(rows[0] + 2, rows[-1] - 1), slice(columns[0] + 2, columns[-1] - 1)), "box"
    if green.sum() > 12:
        return green, "mask"
    return None, ""


def _scaled(objects: Objects, factor: float) -> Objects:
    if factor == 1:
        return objects
    boxes = []
    for x, y, width, height in objects.boxes:
        boxes.append((round(x * factor), round(y * factor), round(width * factor), round(height * factor)))
    return Objects(boxes=tuple(boxes), whole=objects.whole, roundness=objects.roundness, mask=objects.mask)


def _cues(rgb: NDArray[np.float32], luminance: Grey, grey: bool) -> Cues:
    flat = rgb.reshape(-1, 3)
    brightest, darkest = (plane.ravel() for plane in _extremes(rgb))
    body = flat[(brightest > 0.12) & (darkest < 0.88)]
    red, green, blue = (float(value) for value in (body if len(body) else flat).mean(axis=0))
    brown = (flat[:, 0] > flat[:, 2] + 0.15) & (flat[:, 0] > flat[:, 1] + 0.04) & (flat[:, 0] < 0.8)
    brown &= flat[:, 1] > flat[:, 2]
    height, width = luminance.shape
    step = max(1, min(height, width) // 16)
    corners = [luminance[:step, :step], luminance[:step, -step:], luminance[-step:, :step]]
    corners.append(luminance[-step:, -step:])
    spread = float(luminance.std()) or 1.0
    mirrored = float(np.mean((luminance - luminance.mean()) * (luminance - luminance.mean())[:, ::-1]))
    seen = luminance[luminance > 0.08]
    counts, _ = np.histogram(seen, bins=20, range=(0, 1))
    return Cues(
        grey=grey,
        red=red,
        green=green,
        blue=blue,
        dark=float(np.mean(brightest < 0.08)),
        light=float(np.mean(darkest > 0.88)),
        brown=float(np.mean(brown)),
        corners_dark=all(float(np.median(corner)) < 0.1 for corner in corners),
        symmetry=mirrored / spread**2,
        roughness=float(np.abs(np.diff(luminance, axis=1)).mean()) / spread,
        peak=float(counts.max()) / max(1, int(counts.sum())),
    )
