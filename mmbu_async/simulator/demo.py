"""Draws a small split in the layout of MMBU-public: images with known truth, metadata.jsonl, metadata.tsv."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mmbu_async.model import Json
from mmbu_async.simulator.demo_rows import KINDS, Row

COLUMNS = (
    "question",
    "file_name",
    "question_type",
    "options",
    "metadata_medical_domain",
    "metadata_modality",
    "metadata_submodality",
    "metadata_specimen",
    "metadata_body_part",
    "metadata_topic",
    "microns_per_pixel",
    "metadata_stain",
    "task",
    "unique_id",
    "VQA_type",
    "answer",
)


def draw_split(folder: Path, rows: int = 60, seed: int = 0) -> Path:
    """Writes the split and returns the folder. The same arguments give the same bytes.

    Five rows show every task category and every route, 33 every kind of image.
    """
    (folder / "images").mkdir(parents=True, exist_ok=True)
    table: list[dict[str, Json]] = []
    for number in range(rows):
        kind, draw = KINDS[number % len(KINDS)]
        row = draw(np.random.default_rng([seed, number]), number // len(KINDS))
        name = f"images/{kind}_{number:04d}.{row.suffix}"
        _save(folder / name, row.pixels)
        table.append(_columns(row, name, f"demo-{kind}-{number:04d}"))
    _write(folder, table)
    return folder


def _columns(row: Row, file_name: str, unique_id: str) -> dict[str, Json]:
    lettered = [f"{chr(ord('A') + index)}) {option}" for index, option in enumerate(row.options)]
    values: dict[str, Json] = dict.fromkeys(COLUMNS) | row.about
    return values | {
        "question": row.question,
        "file_name": file_name,
        "question_type": "open",
        "options": lettered,
        "metadata_topic": row.task.partition("|")[2].strip(),
        "task": row.task,
        "unique_id": unique_id,
        "VQA_type": "open",
        "answer": row.answer,
    }


def _save(path: Path, pixels: NDArray[np.uint8] | NDArray[np.uint16]) -> None:
    image = Image.fromarray(pixels)
    if path.suffix == ".jpg":
        image.save(path, quality=92)
    else:
        image.save(path)


def _write(folder: Path, table: list[dict[str, Json]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) for row in table)
    (folder / "metadata.jsonl").write_text("".join(line + "\n" for line in lines), "utf-8")
    with (folder / "metadata.tsv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(COLUMNS)
        for row in table:
            cells = row | {"options": json.dumps(row["options"], ensure_ascii=False)}
            writer.writerow(["" if cells[column] is None else cells[column] for column in COLUMNS])
