"""What multiple-choice benchmarks share: options under letters, forms, the ladder, and scores by letter.

A benchmark of this kind says where its columns are and how a row is worded; the rest is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase

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
from mmbu_async.scoring.choices import read_choice
from mmbu_async.tasks.fields import canonical_fields
from mmbu_async.tasks.forms import AS_GIVEN, Form, Shown, shown_orders
from mmbu_async.tasks.texts import hashes

CHOICE = "choice"
"""The route of rows with lettered options."""
NO_TRUTH = frozenset({"", "?", "-", "none", "null", "nan"})
"""What stands in the answer column of a split whose answers are not public."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceRow:
    """A row as its benchmark reads it."""

    id: str
    question: str
    options: tuple[str, ...]
    right: int | None
    """Place of the right option; None where the truth is not public."""
    family: str
    strata: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cluster: str = ""
    """Rows of the same cluster (a figure, say) are not independent; '' for none."""


class MultipleChoice(ABC):
    """Base of benchmarks whose rows are a question with lettered options."""

    name: str
    title: str
    data: DataSpec
    rows: str
    routes: tuple[str, ...] = ("multiple choice",)
    metric = "accuracy"
    judge = ""
    licence: str
    citation: str
    guesses: frozenset[str] = frozenset()
    """Rungs of the ladder that are guesses: their rows are reported apart."""

    def __init__(self, prompts: Mapping[str, str], form: Form = AS_GIVEN) -> None:
        self._prompts = dict(prompts)
        self.form = form
        self.name = type(self).name + form.suffix

    @abstractmethod
    def row(self, raw: RawRow) -> ChoiceRow | None:
        """What a raw row asks; None where it is none of this benchmark's. Raises RowError."""

    @abstractmethod
    def prompt(self, sample: Sample) -> Prompt:
        """What the model is sent."""

    def samples(self, raw: RawRow) -> Sequence[Sample]:
        row = self.row(raw)
        if row is None:
            return ()
        check_options(row.id, row.options)
        return [
            Sample(
                id=row.id if shown.rotation is None else f"{row.id}@{shown.rotation}",
                position=raw.position,
                question=row.question,
                answer="" if row.right is None else shown.letter(row.right),
                options=shown.options(row.options),
                route=CHOICE,
                images=raw.images,
                strata={**row.strata, **position_of(row.right, shown)},
                fields={
                    **canonical_fields(raw.fields, ()),
                    **shown.fields(row.id),
                    "family": row.family,
                    "cluster": row.cluster,
                },
            )
            for shown in shown_orders(self.form, row.id, len(row.options))
        ]

    def prompt_hashes(self) -> Mapping[str, str]:
        return hashes(self._prompts)

    def prompt_texts(self) -> Mapping[str, str]:
        return self._prompts

    def read(self, sample: Sample, completion: Completion) -> Answer:
        return read_choice(completion.text, sample.options)

    def judge_item(self, sample: Sample, answer: Answer) -> JudgeItem | None:
        return None

    def score(self, rows: Sequence[ScoreItem]) -> list[Score]:
        return [self.score_row(row) for row in rows]

    def score_row(self, row: ScoreItem) -> Score:
        """Right where the letter is the right one. A reply that commits to something else is a wrong answer,
        one that commits to nothing is none."""
        detail = choice_detail(row.sample, guess=row.answer.how in self.guesses)
        return score_letter(row.sample.answer, row.answer, detail)

    def family(self, sample: Sample) -> str:
        return str(sample.fields.get("family") or self.title)

    def shown_route(self, sample: Sample) -> str:
        return "multiple choice"

    def blemishes(self, sample: Sample) -> tuple[str, ...]:
        found = []
        if not sample.question.strip():
            found.append("the question is blank")
        if len(set(sample.options)) < len(sample.options):
            found.append("two options are the same")
        if not sample.answer:
            found.append("the answer is not public: replies are kept, not scored")
        return tuple(found)


def check_options(row_id: str, options: Sequence[str]) -> None:
    """Raise RowError where there is nothing to choose from, or too much for letters."""
    if len(options) < 2:
        raise RowError(row_id, f"has {len(options)} option(s); a choice needs at least two")
    if len(options) > len(ascii_uppercase):
        raise RowError(row_id, f"has {len(options)} options, more than there are letters; drop some")


def right_place(row_id: str, column: str, value: Json, options: Sequence[str]) -> int | None:
    """The place of the right option from a letter, or from the option's own text; None: not public."""
    text = "" if value is None else str(value).strip()
    same = [place for place, option in enumerate(options) if option.strip().lower() == text.lower()]
    if text.lower() in NO_TRUTH and len(same) != 1:  # `None` may be an option's text
        return None
    letter = text.rstrip(".):").upper()
    if len(letter) == 1 and letter in ascii_uppercase:
        place = ascii_uppercase.index(letter)
        if place < len(options):
            return place
        raise RowError(
            row_id,
            f"column '{column}' names a letter beyond its {len(options)} options; correct it",
            repr(text),
        )
    if len(same) == 1:
        return same[0]
    raise RowError(
        row_id, f"column '{column}' is neither a letter nor the text of one option; correct it", repr(text)
    )


OUTSIDE = "what it commits to is not on offer"


def score_letter(right: str, given: Answer, detail: Mapping[str, Json]) -> Score:
    """The score of a letter against the right one; '' for `right`: not public."""
    if not right:
        return Score(status=Status.UNGRADED, detail=detail)
    correct = given.text == right
    return Score(
        status=Status.SCORED,
        correct=correct,
        tp=int(correct),
        fp=int((bool(given.text) or given.outside) and not correct),
        fn=int(not correct),
        detail={**detail, "reason": OUTSIDE} if given.outside else detail,
    )


def choice_detail(sample: Sample, *, guess: bool) -> dict[str, Json]:
    """What reports need of a choice beside right and wrong."""
    detail: dict[str, Json] = {"chance": 1 / len(sample.options)}
    if guess:
        detail["guess"] = True
    for name in ("cluster", "circular_row"):
        if value := sample.fields.get(name):
            detail[name] = value
    return detail


def lettered(options: Sequence[str]) -> str:
    """The options, one a line, as `A) text`."""
    return "\n".join(f"{letter}) {text}" for letter, text in zip(ascii_uppercase, options, strict=False))


def one_image_first(text: str, images: int, system: str | None = None) -> Prompt:
    """All images in their order, then the text."""
    return Prompt(parts=(*(ImageSlot(index=n) for n in range(images)), text), system=system)


def position_of(right: int | None, shown: Shown) -> dict[str, tuple[str, ...]]:
    """Where the right option stands, as a stratum: position bias shows there."""
    return {} if right is None else {"right_letter": (shown.letter(right),)}
