"""The last lines of a bench, name and words: what a search found, and what to give `mmbu run`."""

from __future__ import annotations

from collections.abc import Iterator

from mmbu_async.bench import words
from mmbu_async.bench.advice import advise
from mmbu_async.bench.objective import Objective
from mmbu_async.bench.report import BenchReport
from mmbu_async.report.words import counted, duration, money
from mmbu_async.stats import Estimate


def search_lines(report: BenchReport) -> Iterator[tuple[str, str]]:
    """The answer of a search, the knee, and what gave way."""
    found, plan = report.bench.result, report.bench.config["bench"]["search"]
    if found is None or plan is None:
        return
    unit = "users" if plan["users"] else "requests a second"
    names = ", ".join(Objective(**one).name for one in plan["objectives"])
    held, failed = found["held"], found["failed"]
    if held is None:
        yield "Found", f"{names}: fails at every load, {_size(failed)} {unit} included"
    elif failed is None:
        yield "Found", f"{names}: holds up to {_size(held)} {unit} at least, the most that was tried"
    else:
        yield "Found", f"{names}: holds up to {_size(held)} {unit}, fails at {_size(failed)}"
    if not found["complete"]:
        sent = counted(found["requests"], "request", "requests")
        yield "", f"not looked for to the end, after {sent}"
    part = next((one for one in report.parts if one.role == "probe" and one.load.size == held), None)
    if part is not None and (good := part.figures.rates.good).value is not None:
        yield "Goodput", f"{words.many(good.value)} replies a second there ({words.interval(good, 'many')})"
    knee = found["capacity"]
    if knee["rate"]["value"] is not None:
        users = f", at about {words.three(knee['users'])} requests under way" if knee["users"] else ""
        rate = Estimate(**knee["rate"])
        fullest = f"{words.many(rate.value)} replies a second ({words.interval(rate, 'many')})"
        yield "Knee", f"{fullest}{users}: what it serves at the fullest"
    yield "Limit", f"{found['bottleneck']['text']}"


def advice_lines(report: BenchReport) -> Iterator[tuple[str, str]]:
    """Settings that `mmbu run` takes, and what a benchmark takes with them."""
    for advice in advise(report):
        who = f"{advice.target}: " if len(report.targets) > 1 else ""
        rpm = "" if advice.rpm is None else f" --rpm {advice.rpm}"
        why = "; no 429, so no --rpm" if advice.rpm is None else ""
        yield "Settings", f"{who}--concurrency {advice.concurrency}{rpm}   (as at {advice.at}{why})"
        if advice.hours is not None:
            cost = "cost unknown" if advice.usd is None else money(advice.usd)
            rows = f"{advice.benchmark}, {counted(advice.rows, 'row', 'rows')}"
            took = f"{duration(advice.hours * 3600)} and {cost}"
            yield "Expected", f"{rows}: {took}, a judge's calls not counted"
        yield "Run", f"{advice.command}"


def _size(value: float) -> str:
    return f"{value:g}"
