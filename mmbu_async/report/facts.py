"""What a report lists in full, as names and values: every form that has room shows the same ones."""

from __future__ import annotations

from collections.abc import Iterator

from mmbu_async.report import words
from mmbu_async.report.model import Detection, Party, ReportData
from mmbu_async.report.sections import Section
from mmbu_async.store.records import CallTotals

Facts = Iterator[tuple[str, str]]


def detection_facts(found: Detection) -> Facts:
    """Object detection beside accuracy."""
    per_row = f", {found.boxes / found.rows:.2f} a row" if found.rows else ""
    yield "Mean max-IoU", f"{words.share(found.mean_iou)} over {words.rows(found.rows)}"
    yield "Boxes offered", f"{words.count(found.boxes)}{per_row}, at most {found.most_boxes} in one"
    yield "True boxes", words.count(found.truths)
    yield "Rows without a usable box", words.count(found.no_boxes)
    yield (
        "F1 over boxes at IoU 0.5, matched one to one",
        f"{words.share(found.matched_f1.value)} ({words.interval(found.matched_f1)})",
    )


def row_facts(report: ReportData) -> Facts:
    """Where the rows stand, and what was odd about replies. A row can be in several lines."""
    rows = report.rows
    yield "Selected", words.count(rows.selected)
    yield "Scored", f"{words.count(rows.scored)}, {words.count(rows.right)} of them right"
    if rows.ungraded:
        yield "Without a public answer", words.count(rows.ungraded)
    yield "Failed", words.count(rows.failed)
    yield "Unjudged", words.count(rows.unjudged)
    yield "Pending", words.count(rows.pending)
    yield "Untagged replies", words.count(rows.untagged)
    yield "Truncated replies", words.count(rows.truncated)
    yield "Refusals", words.count(rows.refused)
    yield "Empty answers", words.count(rows.empty)
    yield "Rows with an image scaled down", words.count(rows.scaled)
    if report.failure_kinds:
        yield "Failed rows by kind", words.tally(report.failure_kinds)
    if report.failed_calls:
        yield "Failed calls by kind, retried ones included", words.tally(report.failed_calls)


def spending(report: ReportData) -> Section:
    """Calls, tokens and money of model and judge."""
    return Section(
        title="Calls, tokens, money, time",
        columns=(
            *("calls", "retries", "429s", "input tokens", "output tokens", "reasoning", "cached"),
            *("no token counts", "cost", "calls of unknown price"),
        ),
        rows=(_spend("model", report.model_spend), _spend("judge", report.judge_spend)),
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


def time_facts(report: ReportData) -> Facts:
    """Time, and verdicts that were not bought."""
    found = "; ".join(words.saved(one.verdicts, one.judge, one.cost_usd) for one in report.saved)
    yield "Taken from identical judge prompts", found or "no verdict"
    yield "Wall time", words.wall(report.clock)
    yield "Throughput", words.throughput(report.clock)


def provenance_facts(report: ReportData) -> Facts:
    """What exactly was run: everything needed to run it again."""
    ran = report.ran
    yield from _party("Model", ran.model)
    if ran.judge and not ran.judge.endpoint:
        yield "Judge", ran.judge.model
    elif ran.judge:
        yield from _party("Judge", ran.judge)
    for party in ran.panel:
        yield from _party("Asked judge", party)
    yield "Benchmark", ran.benchmark
    yield "Source", ran.source
    yield "Rows of the dataset", words.count(report.rows.dataset)
    yield "Fingerprint of the dataset", ran.fingerprint
    for name, value in ran.selection.items():
        yield f"Selection: {name}", words.setting(value)
    yield "Package", f"mmbu-async {', '.join(ran.packages)}"
    yield "Started", words.moment(ran.created_at)


def _party(role: str, party: Party) -> Facts:
    yield role, f"{party.model} at {party.host or 'an unknown host'} ({party.endpoint})"
    if party.reported_models:
        yield f"{role}, as the endpoint names it", words.tally(party.reported_models)
    if party.name != party.model:
        yield f"{role}, name in the store", party.name
    for name, value in party.settings.items():
        yield f"{role}: {name}", words.setting(value)
    for name, sha in party.prompts.items():
        yield f"{role}: prompt {name}", f"SHA-256 {sha}"
