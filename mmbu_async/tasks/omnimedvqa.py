"""OmniMedVQA: 73 classification datasets as multiple-choice questions over single images.

Hu et al., CVPR 2024, arXiv:2402.09181. Rows come as JSON lists, one file a dataset, with `option_A` … and the
right option's text in `gt_answer`.
"""

from __future__ import annotations

from typing import ClassVar

from mmbu_async.model import DataSpec, Prompt, RawRow, Sample
from mmbu_async.tasks.choice import ChoiceRow, right_place
from mmbu_async.tasks.tabular import Columns, TabularChoice, lettered_options, text_of


class OmniMedVqa(TabularChoice):
    """The benchmark `omnimedvqa`."""

    name = "omnimedvqa"
    title = "OmniMedVQA, open-access part"
    rows = "88,996"
    data = DataSpec(
        hub="foreverbeliever/OmniMedVQA",
        split="test",
        tables=("QA_information/Open-access/*.json", "QA_information/*.json", "*.json", "*.parquet"),
        image_columns=("image_path", "image"),
        image_folders=("", "Images", "images"),
    )
    licence = "per source dataset; see the OmniMedVQA page"
    citation = "Hu et al., OmniMedVQA, CVPR 2024, arXiv:2402.09181."
    wanted: ClassVar[Columns] = {
        "id": ("question_id", "id", "index"),
        "question": ("question",),
        "answer": ("gt_answer", "answer"),
    }
    optional: ClassVar[Columns] = {
        "family": ("question_type",),
        "modality": ("modality_type", "modality"),
        "dataset": ("dataset",),
    }

    def row(self, raw: RawRow) -> ChoiceRow:
        found = self.columns_of(raw)
        row_id = text_of(raw, found["id"])
        options = lettered_options(raw, row_id, "option_{letter}")
        return ChoiceRow(
            id=row_id,
            question=text_of(raw, found["question"]),
            options=options,
            right=right_place(row_id, found["answer"], raw.fields[found["answer"]], options),
            family=text_of(raw, found.get("family")) or self.title,
            strata=self.strata_of(raw, found, "modality", "dataset"),
        )

    def prompt(self, sample: Sample) -> Prompt:
        return self.plain_prompt(sample)
