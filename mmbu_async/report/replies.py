"""Tables about replies: what became of each row, and how time and tokens spread over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mmbu_async.report import words
from mmbu_async.report.distributions import Histogram
from mmbu_async.report.groups import Group
from mmbu_async.report.model import ReportData
from mmbu_async.report.sections import Section

FATES = {
    "tag": "answer tag",
    "untagged": "untagged: whole reply taken",
    "guessed": "guessed by rule",
    "empty": "empty answer",
    "truncated": "truncated by the token limit",
    "refused": "refused",
    "unjudged": "unjudged",
    "failed": "failed: no reply",
    "pending": "not asked yet",
}
"""What a fate is called where there is room. Other ways to find an answer go by their own name."""


def fate_name(group: Group) -> str:
    return FATES.get(group.name or "", group.name or "(blank)")


def fate_table(report: ReportData) -> Section:
    """Rows by what became of them, and how right each kind is."""
    rows = report.overall.n
    return Section(
        title="Where answers were lost",
        columns=("rows", "share", "right", "open", "accuracy", "95 % CI", "Wilson", "points lost"),
        rows=tuple(
            (
                fate_name(one),
                words.count(one.n) + ("*" if one.small else ""),
                words.share(one.n / rows),
                words.count(one.right),
                words.count(one.open),
                *words.scores(one)[:2],
                words.interval(one.wilson),
                words.share((one.n - one.right - one.open) / rows),
            )
            for one in report.fates
        ),
        note=(
            "Points lost: wrong rows / selected rows, together 1 \u2212 accuracy. Each row is in one line, "
            "the lowest that holds: a truncated reply without an answer tag is counted as truncated."
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One figure of replies, and how it is written."""

    key: str
    name: str
    found: Histogram | None
    write: Callable[[float], str]
    note: str = ""


def spreads(report: ReportData) -> tuple[Spread, ...]:
    """Time and tokens of the reply of each row."""
    found = report.distributions
    return (
        Spread(key="seconds", name="Time to the whole reply", found=found.total_s, write=latency),
        Spread(
            key="first-token",
            name="Time to the first token",
            found=found.first_token_s,
            write=latency,
            note="Of streamed replies. ",
        ),
        Spread(key="input-tokens", name="Input tokens", found=found.input_tokens, write=tokens),
        Spread(
            key="output-tokens",
            name="Output tokens",
            found=found.output_tokens,
            write=tokens,
            note="Reasoning included. ",
        ),
        Spread(key="reasoning-tokens", name="Reasoning tokens", found=found.reasoning_tokens, write=tokens),
    )


def reply_table(report: ReportData) -> Section | None:
    """Quantiles of time and tokens; None where no row has a reply."""
    every = spreads(report)
    rows = tuple((one.name, *_quantiles(one.found, one.write)) for one in every if one.found is not None)
    if not rows:
        return None
    note = (
        "Of the reply that was kept, earlier attempts not added. Quantiles are read out of bins and off by "
        "less than 5 %; mean, least and most are exact."
    )
    if missing := [one.name for one in every if one.found is None]:
        note += f" Not known: {', '.join(missing).lower()}."
    return Section(
        title="Time and tokens of a reply",
        columns=("replies", "zeros", "mean", "least", "median", "p90", "p99", "most"),
        rows=rows,
        note=note,
    )


def _quantiles(found: Histogram, write: Callable[[float], str]) -> Iterator[str]:
    yield words.count(found.n)
    yield words.count(found.zeros)
    for value in (found.mean, found.least, found.median, found.p90, found.p99, found.most):
        yield write(value)


def latency(seconds: float) -> str:
    """Three digits that count, in milliseconds below a second."""
    if 0 < seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:,.0f} s"


def tokens(number: float) -> str:
    return f"{number:,.0f}"
