"""The long form for pandas, polars and R: one line for each value that a row has of an attribute.

A row of a run gives one line of attribute `(all)`, one for each value it has of each attribute (several where
a task names several topics), and one without a value for each attribute that other rows have and it lacks. So
`groupby(["run", "attribute", "value"])` gives every table of a report at once, while all lines of one
attribute are all rows of the run. The outcome is the same in all lines of a row: figures are taken within one
attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mmbu_async.report.files import whole_file
from mmbu_async.report.take import Take
from mmbu_async.store import LongRow
from mmbu_async.store.longform import Strata

ALL = "(all)"
"""Attribute and value of the line that every row has."""
RULE = "rule"
"""Scorer of what no judge was needed for."""
ROWS_A_GROUP = 5_000
"""Rows of a run whose lines are in memory at once, and one row group of the file."""

WORD, TEXT = pa.dictionary(pa.int32(), pa.string()), pa.string()
WHOLE, YES_NO, REAL = pa.int32(), pa.int8(), pa.float64()

COLUMNS: Mapping[str, tuple[Any, str]] = {
    "run": (WORD, "Name of the run."),
    "model": (WORD, "The model under test."),
    "benchmark": (WORD, "Name of the benchmark."),
    "dataset": (WORD, "SHA-256 of the content of the dataset's rows: equal ones have the same rows."),
    "judge": (WORD, "The judge whose verdicts count in this line; null: the run has none."),
    "row_id": (TEXT, "Id of the row, the same in all runs."),
    "position": (WHOLE, "Place of the row in the dataset, from 0."),
    "family": (WORD, "Task family of the row."),
    "cluster": (TEXT, "What the row shares with others that are not independent of it; null: nothing."),
    "attribute": (WORD, f"What the line groups by: {ALL}, a metadata column, or `task` for the topics."),
    "value": (WORD, "The row's value of the attribute; null: it has none."),
    "weight": (REAL, "1 / values that the row has of the attribute: within one attribute a row sums to 1."),
    "status": (WORD, "scored, ungraded, unjudged, failed or pending."),
    "scorer": (WORD, f"Who scored the row: the judge's name or `{RULE}`; null: it has no score."),
    "correct": (YES_NO, "1 right, 0 wrong, null where the row has no score, which is not wrong."),
    "tp": (WHOLE, "Labels found; null as `correct`. Micro-F1 is 2 tp / (2 tp + fp + fn) of the sums."),
    "fp": (WHOLE, "Labels answered that are not true."),
    "fn": (WHOLE, "True labels not found."),
}
"""Column -> type and meaning, in the order of the file. The meanings are in the file too, and in the docs."""


def write_long(takes: Iterable[Take], path: Path) -> int:
    """Write the lines of all runs into one Parquet file; returns how many. Streamed, whole or not at all.

    Texts that repeat are dictionaries, which pandas reads as categories.
    """
    schema = _schema()
    count = 0
    with whole_file(path) as part, pq.ParquetWriter(part, schema, compression="zstd") as writer:
        for take in takes:
            stream = iter(take.rows)
            while rows := list(islice(stream, ROWS_A_GROUP)):
                batch = _batch(take, rows, schema)
                writer.write_batch(batch, row_group_size=batch.num_rows)
                count += batch.num_rows
    return count


def _schema() -> Any:
    return pa.schema(
        [pa.field(name, kind, metadata={"description": meaning}) for name, (kind, meaning) in COLUMNS.items()]
    )


def _batch(take: Take, rows: Sequence[LongRow], schema: Any) -> Any:
    """Columns of the rows, each repeated for the lines of its row."""
    lines = _Lines(take.attributes)
    spans = [lines.of(row.strata) for row in rows]
    repeated = np.repeat(np.arange(len(rows)), [len(span.weights) for span in spans])
    scored = [row.correct is not None for row in rows]
    columns: dict[str, list[Any]] = {
        "row_id": [row.row_id for row in rows],
        "position": [row.position for row in rows],
        "family": [row.family for row in rows],
        "cluster": [row.cluster for row in rows],
        "status": [row.status.value for row in rows],
        "scorer": [_scorer(take.judge, row) for row in rows],
        "correct": [None if row.correct is None else int(row.correct) for row in rows],
        "tp": [row.tp if known else None for row, known in zip(rows, scored, strict=True)],
        "fp": [row.fp if known else None for row, known in zip(rows, scored, strict=True)],
        "fn": [row.fn if known else None for row, known in zip(rows, scored, strict=True)],
    }
    constant = {
        "run": take.run.name,
        "model": take.run.model,
        "benchmark": take.run.benchmark,
        "dataset": take.run.dataset.fingerprint,
        "judge": take.judge,
    }
    made: dict[str, Any] = {
        "attribute": lines.attributes(spans),
        "value": lines.values(spans),
        "weight": pa.array(np.concatenate([span.weights for span in spans])),
    }
    for name, value in constant.items():
        made[name] = _repeated(value, len(repeated))
    for name, values in columns.items():
        made[name] = _array(values, schema.field(name).type).take(pa.array(repeated))
    return pa.record_batch([made[name] for name in schema.names], schema=schema)


def _scorer(judge: str | None, row: LongRow) -> str | None:
    if row.correct is None:
        return None
    return judge if row.judged else RULE


def _array(values: Sequence[Any], kind: Any) -> Any:
    return pa.array(values, TEXT).dictionary_encode() if kind == WORD else pa.array(values, kind)


def _repeated(value: str | None, times: int) -> Any:
    """The same word in every line."""
    if value is None:
        return pa.nulls(times, WORD)
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(times, np.int32)), pa.array([value], TEXT))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """The lines of one combination of strata: numbers of attributes and values (-1: none), and weights."""

    attributes: npt.NDArray[np.int32]
    values: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float64]


class _Lines:
    """What lines a row has; made once for all rows of the same strata."""

    def __init__(self, attributes: Sequence[str]) -> None:
        self._attributes = [ALL, *attributes]
        self._values: dict[str, int] = {ALL: 0}
        self._known: dict[Strata, _Span] = {}

    def of(self, strata: Strata) -> _Span:
        if strata not in self._known:
            self._known[strata] = self._span(dict(strata))
        return self._known[strata]

    def attributes(self, spans: Sequence[_Span]) -> Any:
        codes = np.concatenate([span.attributes for span in spans])
        return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(self._attributes, TEXT))

    def values(self, spans: Sequence[_Span]) -> Any:
        codes = np.concatenate([span.values for span in spans])
        return pa.DictionaryArray.from_arrays(
            pa.array(codes, mask=codes < 0), pa.array(list(self._values), TEXT)
        )

    def _span(self, strata: Mapping[str, tuple[str, ...]]) -> _Span:
        lines = list(self._line(strata))
        numbers, values, weights = zip(*lines, strict=True)
        return _Span(
            attributes=np.array(numbers, np.int32),
            values=np.array(values, np.int32),
            weights=np.array(weights, np.float64),
        )

    def _line(self, strata: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[int, int, float]]:
        yield 0, 0, 1.0
        for number, name in enumerate(self._attributes[1:], start=1):
            found = strata.get(name)
            if not found:
                yield number, -1, 1.0
                continue
            for value in found:
                yield number, self._values.setdefault(value, len(self._values)), 1 / len(found)
