"""PMC-VQA, split test_clean: four options over figures of biomedical papers.

Prompt and extraction are those of evalscope (version 1.14.1), whose scores are the published ones. Two
questions can share a figure: the figure is the cluster that intervals respect.
"""

from __future__ import annotations

from mmbu_async.errors import RowError
from mmbu_async.model import Answer, Completion, DataSpec, Prompt, RawRow, Sample
from mmbu_async.scoring.pmc_vqa import FALLBACK, prompt_text, read_answer, without_prefix
from mmbu_async.tasks import texts
from mmbu_async.tasks.choice import ChoiceRow, MultipleChoice, one_image_first, right_place
from mmbu_async.tasks.forms import AS_GIVEN, Form

LETTERS = "ABCD"


class PmcVqa(MultipleChoice):
    """The benchmark `pmc-vqa`."""

    name = "pmc-vqa"
    title = "PMC-VQA, test_clean"
    rows = "2,000"
    data = DataSpec(
        hub="xmcmic/PMC-VQA",
        split="test",
        tables=("test_clean.csv", "test_clean*.parquet", "test*.csv"),
        image_columns=("Figure_path", "image"),
        image_folders=("images", "", "figures"),
        archives=("images.zip",),
    )
    licence = "CC BY-SA 4.0 (questions); figures under the licences of their papers"
    citation = "Zhang et al., PMC-VQA: Visual Instruction Tuning for Medical VQA, arXiv:2305.10415."
    guesses = frozenset({FALLBACK})

    def __init__(self, form: Form = AS_GIVEN) -> None:
        super().__init__({"user": texts.prompt_text("pmc_vqa_user")}, form)

    def row(self, raw: RawRow) -> ChoiceRow:
        figure = str(raw.fields.get("Figure_path") or raw.fields.get("image") or "").strip()
        row_id = str(raw.fields.get("index") or raw.fields.get("id") or raw.position)
        options = []
        for letter in LETTERS:
            column = f"Choice {letter}"
            if column not in raw.fields:
                raise RowError(row_id, f"there is no column '{column}'; its rows need {', '.join(_COLUMNS)}")
            choice = without_prefix(str(raw.fields[column] or ""), letter)
            if not choice:
                raise RowError(row_id, f"column '{column}' is empty; every row has four options")
            options.append(choice)
        question = raw.fields.get("Question")
        if question is None:
            raise RowError(row_id, f"there is no column 'Question'; its rows need {', '.join(_COLUMNS)}")
        label = raw.fields.get("Answer_label", raw.fields.get("Answer"))
        return ChoiceRow(
            id=row_id,
            question=str(question).strip(),
            options=tuple(options),
            right=right_place(row_id, "Answer_label", label, options),
            family=self.title,
            cluster=figure,
        )

    def prompt(self, sample: Sample) -> Prompt:
        text = prompt_text(self._prompts["user"], sample.question, sample.options)
        return one_image_first(text, len(sample.images))

    def read(self, sample: Sample, completion: Completion) -> Answer:
        return read_answer(completion.text, len(sample.options))


_COLUMNS = ("Figure_path", "Question", *(f"Choice {letter}" for letter in LETTERS), "Answer_label")
