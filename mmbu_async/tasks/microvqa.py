"""MicroVQA: expert questions on microscopy, multiple choice, with one or more images a row.

Burgess et al., CVPR 2025, arXiv:2503.13399. Options come as a list in `choices`, the right one by its place
in `correct_index` (or its text in `answer`).
"""

from __future__ import annotations

from typing import ClassVar

from mmbu_async.errors import RowError
from mmbu_async.model import DataSpec, Prompt, RawRow, Sample
from mmbu_async.scoring.options import read_options
from mmbu_async.tasks.choice import ChoiceRow, right_place
from mmbu_async.tasks.tabular import Columns, TabularChoice, text_of


class MicroVqa(TabularChoice):
    """The benchmark `microvqa`."""

    name = "microvqa"
    title = "MicroVQA"
    rows = "1,042"
    data = DataSpec(
        hub="jmhb/microvqa",
        split="train",
        tables=("data/*.parquet", "*.parquet"),
        image_columns=("images_list", "images", "image"),
    )
    licence = "CC BY-SA 4.0"
    citation = "Burgess et al., MicroVQA, CVPR 2025, arXiv:2503.13399."
    wanted: ClassVar[Columns] = {
        "id": ("key_question", "question_id", "id"),
        "question": ("question", "question_1", "question_0"),
        "options": ("choices", "choices_1", "choices_0", "options"),
        "answer": ("correct_index", "correct_index_1", "correct_index_0", "correct_answer", "answer"),
    }
    optional: ClassVar[Columns] = {
        "family": ("task_str", "task"),
        "modality": ("modality", "microscopy"),
        "scale": ("scale",),
    }

    def row(self, raw: RawRow) -> ChoiceRow:
        found = self.columns_of(raw)
        row_id = text_of(raw, found["id"])
        try:
            options = read_options(raw.fields[found["options"]])
        except ValueError as error:
            raise RowError(row_id, f"column '{found['options']}' {error}; correct it") from None
        return ChoiceRow(
            id=row_id,
            question=text_of(raw, found["question"]),
            options=options,
            right=self._right(raw, found["answer"], row_id, options),
            family=text_of(raw, found.get("family")) or self.title,
            strata=self.strata_of(raw, found, "modality", "scale"),
        )

    def prompt(self, sample: Sample) -> Prompt:
        return self.plain_prompt(sample)

    def _right(self, raw: RawRow, column: str, row_id: str, options: tuple[str, ...]) -> int | None:
        """`correct_index` columns hold the place from 0, others a letter or the text."""
        value = raw.fields[column]
        if "index" not in column:
            return right_place(row_id, column, value, options)
        text = "" if value is None else str(value).removesuffix(".0").strip()
        if not text.isdigit() or int(text) >= len(options):
            raise RowError(
                row_id, f"column '{column}' is no place among its {len(options)} options", repr(text)
            )
        return int(text)
