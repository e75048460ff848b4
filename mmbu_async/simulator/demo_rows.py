"""The kinds of questions of the drawn split: image, question, options and truth of one row."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from mmbu_async.model import Json
from mmbu_async.simulator import paint

_FLUORESCENCE: dict[str, Json] = {
    "metadata_medical_domain": "cell biology",
    "metadata_modality": "light microscopy",
    "metadata_submodality": "fluorescence microscopy",
    "metadata_specimen": "cell nuclei",
    "microns_per_pixel": 0.65,
    "metadata_stain": "DAPI",
}
_TISSUE: dict[str, Json] = {
    "metadata_medical_domain": "pathology",
    "metadata_modality": "light microscopy",
    "metadata_submodality": "brightfield microscopy",
    "metadata_specimen": "tissue section",
    "microns_per_pixel": 0.5,
    "metadata_stain": "H&E",
}
_SMEAR: dict[str, Json] = {
    "metadata_medical_domain": "hematology",
    "metadata_modality": "light microscopy",
    "metadata_submodality": "brightfield microscopy",
    "metadata_specimen": "blood smear",
    "metadata_body_part": "blood",
    "microns_per_pixel": 0.25,
    "metadata_stain": "Giemsa",
}
_MODALITIES = (
    "computed tomography",
    "magnetic resonance imaging",
    "X-ray radiography",
    "colour fundus photography",
    "fluorescence microscopy",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row before it gets its name."""

    question: str
    task: str
    answer: str
    pixels: NDArray[np.uint8] | NDArray[np.uint16]
    options: list[str] = field(default_factory=list)
    about: dict[str, Json]
    suffix: str = "png"


def _numbers(rng: Generator, truth: int) -> list[str]:
    """The truth among three other counts, in rising order."""
    steps = rng.choice([-9, -7, -5, -3, 3, 5, 8, 11], size=8, replace=False)
    others = [truth + int(step) for step in steps if truth + step > 0][:3]
    return [str(number) for number in sorted([truth, *others])]


def _shuffled(rng: Generator, labels: tuple[str, ...]) -> list[str]:
    return [labels[index] for index in rng.permutation(len(labels))]


def _count_nuclei(rng: Generator, turn: int) -> Row:
    count = int(rng.integers(6, 22))
    scene = paint.fluorescence(rng, count)
    suffix = ("png", "tif", "jpg")[turn % 3]
    return Row(
        question="How many cell nuclei are visible in this image, those cut by the border included?",
        task="counting | nuclei",
        answer=str(count),
        options=_numbers(rng, count),
        pixels=scene.deep if suffix == "tif" and scene.deep is not None else scene.pixels,
        about=_FLUORESCENCE,
        suffix=suffix,
    )


def _count_tissue(rng: Generator, turn: int) -> Row:
    count = int(rng.integers(12, 34))
    return Row(
        question="How many nuclei does this tissue section show?",
        task="counting | nuclei",
        answer=str(count),
        options=_numbers(rng, count),
        pixels=paint.tissue(rng, count).pixels,
        about=_TISSUE,
        suffix=("jpg", "png")[turn % 2],
    )


def _count_smear(rng: Generator, turn: int) -> Row:
    count = int(rng.integers(9, 30))
    return Row(
        question="Give the number of red blood cells in this field of view.",
        task="counting | blood cells",
        answer=str(count),
        options=_numbers(rng, count),
        pixels=paint.smear(rng, count).pixels,
        about=_SMEAR,
    )


def _detect_nucleus(rng: Generator, turn: int) -> Row:
    scene = paint.fluorescence(rng, int(rng.integers(5, 14)))
    return Row(
        question="Locate one cell nucleus that lies wholly inside this fluorescence microscopy image.",
        task="object detection | nuclei",
        answer=json.dumps(scene.whole_boxes or scene.boxes),
        pixels=scene.deep if turn % 3 == 1 and scene.deep is not None else scene.pixels,
        about=_FLUORESCENCE,
        suffix="tif" if turn % 3 == 1 else "png",
    )


def _detect_tissue(rng: Generator, turn: int) -> Row:
    scene = paint.tissue(rng, int(rng.integers(8, 24)))
    return Row(
        question="Draw a bounding box around one nucleus of this tissue section.",
        task="object detection | nuclei",
        answer=json.dumps(scene.whole_boxes or scene.boxes),
        pixels=scene.pixels,
        about=_TISSUE,
    )


def _detect_disc(rng: Generator, turn: int) -> Row:
    scene = paint.fundus(rng)
    return Row(
        question="Locate the optic disc.",
        task="object detection | optic disc",
        answer=json.dumps(scene.boxes[0]),
        pixels=scene.pixels,
        about={
            "metadata_medical_domain": "ophthalmology",
            "metadata_modality": "fundus photography",
            "metadata_body_part": "retina",
        },
        suffix="jpg",
    )


def _stain(rng: Generator, turn: int) -> Row:
    label, scene, about = (
        ("hematoxylin and eosin", paint.tissue(rng, 28), _TISSUE),
        ("immunohistochemistry with DAB", paint.immunostain(rng, 26), _TISSUE | {"metadata_stain": "DAB"}),
        ("DAPI", paint.fluorescence(rng, 14), _FLUORESCENCE),
        ("Giemsa", paint.smear(rng, 22), _SMEAR),
    )[turn % 4]
    return Row(
        question="Which stain is most consistent with this image?",
        task="classification | stain",
        answer=label,
        options=_shuffled(rng, ("hematoxylin and eosin", "immunohistochemistry with DAB", "DAPI", "Giemsa")),
        pixels=scene.pixels,
        about=about,
        suffix=("jpg", "png", "png", "png")[turn % 4],
    )


def _modality(rng: Generator, turn: int) -> Row:
    label = _MODALITIES[turn % len(_MODALITIES)]
    scenes: dict[str, Callable[[Generator], paint.Scene]] = {
        "computed tomography": paint.computed_tomography,
        "magnetic resonance imaging": paint.magnetic_resonance,
        "X-ray radiography": paint.radiograph,
        "colour fundus photography": paint.fundus,
        "fluorescence microscopy": lambda generator: paint.fluorescence(generator, 12),
    }
    about: dict[str, Json] = {"metadata_medical_domain": "radiology", "metadata_modality": label}
    if label == "colour fundus photography":
        about = {"metadata_medical_domain": "ophthalmology", "metadata_modality": "fundus photography"}
    elif label == "fluorescence microscopy":
        about = _FLUORESCENCE
    return Row(
        question="Which imaging modality produced this image?",
        task="classification | modality",
        answer=label,
        options=_shuffled(rng, _MODALITIES),
        pixels=scenes[label](rng).pixels,
        about=about,
        suffix="jpg" if label in ("X-ray radiography", "colour fundus photography") else "png",
    )


def _specimen(rng: Generator, turn: int) -> Row:
    single = turn % 2 == 0
    scene = paint.single_cell(rng) if single else paint.tissue(rng, 24)
    about: dict[str, Json] = {
        "metadata_medical_domain": "cell biology",
        "metadata_modality": "light microscopy",
        "metadata_submodality": "phase contrast microscopy",
    }
    return Row(
        question="Which is shown: a single cell or a tissue section?",
        task="classification | specimen",
        answer="single cell" if single else "tissue section",
        options=["single cell", "tissue section"],
        pixels=scene.pixels,
        about=about if single else _TISSUE,
    )


_STRUCTURES = ("cell nucleus", "empty background", "mitochondrion", "cell membrane")


def _boxed(rng: Generator, turn: int) -> Row:
    scene = paint.fluorescence(rng, int(rng.integers(6, 12)))
    ground = _free_square(rng, scene.labels) if turn % 2 else None
    boxes = scene.whole_boxes or scene.boxes
    box = ground or boxes[int(rng.integers(len(boxes)))]
    return Row(
        question="Which structure does the red box enclose?",
        task="fine-grained classification (from detection) | nuclei",
        answer="empty background" if ground else "cell nucleus",
        options=_shuffled(rng, _STRUCTURES),
        pixels=paint.with_red_box(scene.pixels, box),
        about=_FLUORESCENCE,
    )


def _masked(rng: Generator, turn: int) -> Row:
    scene = paint.fluorescence(rng, int(rng.integers(6, 12)))
    mask = scene.labels == int(rng.integers(1, scene.labels.max() + 1))
    ground = _free_square(rng, scene.labels) if turn % 2 else None
    if ground:
        x, y, width, height = ground
        mask[y : y + height, x : x + width] = True
    return Row(
        question="Which structure or structures does the green mask cover?",
        task="fine-grained classification (from segmentation) | nuclei",
        answer="cell nucleus, empty background" if ground else "cell nucleus",
        options=_shuffled(rng, _STRUCTURES),
        pixels=paint.with_green_mask(scene.pixels, mask),
        about=_FLUORESCENCE,
    )


def _free_square(rng: Generator, labels: paint.Labels, edge: int = 22) -> list[int] | None:
    """A square of ground that no object reaches into; None when a hundred tries find none."""
    for _ in range(100):
        x, y = (int(place) for place in rng.integers(3, labels.shape[0] - edge - 3, 2))
        if not labels[y - 3 : y + edge + 3, x - 3 : x + edge + 3].any():
            return [x, y, edge, edge]
    return None


KINDS: tuple[tuple[str, Callable[[Generator, int], Row]], ...] = (
    ("count", _count_nuclei),
    ("detect", _detect_nucleus),
    ("box", _boxed),
    ("mask", _masked),
    ("stain", _stain),
    ("count-he", _count_tissue),
    ("modality", _modality),
    ("detect-he", _detect_tissue),
    ("count-blood", _count_smear),
    ("specimen", _specimen),
    ("detect-disc", _detect_disc),
)
"""In the order of the rows: the first five show all five task categories and all four routes."""
