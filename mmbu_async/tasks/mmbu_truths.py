"""What is right in a closed row of MMBU: a label, several, or a box, named by its text or by its letter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from string import ascii_uppercase

from mmbu_async.model import Json, RawRow, Sample
from mmbu_async.scoring.candidates import right_candidates
from mmbu_async.scoring.labels import split_labels
from mmbu_async.scoring.options import without_letters
from mmbu_async.tasks.mmbu_public import MULTI_LABEL, OBJECT_DETECTION, route_of, row_options

_LETTERS = re.compile(r"[A-Za-z][.)]?(?:\s*[,;&]\s*[A-Za-z][.)]?)*")


def right_places(sample: Sample) -> tuple[int, ...]:
    """Places of the right options, in order; none where the answer is not among them, or two are alike.

    Only a row from segmentation can have several.
    """
    if len(sample.options) < 2:
        return ()
    found: list[int] | None
    if sample.route == OBJECT_DETECTION:
        found = right_candidates(sample.answer, sample.options)
    elif sample.route == MULTI_LABEL:
        found = _by_texts(sample, split_labels(sample.answer, sample.options))
    else:
        found = _by_texts(sample, (sample.answer,))
    if not found and is_closed(sample.fields):
        found = _by_letters(sample.answer, len(sample.options))
    if not found or (len(found) > 1 and sample.route != MULTI_LABEL):
        return ()
    return tuple(sorted(set(found)))


def with_its_box(raw: RawRow) -> RawRow:
    """The row of closed detection, its answer a box also where it was named by letter."""
    row = raw.fields
    if route_of(str(row.get("task") or "")) != OBJECT_DETECTION or not is_closed(row):
        return raw
    options = without_letters(row_options(row, str(row.get("unique_id")), OBJECT_DETECTION))
    places = _by_letters(str(row.get("answer") or ""), len(options))
    return replace(raw, fields={**row, "answer": options[places[0]]}) if len(places) == 1 else raw


def is_closed(fields: Mapping[str, Json]) -> bool:
    return str(fields.get("VQA_type") or "").strip().lower().startswith("closed")


def _by_texts(sample: Sample, labels: tuple[str, ...]) -> list[int] | None:
    """The options that these labels are; None where one is no option, or two."""
    texts = [_plain(option) for option in sample.options]
    if not all(texts.count(_plain(label)) == 1 for label in labels):
        return None
    return [texts.index(_plain(label)) for label in labels]


def _by_letters(answer: str, options: int) -> list[int]:
    """The options that letters name, `B` or `A, C`; none where one is out of range."""
    if not _LETTERS.fullmatch(answer.strip()):
        return []
    places = [ascii_uppercase.index(letter) for letter in re.findall("[A-Z]", answer.upper())]
    return places if all(place < options for place in places) else []


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
