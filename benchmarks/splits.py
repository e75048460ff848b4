"""Splits in the MMBU layout whose images are noise: valid, unique, and of a size that is asked for.

Noise cannot be compressed, so that a file is as large as its pixels say. Half of the images are PNG, half
JPEG. A split is made once and found again where its folder is kept.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

IMAGE_BYTES = 140_000
"""Of an image of the large splits: what a 512-pixel micrograph takes as JPEG."""
POOL = 5000
"""Distinct images at most; a split with more rows has hard links to them under names of its own."""

Kind = Literal["scored", "judged"]
"""`scored`: object detection, one call a row. `judged`: classification, the judge is the second call."""


def noise_split(folder: Path, kind: Kind, rows: int, *, image_bytes: int = IMAGE_BYTES) -> Path:
    """A split of rows that each have a file of their own."""
    split = folder / f"{kind}-{rows}-{image_bytes}"
    if (split / "metadata.jsonl").exists():
        return split
    pool = noise_images(folder / f"images-{image_bytes}", min(rows, POOL), image_bytes)
    shutil.rmtree(split, ignore_errors=True)
    (split / "images").mkdir(parents=True)
    names = []
    for n in range(rows):
        original = pool[n % len(pool)]
        names.append(f"images/{n:06}{original.suffix}")
        os.link(original, split / names[-1])
    _write_metadata(split, [kind] * rows, names)
    return split


def small_split(folder: Path, kinds: list[Kind], *, images: int = 64, image_bytes: int = 2000) -> Path:
    """A split of many rows that share a few small files: where images are not what is measured."""
    split = folder / f"small-{len(kinds)}-{sum(kind == 'judged' for kind in kinds)}"
    if (split / "metadata.jsonl").exists():
        return split
    pool = noise_images(split / "images", images, image_bytes)
    _write_metadata(split, kinds, [f"images/{pool[n % len(pool)].name}" for n in range(len(kinds))])
    return split


def noise_images(folder: Path, count: int, image_bytes: int) -> list[Path]:
    """That many images, each within a few per cent of the size; the first ones are always the same."""
    folder.mkdir(parents=True, exist_ok=True)
    png_edge, jpeg_edge = _edges(image_bytes)
    files = []
    for n in range(count):
        suffix, edge = (".png", png_edge) if n % 2 == 0 else (".jpg", jpeg_edge)
        file = folder / f"{n:06}{suffix}"
        if not file.exists():
            unfinished = file.with_suffix(".new")
            unfinished.write_bytes(_noise(n, edge, suffix))
            unfinished.replace(file)
        files.append(file)
    return files


def _edges(image_bytes: int) -> tuple[int, int]:
    """Pixels of the side of a square that takes the bytes as PNG and as JPEG."""
    png = int((image_bytes / 3) ** 0.5)
    probe = 256
    jpeg = int(probe * (image_bytes / len(_noise(0, probe, ".jpg"))) ** 0.5)
    return png, jpeg


def _noise(seed: int, edge: int, suffix: str) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (edge, edge, 3), dtype=np.uint8)
    file = io.BytesIO()
    if suffix == ".png":
        Image.fromarray(pixels).save(file, "PNG", compress_level=1)
    else:
        Image.fromarray(pixels).save(file, "JPEG", quality=90)
    return file.getvalue()


def _write_metadata(split: Path, kinds: list[Kind], names: list[str]) -> None:
    """Last of all: its presence says that the split is whole."""
    unfinished = split / "metadata.new"
    with unfinished.open("w", encoding="utf-8") as file:
        for n, (kind, name) in enumerate(zip(kinds, names, strict=True)):
            file.write(json.dumps(_row(n, kind, name)) + "\n")
    unfinished.replace(split / "metadata.jsonl")


def _row(n: int, kind: Kind, name: str) -> dict[str, str | None]:
    """All released columns, filled as the released split fills them. No two rows ask the same."""
    boxes = kind == "scored"
    return {
        "question": f"Where is the cell nucleus that annotation {n} names in this fluorescence micrograph?"
        if boxes
        else f"Which stain was used for the section that annotation {n} names in this micrograph?",
        "file_name": name,
        "question_type": "perception",
        "options": "[]" if boxes else json.dumps(["A) DAPI", "B) Giemsa", "C) DAB", "D) hematoxylin"]),
        "metadata_medical_domain": "cell biology",
        "metadata_modality": "light microscopy",
        "metadata_submodality": "fluorescence microscopy",
        "metadata_specimen": "tissue section",
        "metadata_body_part": ("liver", "lung", "brain", "kidney")[n % 4],
        "metadata_topic": "nuclei",
        "microns_per_pixel": "0.5",
        "metadata_stain": "DAPI",
        "task": "object detection | nuclei" if boxes else "classification | stain",
        "unique_id": f"row-{n:06}",
        "VQA_type": "open",
        "answer": "[[10, 10, 20, 20], [60, 40, 18, 22]]" if boxes else "DAPI",
    }
