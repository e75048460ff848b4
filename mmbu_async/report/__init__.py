"""Stored facts -> terminal, Markdown, JSON, and exports. Reads the store and statistics alone."""

from mmbu_async.report.build import build_report
from mmbu_async.report.card import to_card
from mmbu_async.report.export import export, write_leaderboard, write_submission
from mmbu_async.report.json import to_json
from mmbu_async.report.leaderboard import to_leaderboard
from mmbu_async.report.markdown import to_markdown
from mmbu_async.report.model import ReportData
from mmbu_async.report.show import print_row
from mmbu_async.report.status import print_runs, print_status
from mmbu_async.report.text import print_report

__all__ = [
    "ReportData",
    "build_report",
    "export",
    "print_report",
    "print_row",
    "print_runs",
    "print_status",
    "to_card",
    "to_json",
    "to_leaderboard",
    "to_markdown",
    "write_leaderboard",
    "write_submission",
]
