"""A bench as JSON and CSV: every request, and in JSON every figure with its interval."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Any

import orjson

from mmbu_async.bench.advice import advise
from mmbu_async.bench.record import Record
from mmbu_async.bench.report import BenchReport, Part
from mmbu_async.model import Json
from mmbu_async.report.plain import csv_cell, json_text

NAMES = tuple(field.name for field in fields(Record))


def to_json(report: BenchReport) -> str:
    """Indented, ends with a line end. What is not known is null."""
    bench = report.bench
    value = {
        "bench": bench.name,
        "started_at": bench.created_at,
        "ended_at": bench.ended_at,
        "ended": bench.ended,
        "host": bench.host,
        "package_version": bench.package_version,
        "cost_usd": bench.cost_usd,
        "config": dict(bench.config),
        "search": bench.result,
        "advice": [asdict(advice) for advice in advise(report)],
        "parts": [_part(part) for part in report.parts],
    }
    return json_text(
        orjson.dumps(
            value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
        ).decode()
    )


def to_csv(report: BenchReport) -> str:
    """A line for each request."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(("part", "target", "load", "role", "block", "counts", *NAMES))
    for number, part in enumerate(report.parts):
        for block, counts, record in _requests(part):
            cells = [getattr(record, name) for name in NAMES]
            writer.writerow(
                (
                    number,
                    csv_cell(part.target),
                    part.load.name,
                    part.role,
                    block,
                    int(counts),
                    *map(_cell, cells),
                )
            )
    return written.getvalue()


def _part(part: Part) -> dict[str, Json]:
    found = asdict(part.figures)
    load = found.pop("load")
    return {
        "target": part.target,
        "role": part.role,
        "load": {"name": part.load.name, **load},
        "figures": found,
        "verdict": asdict(part.verdict),
        "blocks": [
            {
                "began_at": block.began_at,
                "begin_s": block.begin_s,
                "end_s": block.end_s,
                "ended": block.ended.value,
                "drained_s": block.drained_s,
                "timeline": [asdict(tick) for tick in block.ticks],
            }
            for block in part.blocks
        ],
        "requests": [
            {"block": block, "counts": counts, **{name: getattr(record, name) for name in NAMES}}
            for block, counts, record in _requests(part)
        ],
    }


def _requests(part: Part) -> Iterator[tuple[int, bool, Record]]:
    for number, block in enumerate(part.blocks):
        for record in block.records:
            yield number, block.counts(record), record


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return int(value)
    return csv_cell(str(value)) if isinstance(value, str) else value
