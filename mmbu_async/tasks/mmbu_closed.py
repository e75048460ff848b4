"""MMBU's closed format: the paired options under letters, and a deterministic reader of the reply.

From the public split's paired options (for open rows, where the answer is among them), from rows whose
VQA_type is closed, and for object detection from candidate boxes where a row has some and one of them is
true, else by IoU >= 0.5. The wording of the options and of the output format is ours: the card prints none
for the closed format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import ascii_uppercase

from mmbu_async.model import (
    Answer,
    Completion,
    DataSpec,
    ImageSlot,
    Json,
    JudgeItem,
    Prompt,
    RawRow,
    Sample,
    Score,
    ScoreItem,
)
from mmbu_async.scoring.candidates import read_candidate, right_candidates
from mmbu_async.scoring.choices import read_choice
from mmbu_async.scoring.options import without_letters
from mmbu_async.tasks.choice import CHOICE, choice_detail, lettered, score_letter
from mmbu_async.tasks.forms import AS_GIVEN, Form, shown_orders
from mmbu_async.tasks.mmbu_public import OBJECT_DETECTION, MmbuPublic, route_of, row_options
from mmbu_async.tasks.mmbu_scores import score_detections
from mmbu_async.tasks.texts import hashes, prompt_text

CANDIDATES = "candidate_boxes"
"""The route of object detection among candidate boxes."""
CANDIDATES_LINE = "Candidate boxes, each [x, y, width, height] in pixels:"


class MmbuClosed:
    """The benchmark `mmbu-closed`, over the same rows as `mmbu-public`."""

    name = "mmbu-closed"
    title = "MMBU, closed format"
    data: DataSpec = MmbuPublic.data
    rows = "those of mmbu-public whose answer is an option"
    routes: tuple[str, ...] = ("closed choice", "candidate boxes", "object detection")
    metric = "micro-F1 and accuracy"
    judge = ""
    licence = MmbuPublic.licence
    citation = MmbuPublic.citation

    def __init__(self, form: Form = AS_GIVEN) -> None:
        self._open = MmbuPublic.with_prompts()
        self._prompts = {
            "system": prompt_text("mmbu_system"),
            "suffix_choice": prompt_text("choice_suffix"),
            "candidates": CANDIDATES_LINE,
            "suffix_object_detection": prompt_text("mmbu_suffix_object_detection"),
        }
        self.form = form
        self.name = type(self).name + form.suffix

    def samples(self, raw: RawRow) -> Sequence[Sample]:
        (sample,) = self._open.samples(_with_its_box(raw))
        right = _right_place(sample)
        detection = sample.route == OBJECT_DETECTION
        if right is None:
            return (sample,) if detection else ()
        return [
            replace(
                sample,
                id=sample.id if shown.rotation is None else f"{sample.id}@{shown.rotation}",
                route=CANDIDATES if detection else CHOICE,
                options=shown.options(sample.options),
                answer=shown.letter(right),
                strata={**sample.strata, "right_letter": (shown.letter(right),)},
                fields={**sample.fields, **shown.fields(sample.id)},
            )
            for shown in shown_orders(self.form, sample.id, len(sample.options))
        ]

    def prompt(self, sample: Sample) -> Prompt:
        if sample.route == OBJECT_DETECTION:
            text = f"{sample.question}\n\n{self._prompts['suffix_object_detection']}"
        else:
            options = lettered(sample.options)
            if sample.route == CANDIDATES:
                options = f"{self._prompts['candidates']}\n{options}"
            text = f"{sample.question}\n\n{options}\n\n{self._prompts['suffix_choice']}"
        return Prompt(parts=(ImageSlot(index=0), text), system=self._prompts["system"])

    def prompt_hashes(self) -> Mapping[str, str]:
        return hashes(self._prompts)

    def prompt_texts(self) -> Mapping[str, str]:
        return self._prompts

    def read(self, sample: Sample, completion: Completion) -> Answer:
        if sample.route == OBJECT_DETECTION:
            return self._open.read(sample, completion)
        if sample.route == CANDIDATES:
            return read_candidate(completion.text, sample.options)
        return read_choice(completion.text, sample.options)

    def judge_item(self, sample: Sample, answer: Answer) -> JudgeItem | None:
        return None

    def score(self, rows: Sequence[ScoreItem]) -> list[Score]:
        detections = iter(score_detections([row for row in rows if row.sample.route == OBJECT_DETECTION]))
        return [
            next(detections)
            if row.sample.route == OBJECT_DETECTION
            else score_letter(row.sample.answer, row.answer.text, choice_detail(row.sample, guess=False))
            for row in rows
        ]

    def family(self, sample: Sample) -> str:
        return self._open.family(sample)

    def shown_route(self, sample: Sample) -> str:
        if sample.route == CANDIDATES:
            return "candidate boxes"
        return "closed choice" if sample.route == CHOICE else "object detection"

    def blemishes(self, sample: Sample) -> tuple[str, ...]:
        found = [] if sample.question.strip() else ["the question is blank"]
        if sample.route == OBJECT_DETECTION and sample.options:
            found.append("the candidate boxes hold no true one, or several: a box is asked for instead")
        return tuple(found)


def _with_its_box(raw: RawRow) -> RawRow:
    """The row of closed detection, its answer a box also where it was named by letter."""
    row = raw.fields
    place = _place(str(row.get("answer") or ""))
    if place is None or route_of(str(row.get("task") or "")) != OBJECT_DETECTION or not _is_closed(row):
        return raw
    options = without_letters(row_options(row, str(row.get("unique_id")), OBJECT_DETECTION))
    return replace(raw, fields={**row, "answer": options[place]}) if place < len(options) else raw


def _right_place(sample: Sample) -> int | None:
    """The option that is the answer; None where there is none, or more than one."""
    if sample.route == OBJECT_DETECTION:
        same = right_candidates(sample.answer, sample.options)
    else:
        answer = _plain(sample.answer)
        same = [place for place, option in enumerate(sample.options) if _plain(option) == answer]
    if not same and _is_closed(sample.fields):
        # A closed row may name its answer by letter.
        place = _place(sample.answer)
        same = [place] if place is not None and place < len(sample.options) else []
    return same[0] if len(same) == 1 and len(sample.options) > 1 else None


def _place(answer: str) -> int | None:
    """Of the option that a letter names."""
    letter = answer.strip().rstrip(".)").upper()
    return ascii_uppercase.index(letter) if len(letter) == 1 and letter in ascii_uppercase else None


def _is_closed(fields: Mapping[str, Json]) -> bool:
    return str(fields.get("VQA_type") or "").strip().lower().startswith("closed")


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
