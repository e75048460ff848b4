"""The lower half of a page: where answers were lost, what replies took, what it cost, what was run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mmbu_async.report import words
from mmbu_async.report.distributions import Histogram
from mmbu_async.report.facts import detection_facts, provenance_facts, row_facts, spending, time_facts
from mmbu_async.report.groups import SMALL
from mmbu_async.report.html.bars import Change, Loss, changes, losses
from mmbu_async.report.html.forest import forest, marks
from mmbu_async.report.html.markup import (
    download,
    facts,
    figure,
    grid,
    listed,
    paragraph,
    section,
    slug,
    table,
)
from mmbu_async.report.html.spreads import overlap, spread
from mmbu_async.report.model import Contrast, ReportData
from mmbu_async.report.replies import Spread, fate_name, fate_table, reply_table, spreads
from mmbu_async.report.sections import Section, sections
from mmbu_async.store.records import CallTotals


def detection(report: ReportData) -> str:
    """What object detection says beside right and wrong."""
    found, iou = report.detection, report.distributions.max_iou
    if found is None:
        return ""
    named = facts(detection_facts(found))
    if iou is None:
        return section("detection", "Object detection beside accuracy", named)
    caption = (
        "The largest IoU of any offered with any true box, row by row. Filled: right; hatched: wrong. "
        f"Without any overlap: {words.rows(iou.zeros)}."
    )
    spoken = f"Histogram of the largest IoU of {words.rows(iou.n)}, mean {words.share(iou.mean)}."
    drawn = figure("iou", "Largest IoU", overlap("iou", spoken, iou), caption, _bins("max-iou", iou))
    return section("detection", "Object detection beside accuracy", grid([drawn, named]))


def further(report: ReportData) -> str:
    """Tables that only some runs have."""
    return "".join(
        _further(report, found, found.key or f"further-{place}")
        for place, found in enumerate(sections(report), start=1)
    )


def _further(report: ReportData, found: Section, identity: str) -> str:
    drawn = ""
    if found.key == "contrast" and report.contrast is not None:
        drawn = _contrast(report.contrast)
    data = download(slug(found.title), (found.title, *found.columns), found.rows)
    return section(identity, found.title, drawn, listed(found), data)


def _contrast(found: Contrast) -> str:
    """Both differences of closed and open format, each group a bar."""
    deltas = (found.overall, *found.families)
    figures = []
    for identity, title, estimates in (
        ("delta-accuracy", "Δ of accuracy", [delta.accuracy_difference for delta in deltas]),
        ("delta-f1", "Δ of micro-F1", [delta.difference for delta in deltas]),
    ):
        bars = [
            Change(name=delta.name, n=delta.n, value=one.value, low=one.low, high=one.high)
            for delta, one in zip(deltas, estimates, strict=True)
        ]
        said = "; ".join(f"{bar.name} {words.signed(bar.value)}" for bar in bars)
        caption = (
            "Filled, to the right: higher where options are shown. Hatched, to the left: lower. Lines: 95 % "
            "intervals, bootstrap of rows with their outcomes in both runs."
        )
        drawn = changes(identity, f"{title}, closed minus open: {said}.", bars)
        data = download(
            identity,
            ("group", "rows", "difference", "low", "high"),
            [(bar.name, bar.n, bar.value, bar.low, bar.high) for bar in bars],
        )
        figures.append(figure(identity, title, drawn, caption, data))
    return grid(figures)


def lost(report: ReportData) -> str:
    """Each row under the first thing that went wrong with it, and how right the others are."""
    if not report.fates:
        return ""
    found = fate_table(report)
    return section(
        "lost",
        found.title,
        grid([_points(report), _within(report)]),
        listed(found),
        paragraph("The list counts each oddity apart, so that a row can be in several lines.", class_="note"),
        facts(row_facts(report), short=True),
    )


def _points(report: ReportData) -> str:
    rows = report.overall.n
    bars = [
        Loss(
            name=fate_name(one),
            n=one.n,
            wrong=(one.n - one.right - one.open) / rows,
            open=one.open / rows,
        )
        for one in report.fates
    ]
    said = "; ".join(f"{bar.name} {words.share(bar.wrong)}" for bar in bars)
    caption = "Wrong rows of each kind, as a share of all selected rows: together 1 \u2212 accuracy."
    if report.overall.open:
        caption += " Hatched: open rows, which may be lost or not."
    data = download(
        "points-lost",
        ("what became of the row", "rows", "wrong_share", "open_share"),
        [(bar.name, bar.n, bar.wrong, bar.open) for bar in bars],
    )
    drawn = losses("points-lost", f"Points of accuracy lost: {said}.", bars)
    return figure("points-lost", "Points of accuracy lost", drawn, caption, data)


def _within(report: ReportData) -> str:
    found = [
        replace(mark, name=fate_name(one), aside=False)
        for mark, one in zip(marks(report.fates), report.fates, strict=True)
    ]
    caption = (
        f"How often an answer that was found in this way is right. {words.percent(report.level)} intervals, "
        f"row bootstrap, {words.count(report.resamples)} resamples."
    )
    if any(mark.small for mark in found):
        caption += f" Hollow and *: fewer than {SMALL} rows."
    data = download(
        "accuracy-within",
        ("what became of the row", "rows", "accuracy", "low", "high"),
        [(mark.name, mark.n, mark.value, mark.low, mark.high) for mark in found],
    )
    spoken = "Accuracy of rows by what became of them; the numbers are in the table below."
    drawn = forest("within", spoken, found, reference=report.overall.accuracy.value)
    return figure("within", "Accuracy within each kind", drawn, caption, data)


def replies(report: ReportData) -> str:
    """How time and tokens spread over replies."""
    found = reply_table(report)
    if found is None:
        return ""
    # A row of zeros alone is said by the table.
    figures = [_spread(one, one.found) for one in spreads(report) if one.found and one.found.bins]
    return section("replies", found.title, grid(figures), listed(found))


def _spread(one: Spread, found: Histogram) -> str:
    spoken = (
        f"Histogram of {one.name.lower()} over {words.counted(found.n, 'reply', 'replies')}: median "
        f"{one.write(found.median)}, p90 {one.write(found.p90)}, p99 {one.write(found.p99)}."
    )
    caption = f"{one.note}Replies by value, on a logarithmic scale."
    if found.zeros:
        caption += f" Hatched: {words.count(found.zeros)} with 0."
    drawn = spread(one.key, spoken, found, one.write)
    return figure(one.key, one.name, drawn, caption, _bins(one.key, found))


def _bins(name: str, found: Histogram) -> str:
    zeros = [(0.0, 0.0, found.zeros)] if found.zeros else []
    bins = [(one.low, one.high, one.count) for one in found.bins]
    return download(name, ("from", "below", "rows"), [*zeros, *bins])


def cost(report: ReportData) -> str:
    """Calls, tokens, money and time."""
    found = spending(report)
    # Columns that hold nothing but zeros make the table too wide for a page.
    kept = [
        n
        for n, column in enumerate(found.columns, start=1)
        if column in ALWAYS or any(row[n] != "0" for row in found.rows)
    ]
    columns = ("", *(found.columns[n - 1] for n in kept))
    rows = [(row[0], *(row[n] for n in kept)) for row in found.rows]
    return section(
        "cost",
        "Cost and time",
        facts(_cost_facts(report), short=True),
        table(found.title, columns, rows, shown=False),
        download("calls", ("side", *found.columns), found.rows),
        facts(time_facts(report), short=True),
    )


ALWAYS = frozenset({"calls", "input tokens", "output tokens", "cost"})
"""Columns that are shown also where they are all zero."""


def _cost_facts(report: ReportData) -> Iterator[tuple[str, str]]:
    model, judge = report.model_spend, report.judge_spend
    both = CallTotals(
        cost_usd=model.cost_usd + judge.cost_usd, cost_unknown=model.cost_unknown + judge.cost_unknown
    )
    yield "In all", words.cost(both)
    yield "Model", words.cost(model)
    if judge.calls or report.ran.judge is not None:
        yield "Judge", words.cost(judge)
    rows = report.rows.scored
    if rows and (both.cost_usd or not both.cost_unknown):
        more = "over " if both.cost_unknown else ""
        yield "A scored row", more + words.money(both.cost_usd / rows)
        yield "1,000 scored rows", more + words.money(1000 * both.cost_usd / rows)


def provenance(report: ReportData) -> str:
    """What exactly was run."""
    return section("run", "What was run", facts(provenance_facts(report)))
