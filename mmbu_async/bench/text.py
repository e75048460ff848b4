"""A bench in the terminal: a line for each part, each time in full, and what must be known to believe it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mmbu_async.bench import words
from mmbu_async.bench.columns import OVERVIEW, Columns, shown
from mmbu_async.bench.conclusions import advice_lines, search_lines
from mmbu_async.bench.figures import Figures
from mmbu_async.bench.pool import Caching
from mmbu_async.bench.report import BenchReport, Part
from mmbu_async.bench.spread import SHARES, Spread
from mmbu_async.report.plain import line
from mmbu_async.report.words import NONE, counted, moment, money
from mmbu_async.store.benches import BenchRecord

TIMES = (
    ("latency", "from the intended start to the last byte", "latency"),
    ("first token", "from the intended start", "first_token"),
    ("first reasoning token", "from the actual start", "first_thought"),
    ("first output token", "from the actual start", "first_output"),
    ("between tokens", "inter-token latency", "gap"),
    ("time per token", "of a reply, after the first", "token"),
    ("service", "from the actual start", "service"),
    ("start delay", "intended to actual start", "delay"),
    ("connect", "where a connection was opened", "connect"),
    ("upload", "of the request, on an open connection", "upload"),
    ("first byte", "of the response, from the actual start", "first_byte"),
)
"""Name, what it is, and the field of `Times`."""


def print_report(report: BenchReport, console: Console, *, full: bool = False) -> None:
    """`full`: every time of every part with its percentiles."""
    bench = report.bench
    console.print(
        Text(line(f"Bench {bench.name}: {', '.join(report.targets) or 'nothing measured'}"), style="bold")
    )
    for fact in facts(report):
        console.print(Text(line(fact)), soft_wrap=True)
    if report.parts:
        for columns in OVERVIEW:
            if any(shown(report.parts, columns)):
                console.print()
                console.print(overview(report.parts, columns))
        console.print(Text(line(NOTE)), style="dim", soft_wrap=True)
    if full:
        for part in report.parts:
            console.print()
            console.print(Text(line(title(part)), style="bold"))
            console.print(in_full(part.figures))
            for name, value in rates(part.figures):
                console.print(Text(f"  {name}  {value}"), soft_wrap=True)
    for warning in warnings(report.parts):
        console.print(Text(line(warning)), style="bold red", soft_wrap=True)
    for remark in remarks(report.parts):
        console.print(Text(line(remark)), style="yellow", soft_wrap=True)
    for name, told in (*search_lines(report), *advice_lines(report)):
        console.print(Text(line(f"{name:<9}{told}")), soft_wrap=True)


def print_benches(benches: Sequence[BenchRecord], console: Console) -> None:
    """One line each, oldest first."""
    if not benches:
        console.print(Text("The store has no benches yet; `mmbu bench` makes one."))
        return
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("bench", overflow="fold")
    table.add_column("model", overflow="fold")
    table.add_column("work", overflow="fold")
    table.add_column("requests", justify="right", no_wrap=True)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("ended", no_wrap=True)
    table.add_column("started", no_wrap=True)
    for bench in benches:
        texts = (bench.name, str(bench.config["config"]["model"]), str(bench.config["bench"]["work"]))
        table.add_row(
            *(Text(line(text)) for text in texts),
            f"{bench.requests:,}",
            money(bench.cost_usd) if bench.cost_usd else NONE,
            bench.ended or words.NOT_ENDED,
            moment(bench.created_at),
        )
    console.print(table)


MOST_ALIKE = 3
"""Remarks that are told one by one beside the first like them."""
_NUMBER = re.compile(r"\d[\d,.]*")

NOTE = (
    "Times are of replies, from the intended start; percentiles within 0.1 %. What failed is counted by "
    "phase and enters no time. Upload, first byte, thought and answer: from the actual start. `--all`: every "
    "time in full."
)


def facts(report: BenchReport) -> Iterator[str]:
    """What was measured, in lines."""
    bench, own = report.bench, report.bench.config["bench"]
    config = bench.config["config"]
    how = ["streamed" if config["stream"] else "not streamed", f"{own['caching']} to caches"]
    yield f"{own['work']}; {', '.join(how)}; seed {own['seed']}; {moment(bench.created_at)}"
    sent = sum(part.figures.sent for part in report.parts)
    distinct = int(bench.config.get("distinct") or sent)
    if own["caching"] == Caching.PLAIN and sent > distinct * max(1, len(report.targets)):
        yield (
            f"of {distinct:,} different requests, in turn: a cache may have known those that came again, and "
            "`--cache bust` makes each a new one"
        )
    if warm := sum(part.figures.warmup for part in report.parts):
        yield f"{sent:,} requests; {counted(warm, 'of them is', 'of them are')} warm-up and in no figure"
    if sent and bench.requests > sent:
        tried = counted(bench.requests - sent, "request", "requests")
        yield f"{tried} before them, to see that it answers: counted in the cost, and in `mmbu bench list`"
    unknown = sum(part.figures.cost_unknown for part in report.parts)
    if bench.requests:
        yield f"cost {_cost(bench.cost_usd, unknown)}"
    if bench.ended != "done":
        yield f"ended early: {bench.ended}" if bench.ended else f"not ended: {words.NOT_ENDED}"


def _cost(known: float, unknown: int) -> str:
    if not unknown:
        return money(known)
    beyond = f"what {counted(unknown, 'request', 'requests')} of unknown cost took"
    return f"{money(known)} and {beyond}" if known else "unknown: no price is known"


def title(part: Part) -> str:
    return f"{part.target}, {part.load.name}{words.ended(part.figures)}"


def overview(parts: Sequence[Part], columns: Columns) -> Table:
    """A line for each part. Where it is narrow names are folded, and no figure is cut."""
    several = len({part.target for part in parts}) > 1
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(columns.title, overflow="fold")
    told = list(shown(parts, columns))
    for name, cells in told:
        if name == "errors":
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="right", no_wrap=True, min_width=max(map(len, (name, *cells))))
    for place, part in enumerate(parts):
        name = part.load.name + words.ended(part.figures)
        head = f"{part.target}, {name}" if several else name
        table.add_row(Text(line(head)), *(Text(line(cells[place])) for _, cells in told))
    return table


def in_full(found: Figures) -> Table:
    """Every time with its percentiles."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    for name in ("mean", *SHARES, "max"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, _, spread in spreads(found):
        shares = [words.seconds(spread.percentile(share)) for share in SHARES]
        table.add_row(name, words.seconds(spread.mean.value), *shares, words.seconds(spread.largest))
    return table


def spreads(found: Figures) -> Iterator[tuple[str, str, Spread]]:
    """Those that there are: name, what it is, and how it is spread."""
    for name, what, field in TIMES:
        spread: Spread | None = getattr(found.times, field)
        if spread is not None:
            yield name, what, spread


def rates(found: Figures) -> Iterator[tuple[str, str]]:
    """What there was a second, and what a reply takes on average."""
    had = found.rates
    names = (
        ("requests started", had.started),
        ("replies", had.requests),
        ("good replies", had.good),
        ("images", had.images),
        ("pixels", had.pixels),
        ("input tokens", had.input_tokens),
        ("output tokens", had.output_tokens),
        ("reasoning tokens", had.reasoning_tokens),
        ("bytes up", had.bytes_up),
        ("bytes down", had.bytes_down),
    )
    for name, estimate in names:
        if estimate.value:
            yield f"{name} a second", f"{words.many(estimate.value)} ({words.interval(estimate, 'many')})"
    if found.input_tokens is not None and found.output_tokens is not None:
        mark = " (estimated)" if found.estimated else ""
        yield (
            "tokens a reply",
            f"{words.many(found.input_tokens)} in, {words.many(found.output_tokens)} out{mark}",
        )
    yield "on the wire", f"{words.three(found.on_the_wire)} requests, mean"


def warnings(parts: Sequence[Part]) -> Iterator[str]:
    """Where this process had its part in the figures, loudly."""
    limited = [part for part in parts if part.verdict.client_limited]
    if not limited:
        return
    yield (
        "CLIENT-LIMITED: these figures are this process's as much as the endpoint's. Measure with less load, "
        "on a machine with nothing else to do, or with several processes."
    )
    for part in limited:
        yield f"  {title(part)}: {'; '.join(part.verdict.client_limited)}"


def remarks(parts: Sequence[Part]) -> Iterator[str]:
    """What is said of every part in the same words but for its numbers is one line: it begins with the first,
    and says of how many others it is true."""
    alike: dict[str, list[str]] = {}
    for part in parts:
        for remark in part.verdict.remarks:
            alike.setdefault(_NUMBER.sub("#", remark), []).append(f"{title(part)}: {remark}")
    for first, *others in alike.values():
        if len(others) < MOST_ALIKE:
            yield from (f"{one}." for one in (first, *others))
        else:
            yield f"{first}. The like of {counted(len(others), 'other load', 'other loads')}."
