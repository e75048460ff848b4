"""MMBU's closed format: the paired options under letters, and a deterministic reader of the reply.

From the public split's paired options (for open rows, where the answer is among them), from rows whose
VQA_type is closed, and for object detection from candidate boxes where a row has some, else by IoU >= 0.5.
The wording of the options and of the output format is ours: the card prints none for the closed format.
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
    JudgeItem,
    Prompt,
    RawRow,
    Sample,
    Score,
    ScoreItem,
)
from mmbu_async.scoring.boxes import read_boxes
from mmbu_async.scoring.choices import read_choice
from mmbu_async.tasks.choice import CHOICE, choice_detail, lettered, score_letter
from mmbu_async.tasks.forms import AS_GIVEN, Form, shown_orders
from mmbu_async.tasks.mmbu_public import OBJECT_DETECTION, MmbuPublic
from mmbu_async.tasks.mmbu_scores import score_detections
from mmbu_async.tasks.texts import hashes, prompt_text


class MmbuClosed:
    """The benchmark `mmbu-closed`, over the same rows as `mmbu-public`."""

    name = "mmbu-closed"
    title = "MMBU, closed format"
    data: DataSpec = MmbuPublic.data
    rows = "those of mmbu-public whose answer is an option"
    routes: tuple[str, ...] = ("closed choice", "object detection")
    metric = "micro-F1 and accuracy"
    judge = ""
    licence = MmbuPublic.licence
    citation = MmbuPublic.citation

    def __init__(self, form: Form = AS_GIVEN) -> None:
        self._open = MmbuPublic.with_prompts()
        self._prompts = {
            "system": prompt_text("mmbu_system"),
            "suffix_choice": prompt_text("choice_suffix"),
            "suffix_object_detection": prompt_text("mmbu_suffix_object_detection"),
        }
        self.form = form
        self.name = type(self).name + form.suffix

    def samples(self, raw: RawRow) -> Sequence[Sample]:
        (sample,) = self._open.samples(raw)
        right = _right_place(sample)
        if right is None:
            return (sample,) if sample.route == OBJECT_DETECTION else ()
        return [
            replace(
                sample,
                id=sample.id if shown.rotation is None else f"{sample.id}@{shown.rotation}",
                route=CHOICE,
                options=shown.options(sample.options),
                answer=shown.letter(right),
                strata={**sample.strata, "right_letter": (shown.letter(right),)},
                fields={**sample.fields, **shown.fields(sample.id)},
            )
            for shown in shown_orders(self.form, sample.id, len(sample.options))
        ]

    def prompt(self, sample: Sample) -> Prompt:
        if sample.route == CHOICE:
            text = f"{sample.question}\n\n{lettered(sample.options)}\n\n{self._prompts['suffix_choice']}"
        else:
            text = f"{sample.question}\n\n{self._prompts['suffix_object_detection']}"
        return Prompt(parts=(ImageSlot(index=0), text), system=self._prompts["system"])

    def prompt_hashes(self) -> Mapping[str, str]:
        return hashes(self._prompts)

    def read(self, sample: Sample, completion: Completion) -> Answer:
        if sample.route == CHOICE:
            return read_choice(completion.text, sample.options)
        return self._open.read(sample, completion)

    def judge_item(self, sample: Sample, answer: Answer) -> JudgeItem | None:
        return None

    def score(self, rows: Sequence[ScoreItem]) -> list[Score]:
        detections = iter(score_detections([row for row in rows if row.sample.route != CHOICE]))
        return [
            score_letter(row.sample.answer, row.answer.text, choice_detail(row.sample, guess=False))
            if row.sample.route == CHOICE
            else next(detections)
            for row in rows
        ]

    def family(self, sample: Sample) -> str:
        return self._open.family(sample)

    def shown_route(self, sample: Sample) -> str:
        return "closed choice" if sample.route == CHOICE else "object detection"

    def blemishes(self, sample: Sample) -> tuple[str, ...]:
        return () if sample.question.strip() else ("the question is blank",)


def _right_place(sample: Sample) -> int | None:
    """The option that is the answer; None where there is none, or more than one."""
    answers = {_plain(sample.answer)}
    if sample.route == OBJECT_DETECTION:
        true = read_boxes(sample.answer, tagged=True).boxes
        same = [
            place
            for place, option in enumerate(sample.options)
            if true and read_boxes(option, tagged=True).boxes == true
        ]
    else:
        same = [place for place, option in enumerate(sample.options) if _plain(option) in answers]
    if not same and _is_closed(sample):
        # A closed row may name its answer by letter.
        letter = sample.answer.strip().rstrip(".)").upper()
        same = [place for place in range(len(sample.options)) if ascii_uppercase[place] == letter]
    return same[0] if len(same) == 1 and len(sample.options) > 1 else None


def _is_closed(sample: Sample) -> bool:
    return str(sample.fields.get("VQA_type") or "").strip().lower().startswith("closed")


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
