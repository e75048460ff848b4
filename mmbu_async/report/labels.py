"""Labels that people gave to rows: a CSV file with a column of row ids and a column of right and wrong."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmbu_async.errors import ConfigError
from mmbu_async.report.plain import csv_cell
from mmbu_async.report.text_file import read_header, read_text

ID_NAMES = ("row_id", "id", "unique_id")
"""Of these the first that the file has is taken."""
LABEL_NAMES = ("label", "human", "correct")
"""Of these the file must have one, where none is named."""
VALUES: Mapping[str, bool] = {
    **dict.fromkeys(("1", "1.0", "true", "yes", "right", "correct"), True),
    **dict.fromkeys(("0", "0.0", "false", "no", "wrong", "incorrect"), False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A person's word on one row."""

    right: bool
    line: int
    """Of the file, from 1, the header included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What a file of labels says."""

    path: Path
    id_column: str
    label_column: str
    by_row: Mapping[str, Label]
    blank: int
    """Rows that are named and have no label."""

    def of(self, row_id: str) -> Label | None:
        """The label of a row, also where its id was written as a cell that no spreadsheet runs."""
        return self.by_row.get(row_id) or self.by_row.get(csv_cell(row_id))


def read_labels(path: Path, *, id_column: str | None = None, label_column: str | None = None) -> Labels:
    """Read the file; columns that are not named are found by their usual names, others are passed over.

    Raises ConfigError naming line and column of what is wrong.
    """
    text = read_text(path, "--labels")
    header, separator = read_header(text)
    row_id = _column(path, header, id_column, ID_NAMES, "--id-column", first=True)
    label = _column(path, header, label_column, LABEL_NAMES, "--label-column", first=False)
    by_row: dict[str, Label] = {}
    blank = 0
    for line, cells in _lines(path, text, separator):
        name = cells[row_id].strip() if row_id < len(cells) else ""
        value = cells[label].strip() if label < len(cells) else ""
        if not name:
            raise ConfigError(f"{path}, line {line}, column {header[row_id]}: holds no row id.")
        if name in by_row:
            raise ConfigError(
                f"{path}, line {line}, column {header[row_id]}: row '{name}' has a label in line "
                f"{by_row[name].line} already; keep one."
            )
        if not value:
            blank += 1
            continue
        if value.lower() not in VALUES:
            raise ConfigError(
                f"{path}, line {line}, column {header[label]}: '{value}' is no label; write 1 or 0, true or "
                "false, yes or no, right or wrong."
            )
        by_row[name] = Label(right=VALUES[value.lower()], line=line)
    return Labels(path=path, id_column=header[row_id], label_column=header[label], by_row=by_row, blank=blank)


def _lines(path: Path, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        next(reader, None)
        line = reader.line_num + 1
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise ConfigError(f"{path}, line {reader.line_num}: is no CSV ({error}).") from None


def _column(
    path: Path, header: Sequence[str], named: str | None, usual: Sequence[str], flag: str, *, first: bool
) -> int:
    """The place of a column: the one that is named, or one of the usual names."""
    lower = [cell.lower() for cell in header]
    wanted = usual if named is None else (named.strip().lower(),)
    places = [place for name in wanted for place, cell in enumerate(lower) if cell == name]
    shown = ", ".join(header) or "none"
    if not places:
        hint = f"name it with {flag}" if named is None else f"its columns are {shown}"
        raise ConfigError(f"{path}, line 1: has no column {' or '.join(wanted)}; {hint}.")
    if len({lower[place] for place in places}) < len(places) or (len(places) > 1 and not first):
        raise ConfigError(
            f"{path}, line 1: more than one column could be meant ({', '.join(header[p] for p in places)}); "
            f"name one with {flag}."
        )
    return places[0]
