"""The report as JSON: `ReportData` as it is, so that every number of the other forms is in it."""

from __future__ import annotations

import orjson

from mmbu_async.report.model import ReportData


def to_json(report: ReportData) -> str:
    """Indented, UTF-8 text kept as it is; ends with a line end. What is not known is null."""
    return orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
