"""Figures of a bench as a reader wants them. What is not known is a dash, never 0."""

from __future__ import annotations

from collections.abc import Mapping

from mmbu_async.bench.figures import Figures
from mmbu_async.bench.measured import EARLY_ENDS
from mmbu_async.bench.record import Phase
from mmbu_async.bench.spread import Spread
from mmbu_async.model import Json
from mmbu_async.report.words import NONE, percent, share_percent
from mmbu_async.stats import Estimate

NOT_ENDED = "at work, or killed before its end"
"""Of a bench without an end in the store, which cannot tell the two apart."""


def seconds(value: float | None) -> str:
    """`85 µs`, `0.85 ms`, `431 ms`, `2.31 s`, `74 s`: three digits."""
    if value is None:
        return NONE
    if value < 0.0995e-3:
        return f"{value * 1e6:.0f} µs"
    if value < 0.9995:
        return f"{three(value * 1e3)} ms"
    return f"{three(value)} s"


def three(value: float) -> str:
    """Three digits that count."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    digits = 2 if size < 9.995 else 1
    return f"{value:.{digits}f}" if size >= 0.0995 else f"{value:.2g}"


def many(value: float | None) -> str:
    """`950`, `12.3k`, `4.56M`, `1.2G`."""
    if value is None:
        return NONE
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return three(value / (1e3 if unit == "k" else limit)) + unit
    return three(value)


def interval(found: Estimate, shown: str = "seconds") -> str:
    """Its two ends, in the words of the value."""
    if found.low is None or found.high is None:
        return NONE
    how = seconds if shown == "seconds" else many
    return f"{how(found.low)} to {how(found.high)}"


def percentile(found: Spread | None, name: str) -> str:
    return NONE if found is None else seconds(found.percentile(name))


def errors(found: Figures) -> str:
    """`2.5 % (429 3, cut 1)`."""
    bad: dict[Phase, int] = dict(found.phases)
    bad.pop(Phase.OK, None)
    if not bad:
        return "0"
    return f"{share_percent(found.errors.value or 0.0)} ({phases(bad)})"


def phases(counted: Mapping[Phase, int]) -> str:
    return ", ".join(f"{phase.value} {count:,}" for phase, count in counted.items())


def ended(found: Figures) -> str:
    """How it ended, where that is worth a word."""
    return f" [{found.ended.value}]" if found.ended in EARLY_ENDS else ""


def right(found: Figures) -> str:
    if found.right.value is None:
        return NONE
    return f"{percent(found.right.value)} of {found.scored:,}"


def setting(value: Json) -> str:
    """As a person would write it; '' for what is not set."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    if isinstance(value, Mapping):
        pairs = ((name.replace("_", " "), setting(inner)) for name, inner in value.items())
        return ", ".join(f"{name} {inner}" for name, inner in pairs if inner)
    if isinstance(value, list | tuple):
        return "; ".join(filter(None, map(setting, value)))
    return f"{value:g}" if isinstance(value, float) else str(value)
