"""The legacy visual question answering sets: PathVQA, VQA-RAD, SLAKE. Closed questions by yes or no (or
another single word), open ones by their text.

Closed rows are right where the reply's yes or no, or its text, is the answer. Open rows are right where the
normalised texts are equal; token recall and F1, which the literature gives too, stand in the score's detail.
The wording of the prompt is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mmbu_async.errors import RowError
from mmbu_async.model import (
    Answer,
    Completion,
    DataSpec,
    Json,
    JudgeItem,
    Prompt,
    RawRow,
    Sample,
    Score,
    ScoreItem,
    Status,
)
from mmbu_async.scoring.exact import committed_text, exact_match, overlap, read_yes_no
from mmbu_async.tasks.choice import NO_TRUTH, one_image_first
from mmbu_async.tasks.fields import canonical_fields
from mmbu_async.tasks.tabular import find_columns, text_of
from mmbu_async.tasks.texts import hashes, prompt_text

CLOSED = "closed"
OPEN = "open"
YES_NO = frozenset({"yes", "no", "是", "不是", "否", "有", "没有"})


class ShortAnswers:
    """One legacy set."""

    routes: tuple[str, ...] = ("closed question", "open question")
    metric = "accuracy, closed and open"
    judge = ""

    def __init__(
        self,
        name: str,
        title: str,
        rows: str,
        data: DataSpec,
        *,
        licence: str,
        citation: str,
        optional: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.name = name
        self.title = title
        self.rows = rows
        self.data = data
        self.licence = licence
        self.citation = citation
        self._optional = {"id": ("qid", "question_id", "id", "index"), **(optional or {})}
        self._prompts = {"suffix": prompt_text("short_answer_suffix")}

    def samples(self, raw: RawRow) -> Sequence[Sample]:
        wanted = {"question": ("question", "Question"), "answer": ("answer", "Answer")}
        found = find_columns(raw, wanted, self._optional)
        row_id = text_of(raw, found.get("id")) or str(raw.position)
        answer = text_of(raw, found["answer"])
        if not raw.images:
            raise RowError(row_id, "has no image; complete the row")
        kind = text_of(raw, found.get("kind")).lower()
        closed = kind == CLOSED if kind in (CLOSED, OPEN) else answer.lower() in YES_NO
        strata = {
            meaning: (value,)
            for meaning in self._optional
            if meaning not in ("id", "kind") and (value := text_of(raw, found.get(meaning)))
        }
        return (
            Sample(
                id=row_id,
                position=raw.position,
                question=text_of(raw, found["question"]),
                answer="" if answer.lower() in NO_TRUTH else answer,
                route=CLOSED if closed else OPEN,
                images=raw.images,
                strata={**strata, "answer_type": (CLOSED if closed else OPEN,)},
                fields=canonical_fields(raw.fields, ()),
            ),
        )

    def prompt(self, sample: Sample) -> Prompt:
        return one_image_first(f"{sample.question}\n\n{self._prompts['suffix']}", len(sample.images))

    def prompt_hashes(self) -> Mapping[str, str]:
        return hashes(self._prompts)

    def prompt_texts(self) -> Mapping[str, str]:
        return self._prompts

    def read(self, sample: Sample, completion: Completion) -> Answer:
        if sample.answer.lower() in ("yes", "no"):
            return read_yes_no(completion.text)
        return committed_text(completion.text)

    def judge_item(self, sample: Sample, answer: Answer) -> JudgeItem | None:
        return None

    def score(self, rows: Sequence[ScoreItem]) -> list[Score]:
        return [self._score(row) for row in rows]

    def family(self, sample: Sample) -> str:
        return f"{sample.route} questions"

    def shown_route(self, sample: Sample) -> str:
        return f"{sample.route} question"

    def blemishes(self, sample: Sample) -> tuple[str, ...]:
        return () if sample.question.strip() else ("the question is blank",)

    def _score(self, row: ScoreItem) -> Score:
        truth, given = row.sample.answer, row.answer.text
        if not truth:
            return Score(status=Status.UNGRADED)
        detail: dict[str, Json] = {}
        if row.sample.route == OPEN:
            shared = overlap(given, truth)
            detail = {"token_recall": shared.recall, "token_f1": shared.f1}
        right = exact_match(given, truth)
        answered = bool(given.strip())
        return Score(
            status=Status.SCORED,
            correct=right,
            tp=int(right),
            fp=int(answered and not right),
            fn=int(not right),
            detail=detail,
        )


def path_vqa() -> ShortAnswers:
    """`pathvqa`."""
    return ShortAnswers(
        "pathvqa",
        "PathVQA, test",
        "6,719",
        DataSpec(
            hub="flaviagiammarino/path-vqa",
            split="test",
            tables=("data/test-*.parquet", "test*.parquet", "*.parquet"),
            image_columns=("image",),
        ),
        licence="MIT",
        citation="He et al., PathVQA, arXiv:2003.10286.",
    )


def vqa_rad() -> ShortAnswers:
    """`vqa-rad`."""
    return ShortAnswers(
        "vqa-rad",
        "VQA-RAD, test",
        "451",
        DataSpec(
            hub="flaviagiammarino/vqa-rad",
            split="test",
            tables=("data/test-*.parquet", "test*.parquet", "*.parquet"),
            image_columns=("image",),
        ),
        licence="CC0 1.0",
        citation="Lau et al., A dataset of clinically generated visual questions, Scientific Data 5, 2018.",
        optional={"kind": ("answer_type",), "organ": ("image_organ",), "question_type": ("question_type",)},
    )


def slake() -> ShortAnswers:
    """`slake`, English and Chinese together; `--where q_lang=en` takes one."""
    return ShortAnswers(
        "slake",
        "SLAKE, test, English and Chinese",
        "2,094",
        DataSpec(
            hub="BoKelvin/SLAKE",
            split="test",
            tables=("test.json", "test*.jsonl", "test*.parquet"),
            image_columns=("img_name", "image"),
            image_folders=("imgs", "", "images"),
            archives=("imgs.zip",),
        ),
        licence="CC BY 4.0",
        citation="Liu et al., SLAKE, ISBI 2021, arXiv:2102.09542.",
        optional={
            "kind": ("answer_type",),
            "language": ("q_lang",),
            "modality": ("modality",),
            "location": ("location",),
            "content_type": ("content_type",),
        },
    )
