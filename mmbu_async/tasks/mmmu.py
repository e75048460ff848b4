"""MMMU and MMMU-Pro: college-level questions with images among the words.

Images stand in question and options at their placeholders `<image 1>` …; the prompt is cut there. Letters and
open answers are read by the official rules, re-implemented in scoring/mmmu.py; where they find nothing a
letter is drawn, by a generator seeded with the row's id, so that the order of replies does not matter.
Yue et al., arXiv:2311.16502 and arXiv:2409.02813.
"""

from __future__ import annotations

import re
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
    Status,
)
from mmbu_async.scoring import mmmu_sensible
from mmbu_async.scoring.letters import letters
from mmbu_async.scoring.mmmu import DRAWN, choice_is_right, open_is_right, prompt_text, read_choice
from mmbu_async.scoring.mmmu_open import read_candidates, read_open
from mmbu_async.scoring.options import read_list, read_options
from mmbu_async.tasks.choice import CHOICE, NO_TRUTH, check_options, choice_detail, score_letter
from mmbu_async.tasks.fields import canonical_fields
from mmbu_async.tasks.tabular import find_columns, text_of
from mmbu_async.tasks.texts import hashes

OPEN = "open"
COLUMNS = ("id", "question", "options", "answer")
MMMU = "Yue et al., MMMU, CVPR 2024, arXiv:2311.16502."
MMMU_PRO = "Yue et al., MMMU-Pro, arXiv:2409.02813."
MOST_IMAGES = 7
_PLACEHOLDER = re.compile(r"<image (\d+)>")
_CHOICE_FORMAT = "{}\n{}\nAnswer with the option's letter from the given choices directly."
_OPEN_FORMAT = "{}\nAnswer the question using a single word or phrase."
_VISION_FORMAT = "Answer with the option letter from the given choices directly."

DISCIPLINES: Mapping[str, tuple[str, ...]] = {
    "Art and Design": ("Art", "Art_Theory", "Design", "Music"),
    "Business": ("Accounting", "Economics", "Finance", "Manage", "Marketing"),
    "Science": ("Biology", "Chemistry", "Geography", "Math", "Physics"),
    "Health and Medicine": (
        *("Basic_Medical_Science", "Clinical_Medicine", "Diagnostics_and_Laboratory_Medicine"),
        *("Pharmacy", "Public_Health"),
    ),
    "Humanities and Social Science": ("History", "Literature", "Sociology", "Psychology"),
    "Tech and Engineering": (
        *("Agriculture", "Architecture_and_Engineering", "Computer_Science", "Electronics"),
        *("Energy_and_Power", "Materials", "Mechanical_Engineering"),
    ),
}
"""The six disciplines and thirty subjects, in the order of the official tables."""
SUBJECTS = tuple(subject for subjects in DISCIPLINES.values() for subject in subjects)
_DISCIPLINE_OF = {subject: name for name, subjects in DISCIPLINES.items() for subject in subjects}


class Mmmu:
    """`mmmu-val`, `mmmu-test`, and MMMU-Pro with ten options or in vision only."""

    routes: tuple[str, ...] = ("multiple choice", "open question")
    metric = "micro-averaged accuracy"
    judge = ""
    licence = "Apache-2.0 (annotations); images under the licences of their sources"

    def __init__(
        self, name: str, title: str, rows: str, data: DataSpec, *, citation: str, without: str = ""
    ) -> None:
        """`without`: the column that rows of this kind may lack."""
        self.name = name
        self.citation = citation
        self._wanted = {column: (column,) for column in COLUMNS if column != without}
        self._optional = {without: (without,)} if without else {}
        self.title = title
        self.rows = rows
        self.data = data
        self._prompts = {"choice": _CHOICE_FORMAT, "open": _OPEN_FORMAT, "vision": _VISION_FORMAT}

    def samples(self, raw: RawRow) -> Sequence[Sample]:
        found = find_columns(raw, self._wanted, self._optional)
        fields = canonical_fields(raw.fields, ())
        row_id = text_of(raw, found["id"])
        if not row_id:
            raise RowError(f"number {raw.position + 1}", "column 'id' is empty; give every row an id")
        options = _options(raw.fields[found["options"]], row_id)
        route = CHOICE if options else OPEN
        answer = fields.get(found.get("answer", "")) or ""
        known = answer.strip().lower() not in NO_TRUTH
        question = fields.get(found.get("question", "")) or ""
        sample = Sample(
            id=row_id,
            position=raw.position,
            question=question,
            answer=answer if known else "",
            options=options,
            route=route,
            images=raw.images,
            strata=_strata(fields, row_id, route),
            fields={**fields, "image_columns": ",".join(raw.image_columns)},
        )
        self._check(sample, raw)
        return (sample,)

    def prompt(self, sample: Sample) -> Prompt:
        if not sample.question:
            return Prompt(parts=(ImageSlot(index=0), self._prompts["vision"]))
        if sample.route == CHOICE:
            text = prompt_text(self._prompts["choice"], sample.question, sample.options)
        else:
            text = prompt_text(self._prompts["open"], sample.question, ())
        return Prompt(parts=tuple(_interleaved(text, _numbers(sample))))

    def prompt_hashes(self) -> Mapping[str, str]:
        return hashes(self._prompts)

    def prompt_texts(self) -> Mapping[str, str]:
        return self._prompts

    def read(self, sample: Sample, completion: Completion) -> Answer:
        """By the official rules; the second reading, which loses fewer answers, goes along."""
        if sample.route == CHOICE:
            answer = read_choice(completion.text, sample.options, row_id=sample.id)
            return replace(answer, second=mmmu_sensible.read_choice(completion.text, sample.options).text)
        return replace(read_open(completion.text), second=mmmu_sensible.read_open(completion.text).text)

    def judge_item(self, sample: Sample, answer: Answer) -> JudgeItem | None:
        return None

    def score(self, rows: Sequence[ScoreItem]) -> list[Score]:
        return [self._score(row.sample, row.answer) for row in rows]

    def family(self, sample: Sample) -> str:
        return sample.strata.get("discipline", (self.title,))[0]

    def shown_route(self, sample: Sample) -> str:
        return "multiple choice" if sample.route == CHOICE else "open question"

    def blemishes(self, sample: Sample) -> tuple[str, ...]:
        found = []
        named = {int(n) for n in _PLACEHOLDER.findall(sample.question + "".join(sample.options))}
        unnamed = [n for n in _numbers(sample) if n not in named]
        if unnamed and sample.question:
            found.append("an image has no placeholder; it is put before the question")
        if not sample.answer:
            found.append("the answer is not public: replies are kept, not scored")
        return tuple(found)

    def _score(self, sample: Sample, answer: Answer) -> Score:
        if sample.route == CHOICE:
            detail = choice_detail(sample, guess=answer.how == DRAWN)
            if not sample.answer:
                return Score(status=Status.UNGRADED, detail=detail)
            gold = _gold(sample.answer)
            right = choice_is_right(gold, answer.text)
            detail |= _second(answer, right=choice_is_right(gold, answer.second or ""))
            return score_letter("right", replace(answer, text="right") if right else answer, detail)
        if not sample.answer:
            return Score(status=Status.UNGRADED)
        gold = _gold(sample.answer)
        candidates = read_candidates(answer.text)
        right = open_is_right(gold, candidates)
        return Score(
            status=Status.SCORED,
            correct=right,
            tp=int(right),
            fp=int(bool(candidates) and not right),
            fn=int(not right),
            detail=_second(answer, right=mmmu_sensible.open_is_right(gold, answer.second or "")),
        )

    def _check(self, sample: Sample, raw: RawRow) -> None:
        """Every placeholder has its image."""
        have = set(_numbers(sample))
        for number in _PLACEHOLDER.findall(sample.question + " ".join(sample.options)):
            if int(number) not in have:
                raise RowError(
                    sample.id,
                    f"names <image {number}>, but column 'image_{number}' is empty; complete the row",
                )
        if not sample.question and not raw.images:
            raise RowError(sample.id, "has neither a question nor an image; complete the row")
        if sample.route == OPEN and sample.fields.get("question_type") == "multiple-choice":
            raise RowError(sample.id, "is multiple-choice by its 'question_type', but has no options")
        if sample.route == CHOICE:
            _check_choice(sample)


def _second(answer: Answer, *, right: bool) -> dict[str, Json]:
    """The second, sensible score beside the official one."""
    return {"second_answer": answer.second, "second_right": right} if answer.second is not None else {}


def _check_choice(sample: Sample) -> None:
    check_options(sample.id, sample.options)
    golds = _gold(sample.answer) if sample.answer else []
    for gold in [golds] if isinstance(golds, str) else golds:
        if gold not in tuple(letters(len(sample.options))):
            raise RowError(
                sample.id,
                f"column 'answer' is none of the letters of its {len(sample.options)} options; correct it",
                repr(gold),
            )


def _options(value: Json, row_id: str) -> tuple[str, ...]:
    try:
        return read_options(value)
    except ValueError as error:
        raise RowError(row_id, f"column 'options' {error}; correct it") from None


def _numbers(sample: Sample) -> list[int]:
    """The number that each image carries in its column's name, `image_3` -> 3; by place where it has none."""
    columns = str(sample.fields.get("image_columns") or "").split(",")
    found = []
    for place in range(len(sample.images)):
        column = columns[place] if place < len(columns) else ""
        digits = column.rpartition("_")[2]
        found.append(int(digits) if digits.isdigit() else place + 1)
    return found


def _interleaved(text: str, numbers: Sequence[int]) -> list[str | ImageSlot]:
    """The text cut at its placeholders, the images in their places; what has no place goes before all."""
    pieces = _PLACEHOLDER.split(text)
    named = {int(number) for number in pieces[1::2]}
    parts: list[str | ImageSlot] = [
        ImageSlot(index=place) for place, number in enumerate(numbers) if number not in named
    ]
    for place, piece in enumerate(pieces):
        if place % 2:
            parts.append(ImageSlot(index=numbers.index(int(piece))))
        elif piece:
            parts.append(piece)
    return parts


def _gold(answer: str) -> str | list[str]:
    """Open rows can have several right answers, as a list in the text."""
    found = read_list(answer)
    return [str(item) for item in found] if found is not None else answer


def _strata(fields: Mapping[str, str | None], row_id: str, route: str) -> dict[str, tuple[str, ...]]:
    subject = fields.get("config") or fields.get("subject") or "_".join(row_id.split("_")[1:-1])
    strata: dict[str, tuple[str, ...]] = {"subject": (subject,)} if subject else {}
    if subject in _DISCIPLINE_OF:
        strata["discipline"] = (_DISCIPLINE_OF[subject],)
    for column, name in (("topic_difficulty", "difficulty"), ("subfield", "subfield")):
        if value := fields.get(column):
            strata[name] = (value,)
    if kinds := fields.get("img_type"):
        strata["image_type"] = tuple(str(kind) for kind in read_list(kinds) or (kinds,))
    strata["question_type"] = ("multiple-choice" if route == CHOICE else "open",)
    return strata


_IMAGES = tuple(f"image_{number}" for number in range(1, MOST_IMAGES + 1))


def mmmu_validation() -> Mmmu:
    return Mmmu(
        "mmmu-val",
        "MMMU, validation",
        "900",
        DataSpec(
            hub="MMMU/MMMU",
            configs=SUBJECTS,
            split="validation",
            tables=("*/validation-*.parquet", "validation*.parquet", "*validation*.parquet"),
            image_columns=_IMAGES,
        ),
        citation=MMMU,
    )


def mmmu_test() -> Mmmu:
    return Mmmu(
        "mmmu-test",
        "MMMU, test (answers are not public)",
        "10,500",
        DataSpec(
            hub="MMMU/MMMU",
            configs=SUBJECTS,
            split="test",
            tables=("*/test-*.parquet", "test*.parquet", "*test*.parquet"),
            image_columns=_IMAGES,
        ),
        citation=MMMU,
        without="answer",
    )


def mmmu_pro_standard() -> Mmmu:
    return Mmmu(
        "mmmu-pro",
        "MMMU-Pro, ten options",
        "1,730",
        DataSpec(
            hub="MMMU/MMMU_Pro",
            configs=("standard (10 options)",),
            split="test",
            tables=("standard (10 options)/test-*.parquet", "*10*/test-*.parquet", "test-*.parquet"),
            image_columns=_IMAGES,
        ),
        citation=MMMU_PRO,
    )


def mmmu_pro_vision() -> Mmmu:
    return Mmmu(
        "mmmu-pro-vision",
        "MMMU-Pro, question and options inside the image",
        "1,730",
        DataSpec(
            hub="MMMU/MMMU_Pro",
            configs=("vision",),
            split="test",
            tables=("vision/test-*.parquet", "*vision*.parquet"),
            image_columns=("image",),
        ),
        citation=MMMU_PRO,
        without="question",
    )
