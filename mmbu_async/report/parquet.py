"""Flat records into a Parquet file, a row group at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from mmbu_async.model import Json

ROWS_A_GROUP = 5_000
TEXT_A_GROUP = 64 * 2**20
"""Characters of replies after which a row group ends: a bound for memory where replies are long."""

TEXT, WHOLE, REAL, YES = "text", "whole", "real", "yes"
TEXTS = "texts"

TYPES: Mapping[str, str] = {
    "run": TEXT,
    "row_id": TEXT,
    "position": WHOLE,
    "family": TEXT,
    "route": TEXT,
    "question": TEXT,
    "true_answer": TEXT,
    "options": TEXTS,
    "images": TEXTS,
    "strata": TEXT,
    "status": TEXT,
    "correct": YES,
    "answer": TEXT,
    "answer_how": TEXT,
    "tp": WHOLE,
    "fp": WHOLE,
    "fn": WHOLE,
    "score_detail": TEXT,
    "reply": TEXT,
    "reasoning": TEXT,
    "finish": TEXT,
    "finish_raw": TEXT,
    "reported_model": TEXT,
    "request_id": TEXT,
    "started_at": REAL,
    "total_s": REAL,
    "first_token_s": REAL,
    "failure_kind": TEXT,
    "failure_message": TEXT,
    "failure_status": WHOLE,
    "judge": TEXT,
    "verdict": YES,
    "judge_reply": TEXT,
    "verdicts": TEXT,
    "attempts": WHOLE,
    "input_tokens": WHOLE,
    "output_tokens": WHOLE,
    "reasoning_tokens": WHOLE,
    "cached_tokens": WHOLE,
    "cache_write_tokens": WHOLE,
    "judge_attempts": WHOLE,
    "judge_input_tokens": WHOLE,
    "judge_output_tokens": WHOLE,
    "cost_usd": REAL,
    "cost_unknown": WHOLE,
    "image_scale": REAL,
    "image_sha256": TEXT,
    "image_note": TEXT,
    "calls": TEXT,
}
"""Column -> kind, in the order of the file; the dataset's own columns follow, all of them texts."""


def write_parquet(records: Iterable[Mapping[str, Json]], path: Path, columns: Sequence[str]) -> int:
    """Write records that have TYPES and `columns`; returns how many. Without any the file has no rows."""
    schema = _schema(columns)
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for group in _groups(records, schema.names):
            table = pa.Table.from_pydict(group, schema=schema)
            writer.write_table(table)
            count += table.num_rows
    return count


def _schema(columns: Sequence[str]) -> Any:
    types = {
        TEXT: pa.string(),
        WHOLE: pa.int64(),
        REAL: pa.float64(),
        YES: pa.bool_(),
        TEXTS: pa.list_(pa.string()),
    }
    fields = [(name, types[kind]) for name, kind in TYPES.items()]
    return pa.schema([*fields, *((name, pa.string()) for name in columns)])


def _groups(records: Iterable[Mapping[str, Json]], names: Sequence[str]) -> Iterator[dict[str, list[Json]]]:
    """Columns of values, each as it will be stored: nested ones would take many times the room."""
    group: dict[str, list[Json]] = {name: [] for name in names}
    rows, held = 0, 0
    for one in records:
        for name, values in group.items():
            values.append(_value(one[name], name))
        rows += 1
        held += len(one["reply"] or "") + len(one["reasoning"] or "")
        if rows >= ROWS_A_GROUP or held >= TEXT_A_GROUP:
            yield group
            group = {name: [] for name in names}
            rows, held = 0, 0
    if rows:
        yield group


def _value(value: Json, column: str) -> Json:
    """Text columns hold text: what is none is written as JSON."""
    if value is None or isinstance(value, str) or TYPES.get(column, TEXT) != TEXT:
        return value
    return orjson.dumps(value).decode()
