"""MMBU's closed format: the paired options under letters, and a deterministic reader of the reply.

From the public split's paired options (for open rows, where the answer is among them), from rows whose
VQA_type is closed, and for object detection from candidate boxes where a row has some and one of them is
true, else by IoU >= 0.5. The wording of the options and of the output format is ours: the card prints none
for the closed format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

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
    Status,
)
from mmbu_async.scoring.candidates import read_candidate
from mmbu_async.scoring.choices import read_choice
from mmbu_async.scoring.several import read_several
from mmbu_async.tasks.choice import CHOICE, OUTSIDE, choice_detail, lettered, position_of, score_letter
from mmbu_async.tasks.forms import AS_GIVEN, Form, shown_orders
from mmbu_async.tasks.mmbu_public import MULTI_LABEL, OBJECT_DETECTION, MmbuPublic
from mmbu_async.tasks.mmbu_scores import score_detections
from mmbu_async.tasks.mmbu_truths import right_places, with_its_box
from mmbu_async.tasks.texts import hashes, prompt_text

CANDIDATES = "candidate_boxes"
"""The route of object detection among candidate boxes."""
SEVERAL = "several_labels"
"""The route of rows from segmentation, where several options can be right: which ones say so is not shown."""
_ROUTES = {OBJECT_DETECTION: CANDIDATES, MULTI_LABEL: SEVERAL}
_SHOWN = {
    CHOICE: "closed choice",
    SEVERAL: "closed, several labels",
    CANDIDATES: "candidate boxes",
    OBJECT_DETECTION: "object detection",
}
CANDIDATES_LINE = "Candidate boxes, each [x, y, width, height] in pixels:"


class MmbuClosed:
    """The benchmark `mmbu-closed`, over the same rows as `mmbu-public`."""

    name = "mmbu-closed"
    title = "MMBU, closed format"
    data: DataSpec = MmbuPublic.data
    rows = "those of mmbu-public whose answer is an option"
    routes: tuple[str, ...] = (
        "closed choice",
        "closed, several labels",
        "candidate boxes",
        "object detection",
    )
    metric = "micro-F1 and accuracy"
    judge = ""
    licence = MmbuPublic.licence
    citation = MmbuPublic.citation

    def __init__(self, form: Form = AS_GIVEN) -> None:
        self._open = MmbuPublic.with_prompts()
        self._prompts = {
            "system": prompt_text("mmbu_system"),
            "suffix_choice": prompt_text("choice_suffix"),
            "suffix_several": prompt_text("choice_suffix_several"),
            "candidates": CANDIDATES_LINE,
            "suffix_object_detection": prompt_text("mmbu_suffix_object_detection"),
        }
        self.form = form
        self.name = type(self).name + form.suffix

    def samples(self, raw: RawRow) -> Sequence[Sample]:
        (sample,) = self._open.samples(with_its_box(raw))
        right = right_places(sample)
        if not right:
            return (sample,) if sample.route == OBJECT_DETECTION else ()
        return [
            replace(
                sample,
                id=sample.id if shown.rotation is None else f"{sample.id}@{shown.rotation}",
                route=_ROUTES.get(sample.route, CHOICE),
                options=shown.options(sample.options),
                answer=", ".join(sorted(map(shown.letter, right))),
                strata={**sample.strata, **position_of(right[0] if len(right) == 1 else None, shown)},
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
            suffix = "suffix_several" if sample.route == SEVERAL else "suffix_choice"
            text = f"{sample.question}\n\n{options}\n\n{self._prompts[suffix]}"
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
        if sample.route == SEVERAL:
            return read_several(completion.text, sample.options)
        return read_choice(completion.text, sample.options)

    def judge_item(self, sample: Sample, answer: Answer) -> JudgeItem | None:
        return None

    def score(self, rows: Sequence[ScoreItem]) -> list[Score]:
        detections = iter(score_detections([row for row in rows if row.sample.route == OBJECT_DETECTION]))
        scores = []
        for row in rows:
            if row.sample.route == OBJECT_DETECTION:
                scores.append(next(detections))
            elif row.sample.route == SEVERAL:
                scores.append(_score_several(row))
            else:
                detail = choice_detail(row.sample, guess=False)
                scores.append(score_letter(row.sample.answer, row.answer, detail))
        return scores

    def family(self, sample: Sample) -> str:
        return self._open.family(sample)

    def shown_route(self, sample: Sample) -> str:
        return _SHOWN[sample.route]

    def blemishes(self, sample: Sample) -> tuple[str, ...]:
        found = [] if sample.question.strip() else ["the question is blank"]
        if sample.route == OBJECT_DETECTION and sample.options:
            found.append("the candidate boxes hold no true one, or several: a box is asked for instead")
        return tuple(found)


def _score_several(row: ScoreItem) -> Score:
    """Right where all right options are named and no other; each label counts."""
    right, given = _letters(row.sample.answer), _letters(row.answer.text)
    found = len(right & given)
    # Picking one option at random is right only where one is.
    detail = choice_detail(row.sample, guess=False)
    if len(right) > 1:
        detail["chance"] = 0.0
    if row.answer.outside:
        detail["reason"] = OUTSIDE
    return Score(
        status=Status.SCORED,
        correct=right == given,
        tp=found,
        fp=len(given) - found + row.answer.outside,
        fn=len(right) - found,
        detail=detail,
    )


def _letters(text: str) -> set[str]:
    return set(text.split(", ")) - {""}
