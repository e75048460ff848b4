"""A benchmark of the user's own, as a TOML file describes it; see `description` for the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mmbu_async.errors import ConfigError, RowError
from mmbu_async.model import (
    Answer,
    Completion,
    DataSpec,
    JudgeItem,
    Prompt,
    RawRow,
    Sample,
    Score,
    ScoreItem,
    Status,
)
from mmbu_async.scoring.answers import committed_answer
from mmbu_async.scoring.boxes import read_boxes
from mmbu_async.scoring.choices import read_choice
from mmbu_async.scoring.exact import committed_text, exact_match
from mmbu_async.scoring.masks import read_mask
from mmbu_async.scoring.numbers import number_match, read_number
from mmbu_async.scoring.options import read_options, without_letters
from mmbu_async.tasks.choice import (
    check_options,
    choice_detail,
    lettered,
    one_image_first,
    position_of,
    right_place,
    score_letter,
)
from mmbu_async.tasks.description import Described, described
from mmbu_async.tasks.fields import canonical_fields, field_text, shortened
from mmbu_async.tasks.forms import AS_GIVEN, Form, shown_orders
from mmbu_async.tasks.mask_scores import score_masks
from mmbu_async.tasks.mmbu_scores import score_detections, score_judged
from mmbu_async.tasks.texts import hashes


class CustomBenchmark:
    """What a TOML file describes."""

    def __init__(self, described: Described, form: Form = AS_GIVEN) -> None:
        self._described = described
        self._file = file = described.file
        self.form = form
        self.name = file.name + form.suffix
        self.title = file.title or file.name
        self.data = DataSpec(**file.source.model_dump())
        self.rows = "your own"
        self.routes: tuple[str, ...] = (file.scorer.kind,)
        self.metric = f"accuracy by {file.scorer.kind}"
        self.judge = "open_per_dataset_v3" if file.scorer.kind == "judge" else ""
        self.licence = file.licence
        self.citation = file.citation

    def samples(self, raw: RawRow) -> Sequence[Sample]:
        columns = self._file.columns
        row_id = self._text(raw, "columns", "id", columns.id) if columns.id else str(raw.position)
        if not row_id.strip():
            raise RowError(
                f"number {raw.position + 1}", f"column '{columns.id}' is empty; give every row an id"
            )
        options = self._options(raw, row_id)
        answer = self._text(raw, "columns", "answer", columns.answer)
        if not answer.strip():
            raise RowError(row_id, f"column '{columns.answer}' is empty; every row needs its answer")
        family = self._text(raw, "columns", "family", columns.family) if columns.family else self.title
        sample = Sample(
            id=row_id,
            position=raw.position,
            question=self._text(raw, "columns", "question", columns.question),
            answer=answer,
            options=options,
            route=self._file.scorer.kind,
            images=raw.images,
            strata=self._strata(raw),
            fields={**canonical_fields(raw.fields, ()), "family": family},
        )
        if self._file.scorer.kind == "choice":
            return self._choices(sample)
        self._check_truth(answer, row_id)
        return (sample,)

    def _choices(self, sample: Sample) -> list[Sample]:
        """The row with its options in each order in which it is asked."""
        check_options(sample.id, sample.options)
        right = right_place(sample.id, self._file.columns.answer, sample.answer, sample.options)
        return [
            replace(
                sample,
                id=sample.id if shown.rotation is None else f"{sample.id}@{shown.rotation}",
                answer="" if right is None else shown.letter(right),
                options=shown.options(sample.options),
                strata={**sample.strata, **position_of(right, shown)},
                fields={**sample.fields, **(shown.fields(sample.id) if self.form != AS_GIVEN else {})},
            )
            for shown in shown_orders(self.form, sample.id, len(sample.options))
        ]

    def prompt(self, sample: Sample) -> Prompt:
        values = {
            **{name: str(value or "") for name, value in sample.fields.items()},
            "question": sample.question,
            "options": lettered(sample.options),
            "labels": "\n".join(f"- {option}" for option in sample.options),
        }
        return one_image_first(self._described.fill(values), len(sample.images), self._file.prompt.system)

    def prompt_hashes(self) -> Mapping[str, str]:
        return hashes(self.prompt_texts())

    def prompt_texts(self) -> Mapping[str, str]:
        # Scorer and columns decide answers as much as words do, so the whole file counts.
        prompt = self._file.prompt
        texts = {"template": prompt.template, "system": prompt.system or ""}
        return {**texts, "description": self._file.model_dump_json()}

    def read(self, sample: Sample, completion: Completion) -> Answer:
        match self._file.scorer.kind:
            case "choice":
                return read_choice(completion.text, sample.options)
            case "exact" | "number":
                return committed_text(completion.text)
            case _:
                return committed_answer(completion.text)

    def judge_item(self, sample: Sample, answer: Answer) -> JudgeItem | None:
        if self._file.scorer.kind != "judge" or not answer.text.strip():
            return None
        return JudgeItem(
            question=sample.question,
            labels=sample.options,
            true_answer=sample.answer,
            model_answer=answer.text,
        )

    def score(self, rows: Sequence[ScoreItem]) -> list[Score]:
        match self._file.scorer.kind:
            case "boxes":
                return score_detections(rows)
            case "masks":
                return score_masks(rows)
            case "judge":
                return [score_judged(row, several=False) for row in rows]
            case "choice":
                return [
                    score_letter(row.sample.answer, row.answer, choice_detail(row.sample, guess=False))
                    for row in rows
                ]
            case _:
                return [self._by_text(row) for row in rows]

    def family(self, sample: Sample) -> str:
        return str(sample.fields.get("family") or self.title)

    def shown_route(self, sample: Sample) -> str:
        return self._file.scorer.kind

    def blemishes(self, sample: Sample) -> tuple[str, ...]:
        return () if sample.question.strip() else ("the question is blank",)

    def _by_text(self, row: ScoreItem) -> Score:
        given, truth = row.answer.text, row.sample.answer
        if self._file.scorer.kind == "number":
            right = number_match(given, truth, absolute=self._file.scorer.tolerance)
        else:
            right = exact_match(given, truth)
        answered = bool(given.strip())
        return Score(
            status=Status.SCORED,
            correct=right,
            tp=int(right),
            fp=int(answered and not right),
            fn=int(not right),
        )

    def _text(self, raw: RawRow, table: str, key: str, column: str) -> str:
        """The text of a column that the file names under `[table] key`."""
        if column not in raw.fields:
            found = ", ".join(raw.fields)
            raise RowError(
                f"number {raw.position + 1}",
                f"has no column '{column}', which {self._described.place(table, key)} names for {key} (found "
                f"{found}); correct either",
            )
        return field_text(raw.fields[column]) or ""

    def _options(self, raw: RawRow, row_id: str) -> tuple[str, ...]:
        column = self._file.columns.options
        if not column:
            return ()
        self._text(raw, "columns", "options", column)
        try:
            return without_letters(read_options(raw.fields[column]))
        except ValueError as error:
            raise RowError(row_id, f"column '{column}' {error}; correct it") from None

    def _check_truth(self, answer: str, row_id: str) -> None:
        column = self._file.columns.answer
        match self._file.scorer.kind:
            case "masks":
                try:
                    read_mask(answer)
                except ValueError as error:
                    raise RowError(row_id, f"column '{column}' {error}; correct it") from None
            case "boxes" if not read_boxes(answer, tagged=True).boxes:
                raise RowError(
                    row_id,
                    f"column '{column}' holds no box [x, y, width, height]; correct it",
                    shortened(answer),
                )
            case "number" if read_number(answer) is None:
                raise RowError(
                    row_id, f"column '{column}' holds no number, or several; correct it", shortened(answer)
                )

    def _strata(self, raw: RawRow) -> dict[str, tuple[str, ...]]:
        columns = self._file.strata.columns
        found = {column: self._text(raw, "strata", "columns", column) for column in columns}
        return {column: (value,) for column, value in found.items() if value}


def from_toml(text: str, where: str, form: Form = AS_GIVEN) -> CustomBenchmark:
    """The benchmark that a TOML text describes. Raises ConfigError naming `where`, line and key."""
    found = described(text, where)
    if form != AS_GIVEN and (found.file.scorer.kind != "choice" or not found.shows("options")):
        raise ConfigError(
            f"{found.place('scorer', 'kind')}: --shuffle-options and --circular are for a choice whose "
            "template shows {options}; leave them out."
        )
    return CustomBenchmark(found, form)
