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
"""Characters of LONG columns after which a row group ends: a bound for memory where replies are long."""
LONG = ("reply", "reasoning", "judge_reply", "verdicts", "calls")

ROWS_A_BATCH = 200
"""Rows that wait as Python's objects, which take many times the room of Arrow's."""

TEXT, WHOLE, REAL, YES = "text", "whole", "real", "yes"
TEXTS = "texts"
NESTED = "nested"
"""Written as JSON text."""

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
    "strata": NESTED,
    "status": TEXT,
    "correct": YES,
    "answer": TEXT,
    "answer_how": TEXT,
    "tp": WHOLE,
    "fp": WHOLE,
    "fn": WHOLE,
    "score_detail": NESTED,
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
    "verdicts": NESTED,
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
    "calls": NESTED,
}
"""Column -> kind, in the order of the file; the dataset's own columns follow, all of them texts."""


def write_parquet(records: Iterable[dict[str, Json]], path: Path, columns: Sequence[str]) -> int:
    """Write records that have TYPES and `columns`, in this order; returns how many. Without any the file has
    no rows."""
    schema = _schema(columns)
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for group in _groups(records, columns, schema):
            writer.write_table(group)
            count += group.num_rows
    return count


def _schema(columns: Sequence[str]) -> Any:
    types = {
        TEXT: pa.string(),
        WHOLE: pa.int64(),
        REAL: pa.float64(),
        YES: pa.bool_(),
        TEXTS: pa.list_(pa.string()),
        NESTED: pa.string(),
    }
    fields = [(name, types[kind]) for name, kind in TYPES.items()]
    return pa.schema([*fields, *((name, pa.string()) for name in columns)])


def _groups(records: Iterable[dict[str, Json]], columns: Sequence[str], schema: Any) -> Iterator[Any]:
    """Tables, one a row group."""
    nested = (*(name for name, kind in TYPES.items() if kind == NESTED), *columns)
    batches: list[Any] = []
    rows: list[tuple[Json, ...]] = []
    count, held = 0, 0
    for one in records:
        for name in nested:
            value = one[name]
            if value is not None and type(value) is not str:
                one[name] = orjson.dumps(value).decode()
        rows.append(tuple(one.values()))
        count += 1
        held += sum(len(one[name] or "") for name in LONG)
        full = count >= ROWS_A_GROUP or held >= TEXT_A_GROUP
        if full or len(rows) >= ROWS_A_BATCH:
            batches.append(_batch(rows, schema))
            rows = []
        if full:
            yield pa.Table.from_batches(batches)
            batches, count, held = [], 0, 0
    if count:
        yield pa.Table.from_batches([*batches, *([_batch(rows, schema)] if rows else [])])


def _batch(rows: Sequence[tuple[Json, ...]], schema: Any) -> Any:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, schema.types, strict=True)]
    return pa.record_batch(arrays, schema=schema)
