"""A bench as one HTML file that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mmbu_async.bench import words
from mmbu_async.bench.columns import OVERVIEW, shown
from mmbu_async.bench.conclusions import advice_lines, search_lines
from mmbu_async.bench.drawings import Spot, curve, distribution, histogram, timeline
from mmbu_async.bench.measured import EARLY_ENDS
from mmbu_async.bench.plan import Closed, Open
from mmbu_async.bench.record import Record
from mmbu_async.bench.report import BenchReport, Part
from mmbu_async.bench.spread import SHARES
from mmbu_async.bench.text import facts, rates, remarks, spreads, title, warnings
from mmbu_async.report.html.markup import (
    details,
    download,
    element,
    figure,
    grid,
    meaning,
    paragraph,
    section,
    table,
    text,
)
from mmbu_async.report.html.markup import facts as listed_facts
from mmbu_async.report.html.page import page
from mmbu_async.stats import Estimate

MEANING = (
    "Times are of replies alone. Latency and time to the first token count from the moment at which a "
    "request was meant to start, so that waiting in front of a slow endpoint is in them.",
    "Percentiles are within 0.1 % of the requests' own; intervals (95 %) come from drawing runs of "
    "neighbouring requests anew, since requests that wait in one queue resemble each other.",
    "Each request was sent once and is one record. What failed is counted by how far it came and enters no "
    "time.",
    "Rates are of replies that came between the end of the warm-up and the last start.",
)


OF_RUNS = frozenset(
    {
        *("batch", "batch_poll", "batch_size", "circular", "concurrency", "judge", "judge_coverage"),
        *("max_attempts", "max_retry_time", "panel", "preflight", "rpm", "tpm", "verdict"),
    }
)
"""Settings that are stored beside those of a bench and not heeded: told, they would contradict it."""


def to_html(report: BenchReport) -> str:
    """The whole page."""
    name = ", ".join(report.targets) or report.bench.name
    head = (
        element("h1", text(name)),
        paragraph(f"Bench {report.bench.name}", class_="muted"),
        *(paragraph(fact) for fact in facts(report)),
        *(paragraph(warning, class_="state incomplete") for warning in warnings(report.parts)),
        *(paragraph(remark, class_="notice") for remark in remarks(report.parts)),
    )
    told = [*search_lines(report), *advice_lines(report)]
    opening = (listed_facts(told) if told else "") + meaning(MEANING)
    parts = (
        section("curve", "Latency over throughput", *_curve(report)),
        section("figures", "Figures", *_overviews(report.parts)),
        section("time", "Over time", grid(list(_timelines(report.parts)))),
        section("spread", "How times are spread", grid(list(_distributions(report.parts)))),
        section("full", "In full", *(_in_full(part) for part in report.parts)),
        section("set-up", "What was measured", listed_facts(_settings(report))),
    )
    return page(f"{report.bench.name}: {name}", "\n".join(head), opening, parts=parts if report.parts else ())


def _curve(report: BenchReport) -> Iterator[str]:
    lines = [
        (target, spots)
        for target in report.targets
        for kind in (Closed, Open)
        if (spots := list(_spots([part for part in report.of(target) if isinstance(part.load, kind)])))
    ]
    if not lines:
        yield paragraph("No load gave replies enough.")
        return
    said = "; ".join(
        f"{target}, {spot.name}: {words.three(spot.rate)}/s at p50 {words.seconds(spot.p50)}"
        for target, spots in lines
        for spot in spots
    )
    drawn = curve("curve-drawn", f"Latency over throughput. {said}.", lines)
    caption = (
        "A point for each load, joined in their order; users at once and rates by lines of their own. Round "
        "and solid: median; square and dashed: p95. Hollow: ended early, or the client was the limit."
    )
    if len(report.targets) > 1:
        caption += f" First colour: {report.targets[0]}; second: {report.targets[1]}."
    rows = [
        (target, spot.name, spot.rate, spot.p50, spot.p95, int(spot.clean))
        for target, spots in lines
        for spot in spots
    ]
    data = download("curve", ("endpoint", "load", "replies_a_second", "p50_s", "p95_s", "clean"), rows)
    yield grid([figure("curve-figure", "Latency over throughput", drawn, caption, data)])


def _spots(parts: Sequence[Part]) -> Iterator[Spot]:
    for part in sorted(parts, key=lambda part: part.load.size):
        latency, rate = part.figures.times.latency, part.figures.rates.requests.value
        if latency is not None and rate:
            yield Spot(
                name=part.load.name.partition(" (")[0],
                rate=rate,
                p50=latency.percentile("p50"),
                p95=latency.percentile("p95"),
                clean=part.figures.ended not in EARLY_ENDS and not part.verdict.client_limited,
            )


def _overviews(parts: Sequence[Part]) -> Iterator[str]:
    for columns in OVERVIEW:
        if told := list(shown(parts, columns)):
            yield _overview(parts, columns.title, told)


def _overview(parts: Sequence[Part], name: str, told: Sequence[tuple[str, Sequence[str]]]) -> str:
    rows = [(title(part), *(cells[place] for _, cells in told)) for place, part in enumerate(parts)]
    return table(name, ("load", *(column for column, _ in told)), rows)


def _timelines(parts: Sequence[Part]) -> Iterator[str]:
    for number, part in enumerate(parts):
        if any(block.records for block in part.blocks):
            label = f"Requests over time at {title(part)}"
            drawn = timeline(f"time-{number}", label, part.blocks)
            caption = "When each request was meant to start, and how long it was waited for; crosses failed."
            data = download(
                f"requests-{number}",
                ("block", "number", "intended_s", "latency_s", "phase", "counts"),
                (
                    (
                        place,
                        one.number,
                        one.intended_s,
                        one.latency_s,
                        one.phase.value,
                        int(block.counts(one)),
                    )
                    for place, block in enumerate(part.blocks)
                    for one in block.records
                ),
            )
            yield figure(f"time-figure-{number}", title(part), drawn, caption if number == 0 else "", data)


def _distributions(parts: Sequence[Part]) -> Iterator[str]:
    for number, part in enumerate(parts):
        replies = [
            record for block in part.blocks for record in block.records if record.ok and block.counts(record)
        ]
        for name, read in (("latency", _latency), ("first token", _first)):
            values = [value for record in replies if (value := read(record)) is not None]
            if len(values) > 1:
                identity = f"{name.replace(' ', '-')}-{number}"
                label = f"{name.capitalize()} at {title(part)}"
                found = histogram(values)
                bins = [(one.low, one.high, one.count) for one in found.bins]
                data = download(identity, ("from_s", "to_s", "replies"), bins)
                yield figure(f"{identity}-figure", label, distribution(identity, label, found), "", data)


def _latency(record: Record) -> float | None:
    return record.latency_s


def _first(record: Record) -> float | None:
    return record.first_token_s


def _in_full(part: Part) -> str:
    rows = [
        (
            f"{name} ({what})",
            _with_interval(spread.mean),
            *(_with_interval(spread.percentiles[share]) for share in SHARES),
            words.seconds(spread.largest),
        )
        for name, what, spread in spreads(part.figures)
    ]
    columns = ("time", "mean", *SHARES, "max")
    return details(
        title(part),
        table("Times with 95 % intervals", columns, rows),
        listed_facts(rates(part.figures), short=True),
        download(f"times-{title(part)}", ("time", "count", *_ENDS), _numbers(part)),
    )


_ENDS = tuple(f"{share}{end}" for share in ("mean", *SHARES) for end in ("", "_low", "_high"))


def _numbers(part: Part) -> Iterator[tuple[Any, ...]]:
    for name, _, spread in spreads(part.figures):
        found = (spread.mean, *(spread.percentiles[share] for share in SHARES))
        yield (name, spread.count, *(end for one in found for end in (one.value, one.low, one.high)))


def _with_interval(found: Estimate) -> str:
    value = words.seconds(found.value)
    return value if found.low is None else f"{value} ({words.interval(found)})"


def _settings(report: BenchReport) -> Iterator[tuple[str, str]]:
    config = report.bench.config
    had = {name: value for name, value in config["config"].items() if name not in OF_RUNS}
    found = had | {"bench host": report.bench.host} | config["bench"]
    for name, value in found.items():
        if said := words.setting(value):
            yield name.replace("_", " "), said


__all__ = ["to_html"]
