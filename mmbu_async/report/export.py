"""One row a sample with everything known of it, as JSON Lines, CSV or Parquet; streamed, whole or not at all.

All three hold UTF-8 text as it is, NUL and direction marks included, but for one thing: in CSV a NUL becomes
U+2400, since many readers stop at NUL. Also in CSV, a text that a spreadsheet would run as a formula (it
begins with = + - @, their full-width forms, a tab or a line end, and is no number) gets a `'` before it.
Lists and mappings are nested in JSON Lines, JSON texts in CSV and Parquet, but options and images, which are
lists in Parquet. The dataset's own columns are `fields` in JSON Lines, `data.NAME` elsewhere.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import orjson

from mmbu_async.errors import ConfigError
from mmbu_async.model import Json
from mmbu_async.report.files import whole_file
from mmbu_async.report.leaderboard import to_leaderboard
from mmbu_async.report.model import ReportData
from mmbu_async.report.plain import csv_cell
from mmbu_async.report.records import DATA, record
from mmbu_async.store import RunRecord, Store

Form = Literal["jsonl", "csv", "parquet"]
ENDINGS: Mapping[str, Form] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}

Records = Iterable[dict[str, Json]]

_LINE_ENDS = tuple((char.encode(), b"\\u%04x" % ord(char)) for char in "\x85\u2028\u2029")


def export(store: Store, run: RunRecord, path: Path, *, form: Form | None = None) -> int:
    """Write the run's rows to `path`, in the format that its ending names; returns how many.

    Raises ConfigError where the ending or the place is no good, StoreFullError where the disk is full.
    """
    chosen = form or ENDINGS.get(path.suffix.lower())
    if chosen is None:
        known = ", ".join(ENDINGS)
        raise ConfigError(f"{path}: its ending names no export format; choose one of {known}.")
    judge = run.judge.name if run.judge else None
    records = (record(detail, run.name, judge) for detail in store.details(run.id))
    columns = () if chosen == "jsonl" else store.columns(run.dataset.id)
    with whole_file(path) as part:
        return _WRITERS[chosen](records, part, columns)


def write_leaderboard(report: ReportData, path: Path) -> None:
    """Write one flat JSON object with the figures of the run; see `leaderboard`."""
    with whole_file(path) as part:
        part.write_text(to_leaderboard(report), encoding="utf-8")


def write_submission(store: Store, run: RunRecord, path: Path) -> int:
    """Write `{row id: answer}` for the server of a benchmark whose answers are not public; returns how many.

    A letter where options were chosen from, else the reply itself: such servers read open replies themselves.
    """
    answers: dict[str, str] = {}
    for row in store.rows(run.id):
        if row.completion is not None and row.answer is not None:
            text = row.answer.text if row.sample.options else row.completion.text.strip()
            answers[row.sample.id] = text
    with whole_file(path) as part:
        part.write_bytes(orjson.dumps(answers, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return len(answers)


def _write_jsonl(records: Records, path: Path, columns: Sequence[str]) -> int:
    count = 0
    with path.open("wb") as file:
        for one in records:
            file.write(_one_line(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE)))
            count += 1
    return count


def _one_line(text: bytes) -> bytes:
    """The same JSON without the characters beyond ASCII that some readers take for the end of a line."""
    for raw, escaped in _LINE_ENDS:
        text = text.replace(raw, escaped)
    return text


def _write_csv(records: Records, path: Path, columns: Sequence[str]) -> int:
    """The header comes from the first record; a run without rows has an empty file."""
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        for one in flat(records, columns):
            if count == 0:
                writer.writerow([csv_cell(name) for name in one])
            writer.writerow([_cell(value) for value in one.values()])
            count += 1
    return count


def _write_parquet(records: Records, path: Path, columns: Sequence[str]) -> int:
    # pyarrow takes half a second to import, which no other command should pay.
    from mmbu_async.report.parquet import write_parquet

    return write_parquet(flat(records, columns), path, [DATA + name for name in columns])


_WRITERS: Mapping[Form, Callable[[Records, Path, Sequence[str]], int]] = {
    "jsonl": _write_jsonl,
    "csv": _write_csv,
    "parquet": _write_parquet,
}


def flat(records: Records, columns: Sequence[str]) -> Iterator[dict[str, Json]]:
    """The dataset's columns as columns of their own, the same ones in every record."""
    for one in records:
        fields = one.pop("fields")
        yield one | {DATA + name: fields.get(name) for name in columns}


def _cell(value: Json) -> Json:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return csv_cell(value)
        case int() | float():
            return value
        case _:
            return orjson.dumps(value).decode()
