"""The report as GitHub-flavoured Markdown: every group, every interval, every setting in full."""

from __future__ import annotations

from collections.abc import Iterator

from mmbu_async.report import markdown_tables as tables
from mmbu_async.report import words
from mmbu_async.report.groups import SMALL, Group
from mmbu_async.report.model import Party, ReportData
from mmbu_async.report.plain import markdown as safe
from mmbu_async.report.plan import resolution_text
from mmbu_async.report.sections import sections
from mmbu_async.store.records import CallTotals

SCORE_COLUMNS = ("rows", "right", "open", "accuracy", "95 % CI", "Wilson", "micro-F1", "95 % CI")


def to_markdown(report: ReportData) -> str:
    """The whole report; ends with a line end."""
    parts = [
        _opening(report),
        _scores(report),
        _detection(report),
        *(tables.section_text(section) for section in sections(report)),
        _strata(report),
        _rows(report),
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


def _scores(report: ReportData) -> str:
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
    found = report.detection
    if found is None:
        return ""
    per_row = f", {found.boxes / found.rows:.2f} a row" if found.rows else ""
    return "## Object detection beside accuracy\n\n" + tables.listed(
        (
            ("Mean max-IoU", f"{words.share(found.mean_iou)} over {words.rows(found.rows)}"),
            ("Boxes offered", f"{words.count(found.boxes)}{per_row}, at most {found.most_boxes} in one"),
            ("True boxes", words.count(found.truths)),
            ("Rows without a usable box", words.count(found.no_boxes)),
            (
                "F1 over boxes at IoU 0.5, matched one to one",
                f"{words.share(found.matched_f1.value)} ({words.interval(found.matched_f1)})",
            ),
        )
    )


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
    rows = report.rows
    facts = [
        ("Selected", words.count(rows.selected)),
        ("Scored", f"{words.count(rows.scored)}, {words.count(rows.right)} of them right"),
        ("Failed", words.count(rows.failed)),
        ("Unjudged", words.count(rows.unjudged)),
        ("Pending", words.count(rows.pending)),
        ("Untagged replies", words.count(rows.untagged)),
        ("Truncated replies", words.count(rows.truncated)),
        ("Refusals", words.count(rows.refused)),
        ("Empty answers", words.count(rows.empty)),
        ("Rows with an image scaled down", words.count(rows.scaled)),
    ]
    if report.failure_kinds:
        facts.append(("Failed rows by kind", words.tally(report.failure_kinds)))
    if report.failed_calls:
        facts.append(("Failed calls by kind, retried ones included", words.tally(report.failed_calls)))
    return "## Rows\n\n" + tables.listed(facts)


def _spending(report: ReportData) -> str:
    columns = (
        "",
        "calls",
        "retries",
        "429s",
        "input tokens",
        "output tokens",
        "reasoning",
        "cached",
        "no token counts",
        "cost",
        "calls of unknown price",
    )
    sides = (("model", report.model_spend), ("judge", report.judge_spend))
    text = "## Calls, tokens, money, time\n\n" + tables.table(columns, [_spend(*side) for side in sides])
    clock = report.clock
    return f"{text}\n" + tables.listed(
        (
            ("Verdicts taken from an identical judge prompt", words.count(report.shared_verdicts)),
            (
                "Wall time",
                f"{words.duration(clock.wall_s)} in {words.counted(clock.sessions, 'session', 'sessions')}",
            ),
            ("Throughput", words.rate(clock.rows_per_s)),
        )
    )


def _spend(label: str, spend: CallTotals) -> tuple[str, ...]:
    numbers = (
        spend.calls,
        spend.retries,
        spend.rate_limited,
        spend.input_tokens,
        spend.output_tokens,
        spend.reasoning_tokens,
        spend.cached_tokens,
        spend.usage_unreported,
    )
    return (
        label,
        *(words.count(number) for number in numbers),
        words.cost(spend),
        words.count(spend.cost_unknown),
    )


def _provenance(report: ReportData) -> str:
    ran = report.ran
    facts = [*_party("Model", ran.model)]
    facts += _party("Judge", ran.judge) if ran.judge else [("Judge", "none")]
    facts += [
        ("Benchmark", ran.benchmark),
        ("Source", ran.source),
        ("Rows of the dataset", words.count(report.rows.dataset)),
        ("Fingerprint of the dataset", ran.fingerprint),
        *((f"Selection: {name}", words.setting(value)) for name, value in ran.selection.items()),
        ("Package", f"mmbu-async {', '.join(ran.packages)}"),
        ("Started", words.moment(ran.created_at)),
    ]
    return "## What was run\n\n" + tables.listed(facts)


def _party(role: str, party: Party) -> Iterator[tuple[str, str]]:
    yield role, f"{party.model} at {party.host or 'an unknown host'} ({party.endpoint})"
    if party.reported_models:
        yield f"{role}, as the endpoint names it", words.tally(party.reported_models)
    if party.name != party.model:
        yield f"{role}, name in the store", party.name
    for name, value in party.settings.items():
        yield f"{role}: {name}", words.setting(value)
    for name, sha in party.prompts.items():
        yield f"{role}: prompt {name}", f"SHA-256 {sha}"
