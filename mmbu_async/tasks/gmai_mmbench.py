"""GMAI-MMBench: 38 modalities, 18 clinical tasks, as multiple-choice questions over single images.

Chen et al., NeurIPS 2024 Datasets and Benchmarks, arXiv:2408.03361. The distributed TSV holds the image as
base64 text, the options in columns `A` … `E` and the letter of the right one in `answer`; `category` is the
right option's own label, and no group to report by. The test split's answers are not public.
"""

from __future__ import annotations

from typing import ClassVar

from mmbu_async.model import DataSpec, Prompt, RawRow, Sample
from mmbu_async.tasks.choice import ChoiceRow, right_place
from mmbu_async.tasks.tabular import Columns, TabularChoice, lettered_options, text_of

BLANK = frozenset({"none", "nan"})
"""What copies made with pandas have in the cells of options that a row lacks."""


class GmaiMmBench(TabularChoice):
    """The benchmark `gmai-mmbench`."""

    name = "gmai-mmbench"
    title = "GMAI-MMBench, validation"
    rows = "4,550"
    data = DataSpec(
        hub="OpenGVLab/GMAI-MMBench",
        split="validation",
        tables=("GMAI_mm_bench_VAL*.tsv", "*VAL*.tsv", "*.tsv", "*.parquet"),
        image_columns=("image",),
    )
    licence = "research use; see the GMAI-MMBench page"
    citation = "Chen et al., GMAI-MMBench, NeurIPS 2024, arXiv:2408.03361."
    wanted: ClassVar[Columns] = {"id": ("index", "id"), "question": ("question",), "answer": ("answer",)}
    optional: ClassVar[Columns] = {
        "family": ("clinical VQA task", "task"),
        "modality": ("modality",),
        "department": ("department",),
        "perception": ("perceptual granularity", "granularity"),
    }

    def row(self, raw: RawRow) -> ChoiceRow:
        found = self.columns_of(raw)
        row_id = text_of(raw, found["id"])
        options = lettered_options(raw, row_id, "{letter}", blank=BLANK)
        return ChoiceRow(
            id=row_id,
            question=text_of(raw, found["question"]),
            options=options,
            right=right_place(row_id, found["answer"], raw.fields[found["answer"]], options),
            family=text_of(raw, found.get("family")) or self.title,
            strata=self.strata_of(raw, found, "modality", "department", "perception"),
        )

    def prompt(self, sample: Sample) -> Prompt:
        return self.plain_prompt(sample)
