"""Two benches, or the two endpoints of one, load by load: how much slower or faster, with intervals.

The interval of a ratio is put together from those of its two sides on the logarithmic scale, that of a
difference of shares on the plain one (MOVER: Zou and Donner, Statistics in Medicine 27, 2008), so that what
is asymmetric stays so. The two sides are taken as independent; measured in turns they are more alike than
that, and the intervals rather too wide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mmbu_async.bench import words
from mmbu_async.bench.figures import Figures
from mmbu_async.bench.report import BenchReport, Part
from mmbu_async.bench.spread import Spread
from mmbu_async.errors import ConfigError
from mmbu_async.model import Json
from mmbu_async.report.words import NONE
from mmbu_async.stats import Estimate

TIMES = (
    *(("latency", share, "latency") for share in ("p50", "p95", "p99")),
    *(("ttft", share, "first_token") for share in ("p50", "p95", "p99")),
    ("itl", "p50", "gap"),
    ("tpot", "p50", "token"),
)
"""Name, percentile, and field of `Times`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure on both sides."""

    what: str
    unit: str
    """`s`, `1/s` or `share`."""
    first: Estimate
    second: Estimate
    change: Estimate
    """Second over first; of shares the difference."""

    @property
    def differs(self) -> bool:
        """Whether the interval leaves no change out."""
        none = 0.0 if self.unit == "share" else 1.0
        low, high = self.change.low, self.change.high
        return low is not None and high is not None and not low <= none <= high


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One load on both sides."""

    load: str
    lines: tuple[Line, ...]
    remarks: tuple[str, ...]
    """Why either side is not to be taken at its word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchComparison:
    """Everything."""

    first: str
    second: str
    pairs: tuple[Pair, ...]
    only_first: tuple[str, ...]
    """Loads that the other side has not."""
    only_second: tuple[str, ...]
    differences: tuple[str, ...]
    """What else is not the same: work, streaming, caches."""


def compare(first: BenchReport, second: BenchReport | None) -> BenchComparison:
    """Two benches; None: the two endpoints of the first. Raises ConfigError where there is nothing to
    compare."""
    if second is None:
        if len(first.targets) != 2:
            raise ConfigError(
                f"bench '{first.bench.name}' measured one endpoint: name another bench to compare it with."
            )
        one, other = first.targets
        return _compare(one, first.of(one), other, first.of(other), ())
    for report in (first, second):
        if len(report.targets) > 1:
            raise ConfigError(
                f"bench '{report.bench.name}' measured two endpoints: compare them with `mmbu bench compare "
                f"{report.bench.name}`, and other benches by single ones."
            )
    return _compare(
        first.bench.name,
        first.parts,
        second.bench.name,
        second.parts,
        tuple(_differences(first, second)),
    )


def _compare(
    first: str, ours: Sequence[Part], second: str, theirs: Sequence[Part], differences: tuple[str, ...]
) -> BenchComparison:
    mine = {part.load.name: part for part in ours}
    others = {part.load.name: part for part in theirs}
    both = [name for name in mine if name in others]
    if not both:
        raise ConfigError(
            f"{first} and {second} have no load in common ({', '.join(mine) or 'none'}; "
            f"{', '.join(others) or 'none'}): measure the same ones."
        )
    return BenchComparison(
        first=first,
        second=second,
        pairs=tuple(
            Pair(
                load=name,
                lines=tuple(_lines(mine[name].figures, others[name].figures)),
                remarks=tuple(_remarks(first, mine[name], second, others[name])),
            )
            for name in both
        ),
        only_first=tuple(name for name in mine if name not in others),
        only_second=tuple(name for name in others if name not in mine),
        differences=differences,
    )


def _lines(one: Figures, other: Figures) -> Iterator[Line]:
    for name, rates in (
        ("replies", (one.rates.requests, other.rates.requests)),
        ("good replies", (one.rates.good, other.rates.good)),
        ("output tokens", (one.rates.output_tokens, other.rates.output_tokens)),
    ):
        if rates[0].value and rates[1].value:
            yield Line(what=name, unit="1/s", first=rates[0], second=rates[1], change=ratio(*rates))
    for name, share, field in TIMES:
        first: Spread | None = getattr(one.times, field)
        second: Spread | None = getattr(other.times, field)
        if first is not None and second is not None:
            pair = first.percentiles[share], second.percentiles[share]
            yield Line(what=f"{name} {share}", unit="s", first=pair[0], second=pair[1], change=ratio(*pair))
    for name, shares in (("errors", (one.errors, other.errors)), ("right", (one.right, other.right))):
        if shares[0].value is not None and shares[1].value is not None:
            yield Line(what=name, unit="share", first=shares[0], second=shares[1], change=difference(*shares))


def ratio(first: Estimate, second: Estimate) -> Estimate:
    """Second over first."""
    if not first.value or not second.value:
        return Estimate()
    ends = (first.low, first.high, second.low, second.high)
    value = second.value / first.value
    if any(end is None or end <= 0 for end in ends):
        return Estimate(value=value)
    low_1, high_1, low_2, high_2 = (math.log(end) for end in ends if end is not None)
    at_1, at_2 = math.log(first.value), math.log(second.value)
    down = math.hypot(at_2 - low_2, high_1 - at_1)
    up = math.hypot(high_2 - at_2, at_1 - low_1)
    return Estimate(value=value, low=math.exp(at_2 - at_1 - down), high=math.exp(at_2 - at_1 + up))


def difference(first: Estimate, second: Estimate) -> Estimate:
    """Second less first."""
    if first.value is None or second.value is None:
        return Estimate()
    value = second.value - first.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(value=value)
    down = math.hypot(second.value - second.low, first.high - first.value)
    up = math.hypot(second.high - second.value, first.value - first.low)
    return Estimate(value=value, low=value - down, high=value + up)


def _remarks(first: str, one: Part, second: str, other: Part) -> Iterator[str]:
    for name, part in ((first, one), (second, other)):
        if why := part.verdict.client_limited:
            yield f"{name}: CLIENT-LIMITED: {'; '.join(why)}"
        for remark in part.verdict.remarks:
            yield f"{name}: {remark}"


_UNSET: Mapping[str, Json] = {"image_detail": None, "prompt_caching": False}
"""Settings that came later, as they were before."""


def _differences(first: BenchReport, second: BenchReport) -> Iterator[str]:
    """What makes two benches measure different things."""
    for name in ("work", "caching", "seed", "limits"):
        one, other = first.bench.config["bench"][name], second.bench.config["bench"][name]
        if one != other:
            yield _difference(name, one, other)
    for name in (
        *("model", "endpoint", "stream", "max_tokens", "temperature", "image_detail", "prompt_caching"),
        *("params", "benchmark", "data"),
    ):
        # Benches of earlier versions do not know all of them.
        one, other = (
            bench.config["config"].get(name, _UNSET.get(name)) for bench in (first.bench, second.bench)
        )
        if one != other:
            yield _difference(name, one, other)


def _difference(name: str, one: Json, other: Json) -> str:
    first, second = (words.setting(value) or NONE for value in (one, other))
    return f"{name}: {first} -> {second}"
