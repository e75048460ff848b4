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
from mmbu_async.tasks.tabular import Columns, find_columns, text_of

LETTERS = "ABCD"
WANTED: Columns = {
    "question": ("Question",),
    **{f"option {letter}": (f"Choice {letter}",) for letter in LETTERS},
    # The second version of the set has the letter in `Answer`; the first has the option's text there.
    "answer": ("Answer_label", "Answer"),
}
OPTIONAL: Columns = {"id": ("index", "id"), "figure": ("Figure_path", "image")}


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
        found = find_columns(raw, WANTED, OPTIONAL)
        row_id = text_of(raw, found.get("id")) or str(raw.position)
        options = []
        for letter in LETTERS:
            column = found[f"option {letter}"]
            choice = without_prefix(str(raw.fields[column] or ""), letter)
            if not choice:
                raise RowError(row_id, f"column '{column}' is empty; every row has four options")
            options.append(choice)
        return ChoiceRow(
            id=row_id,
            question=text_of(raw, found["question"]),
            options=tuple(options),
            right=right_place(row_id, found["answer"], raw.fields[found["answer"]], options),
            family=self.title,
            cluster=text_of(raw, found.get("figure")),
        )

    def prompt(self, sample: Sample) -> Prompt:
        text = prompt_text(self._prompts["user"], sample.question, sample.options)
        return one_image_first(text, len(sample.images))

    def read(self, sample: Sample, completion: Completion) -> Answer:
        return read_answer(completion.text, len(sample.options))
