"""MMBU-public, the public split of the Massive Multi-modal Biomedical Understanding benchmark.

Open questions over images, in four routes: object detection is scored by IoU; plain classification and
counting, classification of a drawn box and classification of a drawn mask go to an LLM judge.
Protocol: the dataset card of mmbu/mmbu-public.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mmbu_async.errors import RowError
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
from mmbu_async.scoring.answers import committed_answer
from mmbu_async.scoring.boxes import read_boxes
from mmbu_async.scoring.options import read_list, read_options, without_letters
from mmbu_async.tasks.fields import canonical_fields, shortened, undecodable
from mmbu_async.tasks.mmbu_scores import score_detections, score_judged
from mmbu_async.tasks.texts import hashes, prompt_text

OBJECT_DETECTION = "object_detection"
MULTI_LABEL = "multi_label"
SINGLE_ANSWER = "single_answer"

FAMILIES = (
    "object detection",
    "fine-grained classification (from detection)",
    "fine-grained classification (from segmentation)",
    "classification",
    "counting",
)
"""The five categories that a task starts with."""

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
"""The released columns."""

NEEDED = ("question", "task", "unique_id", "answer")
"""Columns that every row must have, and `options` where a judge reads it."""

PROMPT_SHA256: Mapping[str, str] = {
    "system": "8d2a65403eef69bcda02f4d07efe657b823cacf10f9d88099a99be97a2ab86a3",
    "suffix_object_detection": "5bbbf7b7ddb66a16f8b7ef16a04e904b1eb299c0e457f0beb69f21e9ccaf482d",
    "suffix_multi_label": "0501ec1f1d4a895ee7d1b1ef7633eb2e46a820f53cce6de93002ac4785487c4d",
    "suffix_single_answer": "8cbfd35f251e10a45ff2b7186e3f36ee1105107a046bf5decd36c62113c57bac",
}
"""The card's texts, byte for byte."""

_NOT_STRATA = frozenset({"question", "file_name", "options", "task", "unique_id", "answer"})
_LONGEST_STRATUM = 64
"""Characters. Longer texts in columns that we do not know are prose, not a property to group by."""


class MmbuPublic:
    """The benchmark `mmbu-public`."""

    name = "mmbu-public"
    title = "MMBU, public split, open format"
    data = DataSpec(hub="mmbu/mmbu-public")
    rows = "3,147"
    routes: tuple[str, ...] = (
        "object detection",
        "from segmentation",
        "from detection",
        "classification or counting",
    )
    metric = "accuracy and micro-F1"
    judge = "open_per_dataset_v3"
    licence = "see the dataset card of mmbu/mmbu-public"
    citation = (
        "MMBU: A Massive Multi-modal Biomedical Understanding Benchmark to Probe the Perception Capabilities "
        "of Vision-Language Models. ECCV 2026."
    )

    def __init__(self, prompts: Mapping[str, str]) -> None:
        """`prompts` holds the texts under the names of PROMPT_SHA256."""
        self._prompts = dict(prompts)

    @classmethod
    def with_prompts(cls) -> MmbuPublic:
        """The benchmark with the texts that the package carries."""
        return cls({name: prompt_text(f"mmbu_{name}") for name in PROMPT_SHA256})

    def samples(self, raw: RawRow) -> Sequence[Sample]:
        return (replace(self.sample(raw.fields, raw.position), images=raw.images),)

    def sample(self, row: Mapping[str, Json], position: int) -> Sample:
        """The row without its images."""
        fields = canonical_fields(row, COLUMNS)
        row_id = fields["unique_id"] or ""
        shown = row_id or f"number {position + 1}"
        for column in NEEDED:
            if column not in row:
                raise RowError(shown, f"there is no column '{column}'; add it, or name the column so")
        if not row_id.strip():
            raise RowError(shown, "column 'unique_id' is empty; give every row an id of its own")
        if broken := undecodable(fields):
            raise RowError(shown, f"column '{broken}' holds half a surrogate pair, no text; repair the file")
        task = fields["task"] or ""
        if _family(task) is None:
            known = ", ".join(FAMILIES)
            raise RowError(
                shown, f"column 'task' starts with none of the known ({known}); correct it", repr(task)
            )
        route = route_of(task)
        options = row_options(row, shown, route)
        fields["options"] = json.dumps(options, ensure_ascii=False)
        answer = _answer(row["answer"], fields["answer"], route)
        _check_answer(answer, shown, route)
        return Sample(
            id=row_id,
            position=position,
            question=fields["question"] or "",
            answer=answer,
            options=without_letters(options),
            route=route,
            strata=_strata(fields, task),
            fields=fields,
        )

    def prompt(self, sample: Sample) -> Prompt:
        suffix = self._prompts[f"suffix_{sample.route}"]
        return Prompt(
            parts=(ImageSlot(index=0), f"{sample.question}\n\n{suffix}"), system=self._prompts["system"]
        )

    def prompt_hashes(self) -> Mapping[str, str]:
        return hashes(self._prompts)

    def prompt_texts(self) -> Mapping[str, str]:
        return self._prompts

    def read(self, sample: Sample, completion: Completion) -> Answer:
        return committed_answer(completion.text)

    def judge_item(self, sample: Sample, answer: Answer) -> JudgeItem | None:
        if sample.route == OBJECT_DETECTION or not answer.text.strip():
            return None
        return JudgeItem(
            question=sample.question,
            labels=sample.options,
            true_answer=sample.answer,
            model_answer=answer.text,
        )

    def score(self, rows: Sequence[ScoreItem]) -> list[Score]:
        detections = iter(score_detections([row for row in rows if row.sample.route == OBJECT_DETECTION]))
        return [
            next(detections)
            if row.sample.route == OBJECT_DETECTION
            else score_judged(row, several=row.sample.route == MULTI_LABEL)
            for row in rows
        ]

    def family(self, sample: Sample) -> str:
        return _family(_task(sample)) or ""

    def shown_route(self, sample: Sample) -> str:
        """Which of the card's four routes, in its words; two of them share a suffix."""
        if sample.route == OBJECT_DETECTION:
            return "object detection"
        if sample.route == MULTI_LABEL:
            return "from segmentation"
        return "from detection" if "from detection" in _task(sample).lower() else "classification or counting"

    def blemishes(self, sample: Sample) -> tuple[str, ...]:
        """What a validation should tell of a row that is sent as it is all the same."""
        found: list[str] = []
        if not sample.question.strip():
            found.append("the question is blank")
        elif sample.question.endswith(" nan"):
            found.append("the question ends in ' nan'")
        if sample.route == OBJECT_DETECTION:
            if rejected := read_boxes(sample.answer, tagged=True).rejected:
                found.append(f"the truth holds a group that is no box ({rejected[0]})")
        elif not sample.options:
            found.append("there are no options to judge by")
        elif sample.route == SINGLE_ANSWER and sample.answer not in sample.options:
            found.append("the answer is none of the options")
        return tuple(found)


def _task(sample: Sample) -> str:
    return str(sample.fields.get("task") or "")


def _family(task: str) -> str | None:
    start = task.strip().lower()
    return next((family for family in FAMILIES if start.startswith(family)), None)


def route_of(task: str) -> str:
    """Only the start of a task makes it object detection; see the card's routing table."""
    words = task.strip().lower()
    if words.startswith("object detection"):
        return OBJECT_DETECTION
    return MULTI_LABEL if "from segmentation" in words else SINGLE_ANSWER


def row_options(row: Mapping[str, Json], shown: str, route: str) -> tuple[str, ...]:
    """The option texts as they stand, letters included. Raises RowError."""
    if route != OBJECT_DETECTION and "options" not in row:
        raise RowError(shown, "there is no column 'options', by which a judge grades; add it")
    value = row.get("options")
    try:
        return read_options(_as_texts(value) if route == OBJECT_DETECTION else value)
    except ValueError as error:
        raise RowError(
            shown, f"column 'options' {error}; write a JSON list of texts", shortened(row["options"])
        ) from None


def _as_texts(value: Json) -> Json:
    """Candidate boxes may be lists or objects, in a list or one a line: each becomes a text."""
    if isinstance(value, str):
        lines = [line.strip() for line in value.splitlines() if line.strip()]
        if len(lines) > 1 and all(line[0] in "[{" and line[-1] in "]}" for line in lines):
            return lines
        value = read_list(value.strip()) or value
    if isinstance(value, list | tuple):
        return [json.dumps(item) if isinstance(item, list | tuple | dict) else item for item in value]
    return value


def _answer(value: Json, text: str | None, route: str) -> str:
    """The truth as the row writes it; a list of labels in the form that the suffix asks models for."""
    if route == OBJECT_DETECTION or text is None:
        return text or ""
    try:
        labels = value if isinstance(value, list | tuple) else read_list(text.strip())
        return text if labels is None else ", ".join(read_options(labels))
    except ValueError:
        return text


def _check_answer(answer: str, shown: str, route: str) -> None:
    if not answer.strip():
        raise RowError(shown, "column 'answer' is empty; fill it in, or take the row out")
    if route == OBJECT_DETECTION and (reason := read_boxes(answer, tagged=True).reason):
        raise RowError(
            shown, f"column 'answer' holds no box ({reason}); write [x, y, width, height]", shortened(answer)
        )


def _strata(fields: Mapping[str, str | None], task: str) -> dict[str, tuple[str, ...]]:
    strata: dict[str, tuple[str, ...]] = {}
    topics = tuple(dict.fromkeys(topic.strip() for topic in task.split("|")[1:] if topic.strip()))
    if topics:
        strata["task"] = topics
    for name, text in fields.items():
        if name in _NOT_STRATA or text is None:
            continue
        if name in COLUMNS or (len(text) <= _LONGEST_STRATUM and "\n" not in text):
            strata[name] = (text,)
    return strata
