"""A report or a comparison as JSON: its values as they are, with every number of the other forms."""

from __future__ import annotations

import orjson

from mmbu_async.report.adaptations import Adaptations
from mmbu_async.report.comparison import Comparison
from mmbu_async.report.judges import JudgesReport
from mmbu_async.report.model import ReportData
from mmbu_async.report.plain import json_text


def to_json(report: ReportData | Comparison | Adaptations | JudgesReport) -> str:
    """Indented, ends with a line end. What is not known is null."""
    return json_text(orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())
