"""The file that says which run was adapted from which, and on how much: base, adapted, training_size."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mmbu_async.errors import ConfigError, MmbuError
from mmbu_async.report.text_file import read_header, read_text

COLUMNS = ("base", "adapted", "training_size")
EXAMPLE = "base,adapted,training_size"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLine:
    """One line of the file."""

    line: int
    """From 1, the header included."""
    base: str
    """Name of the run of the model before the adaptation."""
    adapted: str
    training_size: float
    """Rows (images, or image-text pairs) that the adaptation was trained on."""


@contextmanager
def naming(path: Path, pair: PairLine) -> Iterator[None]:
    """Errors about a pair say in which line it stands."""
    try:
        yield
    except MmbuError as error:
        raise type(error)(f"{path}, line {pair.line}: {error}") from None


def read_pairs(path: Path) -> tuple[PairLine, ...]:
    """Read a CSV file with the columns base, adapted and training_size; others are passed over.

    Raises ConfigError naming file, line and column of what is wrong.
    """
    pairs = tuple(_pairs(path, read_text(path, "--pairs")))
    if not pairs:
        raise ConfigError(f"{path}: has no pairs; below the header `{EXAMPLE}` comes a line for each.")
    return pairs


def _pairs(path: Path, text: str) -> Iterator[PairLine]:
    _, separator = read_header(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    seen: dict[tuple[str, str], int] = {}
    try:
        places = _places(path, next(reader, []))
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            where = f"{path}, line {reader.line_num}"
            texts = {
                name: cells[place].strip() if place < len(cells) else "" for name, place in places.items()
            }
            for name, text in texts.items():
                if not text:
                    raise ConfigError(f"{where}: column {name} is empty.")
            base, adapted = texts["base"], texts["adapted"]
            if base == adapted:
                raise ConfigError(f"{where}: columns base and adapted name the same run, '{base}'.")
            if (base, adapted) in seen:
                raise ConfigError(f"{where}: has the pair of line {seen[base, adapted]} once more; drop one.")
            seen[base, adapted] = reader.line_num
            size = _size(where, texts["training_size"])
            yield PairLine(line=reader.line_num, base=base, adapted=adapted, training_size=size)
    except csv.Error as error:
        raise ConfigError(f"{path}, line {reader.line_num}: is no CSV ({error}).") from None


def _places(path: Path, header: list[str]) -> dict[str, int]:
    names = [cell.strip().lower() for cell in header]
    if missing := [name for name in COLUMNS if name not in names]:
        raise ConfigError(
            f"{path}, line 1: has no column {' and no column '.join(missing)}; the header is `{EXAMPLE}`, "
            "with commas."
        )
    for name in COLUMNS:
        if names.count(name) > 1:
            raise ConfigError(f"{path}, line 1: has column {name} twice.")
    return {name: names.index(name) for name in COLUMNS}


def _size(where: str, text: str) -> float:
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    if not math.isfinite(size) or size < 0 or "_" in text:
        raise ConfigError(
            f"{where}: column training_size holds '{text}'; write the number of training rows (images or "
            "pairs) in digits, as 1500000 or 1.5e6."
        )
    return size
