"""Multiple-choice benchmarks whose copies name their columns in slightly different ways."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from string import ascii_uppercase
from typing import ClassVar

from mmbu_async.errors import RowError
from mmbu_async.model import Prompt, RawRow, Sample
from mmbu_async.tasks.choice import MultipleChoice, lettered, one_image_first
from mmbu_async.tasks.fields import field_text
from mmbu_async.tasks.forms import AS_GIVEN, Form
from mmbu_async.tasks.texts import prompt_text

Columns = Mapping[str, Sequence[str]]
"""Meaning -> names that a copy may give the column, the likeliest first."""


class TabularChoice(MultipleChoice):
    """Finds its columns by candidates, and says what it looked for and what it found where one is missing."""

    wanted: ClassVar[Columns]
    optional: ClassVar[Columns] = {}

    def __init__(self, form: Form = AS_GIVEN) -> None:
        super().__init__({"suffix_choice": prompt_text("choice_suffix")}, form)

    def columns_of(self, raw: RawRow) -> dict[str, str]:
        """Meaning -> column of this row. Raises RowError naming candidates and columns."""
        return find_columns(raw, self.wanted, self.optional)

    def strata_of(self, raw: RawRow, found: Mapping[str, str], *meanings: str) -> dict[str, tuple[str, ...]]:
        """The values of optional columns, by meaning."""
        values = {meaning: text_of(raw, found.get(meaning)) for meaning in meanings}
        return {meaning: (value,) for meaning, value in values.items() if value}

    def plain_prompt(self, sample: Sample) -> Prompt:
        """Images, question, options under letters, output format. The wording is ours."""
        text = f"{sample.question}\n\n{lettered(sample.options)}\n\n{self._prompts['suffix_choice']}"
        return one_image_first(text, len(sample.images))


def find_columns(raw: RawRow, wanted: Columns, optional: Columns) -> dict[str, str]:
    """Meaning -> the first candidate that the row has. Where none is there as it is written, case, blanks and
    underscores do not matter. Raises RowError naming what was looked for and what was found."""
    known = _spelt(tuple(raw.fields))
    found: dict[str, str] = {}
    missing: list[str] = []
    for meaning, candidates in {**wanted, **optional}.items():
        name = next((known[key] for c in candidates for key in (c, _plain(c)) if key in known), None)
        if name is not None:
            found[meaning] = name
        elif meaning in wanted:
            missing.append(f"the {meaning} (looked for {', '.join(candidates)})")
    if missing:
        raise RowError(
            f"number {raw.position + 1}",
            f"has no column for {' and none for '.join(missing)}; found are "
            f"{', '.join(raw.fields) or 'none'}: rename them, or give another copy of the data",
        )
    return found


@lru_cache(maxsize=256)
def _spelt(names: tuple[str, ...]) -> Mapping[str, str]:
    """Every spelling under which a column may be asked for -> its name; exact ones win, then the first."""
    return {_plain(name): name for name in reversed(names)} | {name: name for name in names}


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def text_of(raw: RawRow, column: str | None) -> str:
    """The text of a column, stripped; '' where there is none."""
    return (field_text(raw.fields.get(column)) or "").strip() if column else ""


def lettered_options(
    raw: RawRow, row_id: str, pattern: str, *, blank: Collection[str] = ()
) -> tuple[str, ...]:
    """Options from one column a letter, up to the first that is empty; a gap is an error. `blank`: what also
    stands for an empty cell, in lower case. Raises RowError where there is no column at all."""
    known = _spelt(tuple(raw.fields))
    columns = {
        letter: known.get(name) or known.get(_plain(name))
        for letter in ascii_uppercase
        for name in (pattern.format(letter=letter),)
    }
    if not any(columns.values()):
        names = f"{pattern.format(letter='A')}, {pattern.format(letter='B')} and so on"
        raise RowError(
            row_id,
            f"has no column for the options (looked for {names}); found are {', '.join(raw.fields)}: rename "
            "them, or give another copy of the data",
        )
    texts = [text_of(raw, column) for column in columns.values()]
    filled = [bool(text) and text.lower() not in blank for text in texts]
    count = filled.index(False) if False in filled else len(texts)
    if any(filled[count:]):
        missing = columns[ascii_uppercase[count]] or pattern.format(letter=ascii_uppercase[count])
        raise RowError(row_id, f"column '{missing}' is empty although later options are not; correct it")
    return tuple(texts[:count])
