"""The report on a terminal: readable at 80 columns, and without colour."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from rich.console import Console, RenderableType
from rich.text import Text

from mmbu_async.report import tables, words
from mmbu_async.report.groups import SMALL, Attribute, Group
from mmbu_async.report.model import Detection, Party, ReportData
from mmbu_async.report.plain import line
from mmbu_async.report.plan import resolution_text
from mmbu_async.report.sections import rescored, sections
from mmbu_async.store.records import CallTotals

MOST = 6
"""Values of an attribute that are shown unless all are asked for."""


def print_report(report: ReportData, console: Console, *, most: int | None = MOST) -> None:
    """Print all sections. `most` limits the values shown of each attribute; None shows every one."""
    width = min(console.width, tables.WIDEST)
    for section in _sections(report, most):
        console.print(section, width=width)


def _sections(report: ReportData, most: int | None) -> Iterator[RenderableType]:
    yield from _opening(report)
    yield from _headline(report)
    # Without a score every figure of every table would be 0 to 1.
    if report.rows.scored:
        yield from _breakdown(report, most)
    elif report.rescoring is not None:
        # A re-score may have left no row with a score: that is what a reader wants to know.
        yield from tables.section_table(rescored(report.rescoring))
    yield from _losses(report)
    yield from _spending(report)
    yield from _provenance(report)
    yield from _conventions(report)
    yield from _closing(report)


def _breakdown(report: ReportData, most: int | None) -> Iterator[RenderableType]:
    if report.families:
        yield from _families(report)
    if report.detection is not None:
        yield from _detection(report.detection)
    for section in sections(report):
        yield from tables.section_table(section)
    yield from _strata(report, most)
    if _any_small(report):
        yield Text(f"\n* fewer than {SMALL} rows: too few to read anything into.")


def _opening(report: ReportData) -> Iterator[RenderableType]:
    yield Text(line(report.first_line), style="bold green" if report.complete else "bold red")
    ran = report.ran
    yield Text(line(f"{ran.benchmark} · {ran.model.model} · run {report.run}"), style="bold")
    for note in report.notes:
        yield Text(f"NOTE: {line(note)}", style="yellow")
    if ran.official:
        yield Text("OFFICIAL settings.")
    else:
        yield Text(line(f"UNOFFICIAL: {'; '.join(ran.unofficial)}."), style="yellow")


def _headline(report: ReportData) -> Iterator[RenderableType]:
    overall = report.overall
    accuracy, accuracy_interval, f1, f1_interval = words.scores(overall)
    wilson = f"   Wilson {words.interval(overall.wilson)}" if overall.wilson else ""
    yield Text()
    yield Text(f"Accuracy  {accuracy}   95 % CI {accuracy_interval}{wilson}", style="bold")
    yield Text(f"Micro-F1  {f1}   95 % CI {f1_interval}", style="bold")
    if overall.chance is not None:
        yield Text(f"Random    {words.baseline(overall)}")
    if overall.open:
        yield Text("Each from 'all open rows wrong' to 'all open rows right'.")
    if report.resolution is not None:
        clustered = overall.clusters is not None
        yield Text(resolution_text(report.resolution, clustered=clustered))


def _families(report: ReportData) -> Iterator[RenderableType]:
    columns = ("rows", "acc", "95 % CI", "F1", "95 % CI")
    random = any(group.chance is not None for group in report.families)
    table = tables.table("By task family", *columns, *(("random",) if random else ()))
    for group in report.families:
        chance = (words.share(group.chance),) if random else ()
        table.add_row(tables.label(group.name), _rows(group), *words.scores(group), *chance)
    yield Text()
    yield table


def _detection(found: Detection) -> Iterator[RenderableType]:
    per_row = f", {found.boxes / found.rows:.2f} a row, at most {found.most_boxes}"
    yield from tables.facts(
        "Object detection beside accuracy",
        (
            ("Mean max-IoU", f"{words.share(found.mean_iou)} over {words.rows(found.rows)}"),
            ("Boxes offered", f"{words.count(found.boxes)}{per_row}; true boxes {words.count(found.truths)}"),
            ("No usable box", words.rows(found.no_boxes)),
            (
                "One-to-one F1",
                f"{words.share(found.matched_f1.value)} at IoU 0.5, "
                f"95 % CI {words.interval(found.matched_f1)}; many guesses lower it",
            ),
        ),
    )


def _strata(report: ReportData, most: int | None) -> Iterator[RenderableType]:
    """A table an attribute; those that would say nothing new are named in a line."""
    alike: list[str] = []
    titles: dict[tuple[Group, ...], str] = {}
    repeated: list[str] = []
    for attribute in report.attributes:
        title = words.attribute(attribute.name)
        if len(attribute.groups) == 1:
            alike.append(f"{title} {attribute.groups[0].name}")
        elif attribute.groups in titles:
            repeated.append(f"{title} has the groups of {titles[attribute.groups]}")
        else:
            titles[attribute.groups] = title
            yield from _stratum(attribute, title, most)
    if alike:
        yield Text(f"\nThe same in all rows: {line(', '.join(alike))}.")
    if repeated:
        yield Text(f"\nNot shown twice: {line('; '.join(repeated))}.")


def _stratum(attribute: Attribute, title: str, most: int | None) -> Iterator[RenderableType]:
    groups = attribute.groups
    # One that would be left out alone is shown instead of announced.
    shown = groups if most is None or len(groups) <= most + 1 else groups[:most]
    table = tables.table(f"By {line(title)}", "rows", "acc", "95 % CI", "F1")
    for group in shown:
        label = "(not given)" if group.name is None else group.name
        table.add_row(tables.label(label), _rows(group), *words.scores(group)[:3])
    yield Text()
    yield table
    if left := len(groups) - len(shown):
        yield Text(f"and {words.count(left)} more; --all shows every one", style="dim")


def _any_small(report: ReportData) -> bool:
    groups = chain(report.families, *(attribute.groups for attribute in report.attributes))
    return any(group.small for group in groups)


def _losses(report: ReportData) -> Iterator[RenderableType]:
    rows = report.rows
    facts = [
        (
            "Selected",
            f"{words.count(rows.selected)}: {words.count(rows.scored)} scored "
            f"({words.count(rows.right)} right), {words.count(rows.failed)} failed, "
            f"{words.count(rows.unjudged)} unjudged, {words.count(rows.pending)} pending"
            + (f", {words.count(rows.ungraded)} without a public answer" if rows.ungraded else ""),
        ),
        (
            "Replies",
            f"{words.count(rows.untagged)} untagged, {words.count(rows.truncated)} truncated, "
            f"{words.count(rows.refused)} refused, {words.count(rows.empty)} empty",
        ),
    ]
    if report.failure_kinds:
        facts.append(("Failed rows", words.tally(report.failure_kinds)))
    if report.failed_calls:
        facts.append(("Failed calls", f"{words.tally(report.failed_calls)} (retried ones included)"))
    if rows.scaled:
        facts.append(("Images", f"{words.rows(rows.scaled)} with an image scaled down for the endpoint"))
    yield from tables.facts("Rows", facts)


def _spending(report: ReportData) -> Iterator[RenderableType]:
    sides = [(label, spend) for label, spend in _sides(report) if spend.calls]
    numbers = {name: [number(spend) for _, spend in sides] for name, number in _SPEND_COLUMNS.items()}
    kept = {name: column for name, column in numbers.items() if any(column) or name in _ALWAYS}
    table = tables.table("Calls", *kept, "cost", expand=False)
    for place, (label, spend) in enumerate(sides):
        cells = (words.count(column[place]) for column in kept.values())
        table.add_row(label, *cells, words.cost(spend))
    yield Text()
    yield table if sides else Text("No calls yet.")
    for label, spend in sides:
        if spend.cost_unknown:
            yield Text(
                f"What {words.count(spend.cost_unknown)} of {words.count(spend.calls)} {label} calls cost "
                "is not known; the sum leaves them out."
            )
        if spend.usage_unreported:
            yield Text(
                f"{words.counted(spend.usage_unreported, f'{label} reply', f'{label} replies')} came without "
                "token counts."
            )
    for one in report.saved:
        said = words.saved(one.verdicts, one.judge, one.cost_usd)
        yield Text(f"Taken from identical judge prompts: {line(said)}.")
    clock = report.clock
    rate = "" if clock.rows_per_s is None else f"; {words.throughput(clock)}"
    yield Text(f"Time {words.wall(clock)}{rate}.")


_SPEND_COLUMNS: Mapping[str, Callable[[CallTotals], int]] = {
    "calls": lambda spend: spend.calls,
    "retries": lambda spend: spend.retries,
    "429s": lambda spend: spend.rate_limited,
    "input": lambda spend: spend.input_tokens,
    "cached": lambda spend: spend.cached_tokens,
    "output": lambda spend: spend.output_tokens,
    "reasoning": lambda spend: spend.reasoning_tokens,
}
_ALWAYS = frozenset({"calls", "input", "output"})
"""Columns that are shown also where they are all 0."""


def _sides(report: ReportData) -> tuple[tuple[str, CallTotals], ...]:
    return (("model", report.model_spend), ("judge", report.judge_spend))


def _provenance(report: ReportData) -> Iterator[RenderableType]:
    ran = report.ran
    facts = [("Model", _party(ran.model))]
    if ran.model.reported_models:
        facts.append(("Reported as", words.tally(ran.model.reported_models)))
    if ran.judge is not None:
        facts.append(("Judge", f"{_party(ran.judge)}; verdicts kept as {ran.judge.name}"))
    for party in ran.panel:
        called = "" if party.name == party.model else f"{party.name}: "
        facts.append(("Asked", called + _party(party)))
    prompts = {**ran.model.prompts, **(ran.judge.prompts if ran.judge else {})}
    facts += [
        ("Prompts", ", ".join(f"{name} {sha[:12]}" for name, sha in prompts.items()) or "none"),
        ("Dataset", f"{ran.source}, {words.rows(report.rows.dataset)}, fingerprint {ran.fingerprint[:12]}"),
        ("Package", f"mmbu-async {', '.join(ran.packages)}"),
        ("Started", words.moment(ran.created_at)),
    ]
    yield from tables.facts("What was run", facts)


def _conventions(report: ReportData) -> Iterator[RenderableType]:
    yield Text("\nHow it is counted", style="bold")
    yield Text(line(report.convention))
    resampled = f"{words.percent(report.level)} {words.resampled(report.overall)} bootstrap"
    wilson = " All rows alike give it no width; Wilson's interval keeps one."
    yield Text(
        f"CI: {resampled}, {words.count(report.resamples)} resamples."
        + (wilson if report.overall.clusters is None else "")
    )


def _closing(report: ReportData) -> Iterator[RenderableType]:
    """The outcome once more: on a terminal the first lines have scrolled away by now."""
    accuracy, _, f1, _ = words.scores(report.overall)
    style = "bold green" if report.complete else "bold red"
    yield Text(f"\n{line(report.first_line)}\nAccuracy {accuracy}, micro-F1 {f1}", style=style)


def _party(party: Party) -> str:
    if not party.endpoint:
        # A majority is at no address.
        return party.model
    settings = ", ".join(f"{name} {words.setting(value)}" for name, value in party.settings.items())
    where = f"{party.model} at {party.host or 'an unknown host'} ({party.endpoint})"
    return f"{where}, {settings}" if settings else where


def _rows(group: Group) -> str:
    return words.count(group.n) + ("*" if group.small else " ")
