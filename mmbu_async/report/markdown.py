"""The report as GitHub-flavoured Markdown: every group, every interval, every setting in full."""

from __future__ import annotations

from mmbu_async.report import markdown_tables as tables
from mmbu_async.report import words
from mmbu_async.report.facts import detection_facts, provenance_facts, row_facts, spending, time_facts
from mmbu_async.report.groups import SMALL, Group
from mmbu_async.report.model import ReportData
from mmbu_async.report.plain import markdown as safe
from mmbu_async.report.plan import resolution_text
from mmbu_async.report.replies import fate_table, reply_table
from mmbu_async.report.sections import sections

SCORE_COLUMNS = ("rows", "right", "open", "accuracy", "95 % CI", "Wilson", "micro-F1", "95 % CI")


def to_markdown(report: ReportData) -> str:
    """The whole report; ends with a line end."""
    parts = [
        _opening(report),
        scores_text(report),
        _detection(report),
        *(tables.section_text(section) for section in sections(report)),
        _strata(report),
        _rows(report),
        _replies(report),
        _spending(report),
        _provenance(report),
    ]
    return "\n".join(part for part in parts if part)


def _opening(report: ReportData) -> str:
    ran = report.ran
    lines = [
        f"**{safe(report.first_line)}**",
        "",
        f"# {safe(ran.benchmark)} · {safe(ran.model.model)} · run {safe(report.run)}",
        "",
    ]
    lines += [f"- Note: {safe(note)}" for note in report.notes]
    lines += (
        ["- Official settings."] if ran.official else [f"- Unofficial: {safe('; '.join(ran.unofficial))}."]
    )
    return "\n".join(lines) + "\n"


def scores_text(report: ReportData) -> str:
    """All rows and each family, with intervals and how they were made."""
    named = [("all selected", report.overall), *((group.name, group) for group in report.families)]
    random = any(group.chance is not None for _, group in named)
    rows = [
        (*_score_row(name, group), *((words.share(group.chance),) if random else ())) for name, group in named
    ]
    columns = ("task family", *SCORE_COLUMNS, *(("random",) if random else ()))
    text = "## Scores\n\n" + tables.table(columns, rows)
    if random:
        text += f"\nRandom: {words.baseline(report.overall, between=', ')}.\n"
    if report.overall.open:
        text += "\nTwo numbers in place of a score: open rows all wrong, and all right.\n"
    if report.overall.n:
        text += (
            f"\nIntervals ({words.percent(report.level)}): {words.resampled(report.overall)} bootstrap, "
            f"{words.count(report.resamples)} resamples; Wilson's of the accuracy, which keeps a width "
            "where all rows are alike, and takes rows as independent.\n"
        )
    if report.resolution is not None:
        clustered = report.overall.clusters is not None
        text += f"\n{resolution_text(report.resolution, clustered=clustered)}\n"
    return f"{text}\n{report.convention}\n"


def _score_row(name: str | None, group: Group) -> tuple[str, ...]:
    accuracy, accuracy_interval, f1, f1_interval = words.scores(group)
    return (
        safe(name or "(blank)"),
        words.count(group.n) + (" \\*" if group.small else ""),
        words.count(group.right),
        words.count(group.open),
        accuracy,
        accuracy_interval,
        words.interval(group.wilson),
        f1,
        f1_interval,
    )


def _detection(report: ReportData) -> str:
    if report.detection is None:
        return ""
    return "## Object detection beside accuracy\n\n" + tables.listed(detection_facts(report.detection))


def _strata(report: ReportData) -> str:
    parts = []
    for attribute in report.attributes:
        rows = [
            _score_row("(not given)" if group.name is None else group.name, group)
            for group in attribute.groups
        ]
        parts.append(
            f"## By {safe(words.attribute(attribute.name))}\n\n"
            + tables.table(("value", *SCORE_COLUMNS), rows)
        )
    if any(group.small for attribute in report.attributes for group in attribute.groups):
        parts.append(f"\\* fewer than {SMALL} rows: too few to read anything into.\n")
    return "\n".join(parts)


def _rows(report: ReportData) -> str:
    return "## Rows\n\n" + tables.listed(row_facts(report))


def _replies(report: ReportData) -> str:
    parts = [fate_table(report)] if report.fates else []
    parts += [found] if (found := reply_table(report)) else []
    return "\n".join(map(tables.section_text, parts))


def _spending(report: ReportData) -> str:
    return f"{tables.section_text(spending(report))}\n" + tables.listed(time_facts(report))


def _provenance(report: ReportData) -> str:
    return "## What was run\n\n" + tables.listed(provenance_facts(report))
