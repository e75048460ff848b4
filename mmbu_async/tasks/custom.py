"""A benchmark of the user's own, described in a TOML file.

    name = "site-b-cells"

    [source]
    tables = ["rows.csv"]
    image_columns = ["image"]

    [columns]
    id = "uid"
    question = "question"
    answer = "label"
    options = "choices"

    [prompt]
    template = \"\"\"{question}

    {options}

    Answer with the letter of the correct option inside <answer> tags.\"\"\"

    [scorer]
    kind = "choice"

Every mistake is one sentence that names the file, the line and the key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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
from mmbu_async.scoring.numbers import number_match
from mmbu_async.scoring.options import read_options, without_letters
from mmbu_async.tasks.choice import (
    choice_detail,
    lettered,
    one_image_first,
    right_place,
    score_letter,
)
from mmbu_async.tasks.fields import canonical_fields, field_text
from mmbu_async.tasks.mask_scores import score_masks
from mmbu_async.tasks.mmbu_scores import score_detections, score_judged
from mmbu_async.tasks.texts import hashes

Kind = Literal["choice", "judge", "exact", "number", "boxes", "masks"]
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PLACE = re.compile(r"\{([A-Za-z_][\w ]*)\}")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Source(_Part):
    hub: str = ""
    configs: tuple[str, ...] = ()
    split: str = "train"
    tables: tuple[str, ...] = ("metadata.jsonl", "metadata.tsv", "*.csv", "*.parquet")
    image_columns: tuple[str, ...] = ("file_name", "image")
    image_folders: tuple[str, ...] = ("", "images")
    archives: tuple[str, ...] = ()


class _Columns(_Part):
    question: str
    answer: str
    id: str = ""
    """'' numbers the rows."""
    options: str = ""
    family: str = ""


class _PromptText(_Part):
    template: str = Field(min_length=1)
    system: str | None = None


class _Scorer(_Part):
    kind: Kind
    tolerance: float = Field(default=0.0, ge=0)
    """Of `number`: largest difference that is still right."""


class _Strata(_Part):
    columns: tuple[str, ...] = ()


class _File(_Part):
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    title: str = ""
    licence: str = "not stated"
    citation: str = "not stated"
    source: _Source = _Source()
    columns: _Columns
    prompt: _PromptText
    scorer: _Scorer
    strata: _Strata = _Strata()


class CustomBenchmark:
    """What a TOML file describes."""

    def __init__(self, file: _File) -> None:
        self._file = file
        self.name = file.name
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
        row_id = self._text(raw, columns.id) if columns.id else str(raw.position)
        if not row_id.strip():
            raise RowError(
                f"number {raw.position + 1}", f"column '{columns.id}' is empty; give every row an id"
            )
        options = self._options(raw, row_id)
        answer = self._text(raw, columns.answer)
        family = self._text(raw, columns.family) if columns.family else self.title
        return (
            Sample(
                id=row_id,
                position=raw.position,
                question=self._text(raw, columns.question),
                answer=self._truth(answer, row_id, options),
                options=options,
                route=self._file.scorer.kind,
                images=raw.images,
                strata=self._strata(raw),
                fields={**canonical_fields(raw.fields, ()), "family": family},
            ),
        )

    def prompt(self, sample: Sample) -> Prompt:
        values = {
            **{name: str(value or "") for name, value in sample.fields.items()},
            "question": sample.question,
            "options": lettered(sample.options),
            "labels": "\n".join(f"- {option}" for option in sample.options),
        }
        text = _PLACE.sub(lambda place: values[place[1]], self._file.prompt.template)
        return one_image_first(text, len(sample.images), self._file.prompt.system)

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
                    score_letter(row.sample.answer, row.answer.text, choice_detail(row.sample, guess=False))
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

    def _text(self, raw: RawRow, column: str) -> str:
        if column not in raw.fields:
            found = ", ".join(raw.fields)
            raise RowError(
                f"number {raw.position + 1}", f"has no column '{column}' (found {found}); correct it"
            )
        return field_text(raw.fields[column]) or ""

    def _options(self, raw: RawRow, row_id: str) -> tuple[str, ...]:
        column = self._file.columns.options
        if not column:
            return ()
        self._text(raw, column)
        try:
            return without_letters(read_options(raw.fields[column]))
        except ValueError as error:
            raise RowError(row_id, f"column '{column}' {error}; correct it") from None

    def _truth(self, answer: str, row_id: str, options: tuple[str, ...]) -> str:
        column, kind = self._file.columns.answer, self._file.scorer.kind
        if not answer.strip():
            raise RowError(row_id, f"column '{column}' is empty; every row needs its answer")
        if kind == "choice":
            place = right_place(row_id, column, answer, options)
            return "" if place is None else _LETTERS[place]
        if kind == "masks":
            try:
                read_mask(answer)
            except ValueError as error:
                raise RowError(row_id, f"column '{column}' {error}; correct it") from None
        if kind == "boxes" and not read_boxes(answer, tagged=True).boxes:
            raise RowError(
                row_id, f"column '{column}' holds no box [x, y, width, height]; correct it", repr(answer)
            )
        return answer

    def _strata(self, raw: RawRow) -> dict[str, tuple[str, ...]]:
        found = {column: self._text(raw, column) for column in self._file.strata.columns}
        return {column: (value,) for column, value in found.items() if value}


def from_toml(text: str, where: str) -> CustomBenchmark:
    """The benchmark that a TOML text describes. Raises ConfigError naming `where`, line and key."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: is not valid TOML: {error}.") from None
    try:
        file = _File.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(_sentence(error, text, where)) from None
    _check(file, text, where)
    return CustomBenchmark(file)


def _check(file: _File, text: str, where: str) -> None:
    """What pydantic cannot know."""
    if file.scorer.kind == "choice" and not file.columns.options:
        raise ConfigError(
            f"{where}, {_line(text, 'scorer', 'kind')}: a choice needs options; name their column under "
            "[columns] options."
        )
    known = {"question", "options", "labels"}
    for place in _PLACE.findall(file.prompt.template):
        if place in (file.columns.answer, "answer"):
            raise ConfigError(
                f"{where}, {_line(text, 'prompt', 'template')}: {{{place}}} would show the model the answer."
            )
        if place not in known and place not in file.strata.columns:
            raise ConfigError(
                f"{where}, {_line(text, 'prompt', 'template')}: {{{place}}} is neither one of "
                f"{', '.join(sorted(known))} nor a column of [strata]; list it there, or correct it."
            )


def _sentence(error: ValidationError, text: str, where: str) -> str:
    first = error.errors()[0]
    names = [str(part) for part in first["loc"]]
    table, key = (names[0], names[1]) if len(names) > 1 else ("", names[0])
    place = f"{where}, {_line(text, table, key)}"
    dotted = ".".join(names)
    if first["type"] == "missing":
        return (
            f"{place}: [{table}] {key} is missing; add it."
            if table
            else f"{place}: {key} is missing; add it."
        )
    if first["type"] == "extra_forbidden":
        return f"{place}: there is no setting {dotted}; correct its name, or leave it out."
    return f"{place}: {dotted} = {first['input']!r}: {first['msg']}."


def _line(text: str, table: str, key: str) -> str:
    """`line N`: that of the key, or of its table, or the first."""
    current, fallback = "", 1
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith("["):
            current = stripped.strip("[] ")
            if current == table:
                fallback = number
        elif current == table and re.match(rf'"?{re.escape(key)}"?\s*=', stripped):
            return f"line {number}"
    return f"line {fallback}"
