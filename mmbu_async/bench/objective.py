"""Objectives: what must hold of a stage for its load to be one that the endpoint can take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mmbu_async.bench.figures import Figures
from mmbu_async.bench.rates import Limits
from mmbu_async.bench.spread import SHARES, Spread
from mmbu_async.errors import ConfigError
from mmbu_async.stats import Estimate

MEASURES = {
    "": "latency",
    "latency": "latency",
    "ttft": "first_token",
    "first-token": "first_token",
    "itl": "gap",
    "tpot": "token",
}
"""How a time can be called, and the field of `Times`; without a name it is the latency."""
_SHOWN = {"latency": "latency", "first_token": "ttft", "gap": "itl", "token": "tpot"}
ERRORS = "errors"
DEFAULT_ERRORS = 0.01
"""Share of requests that may fail where no objective says so: else an endpoint that refuses nine requests of
ten with a fast 429 would keep any time."""
_UNITS = {"s": 1.0, "ms": 1e-3, "min": 60.0, "": 1.0}
_TIME = re.compile(
    r"(?:(?P<share>p50|p90|p95|p99|p99\.9|mean)\s*)?(?P<name>[a-z-]*)\s*<=?\s*(?P<value>[0-9.]+)\s*(?P<unit>[a-z]*)"
)
_SHARE = re.compile(r"errors\s*<=?\s*(?P<value>[0-9.]+)\s*(?P<percent>%?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """`measure` at its `share` is at most `limit`."""

    measure: str
    """A field of `Times`, or `errors`."""
    share: str = "p95"
    """One of SHARES or `mean`; of no meaning for errors."""
    limit: float
    """Seconds, or a share of requests."""

    @property
    def name(self) -> str:
        if self.measure == ERRORS:
            return f"errors <= {self.limit * 100:g} %"
        return f"{self.share} {_SHOWN[self.measure]} <= {self.limit:g} s"

    def value(self, found: Figures) -> Estimate:
        """Where a stage stands; without a value where it has none."""
        if self.measure == ERRORS:
            return found.errors
        spread: Spread | None = getattr(found.times, self.measure)
        if spread is None:
            return Estimate()
        return spread.mean if self.share == "mean" else spread.percentiles[self.share]

    def holds(self, found: Figures) -> bool:
        """Of what was measured; where nothing was, it does not."""
        value = self.value(found).value
        return value is not None and value <= self.limit

    def sure(self, found: Figures) -> bool:
        """Whether the whole interval lies on one side of the limit."""
        value = self.value(found)
        if value.value is None:
            return True
        if value.low is None or value.high is None:
            return False
        return value.high <= self.limit or value.low > self.limit


def parse(text: str) -> Objective:
    """Reads `p95 <= 20s`, `p99 ttft <= 800ms`, `mean tpot <= 50ms` or `errors <= 0.5%`."""
    plain = " ".join(text.lower().split())
    if found := _SHARE.fullmatch(plain):
        limit = _number(found["value"]) / (100 if found["percent"] else 1)
        if 0 <= limit < 1:
            return Objective(measure=ERRORS, limit=limit)
    elif (found := _TIME.fullmatch(plain)) and found["share"] and found["name"] in MEASURES:
        limit = _number(found["value"]) * _UNITS.get(found["unit"], 0.0)
        if limit > 0:
            return Objective(measure=MEASURES[found["name"]], share=found["share"], limit=limit)
    raise ConfigError(
        f"objective '{text}' cannot be read; write it like 'p95 <= 20s', 'p99 ttft <= 800ms', "
        f"'mean tpot <= 50ms' ({', '.join((*SHARES, 'mean'))}) or 'errors <= 0.5%'."
    )


def parse_all(texts: Iterable[str]) -> tuple[Objective, ...]:
    """Those that are given, and one on errors where none is."""
    made = tuple(parse(text) for text in texts)
    if made and not any(one.measure == ERRORS for one in made):
        made += (Objective(measure=ERRORS, limit=DEFAULT_ERRORS),)
    return made


def parse_limits(texts: Iterable[str]) -> Limits:
    """What a single reply must keep: `latency <= 20s`, `ttft <= 2s`, `tpot <= 50ms`."""
    fields = {"latency": "latency_s", "first_token": "first_token_s", "token": "token_time_s"}
    limits: dict[str, float] = {}
    for text in texts:
        found = _TIME.fullmatch(" ".join(text.lower().split()))
        measure = MEASURES.get(found["name"], "") if found is not None and not found["share"] else ""
        value = _number(found["value"]) * _UNITS.get(found["unit"], 0.0) if found is not None else 0.0
        if found is None or not found["name"] or measure not in fields or value <= 0:
            raise ConfigError(
                f"--good '{text}' cannot be read; write what one reply must keep, like 'ttft <= 2s', "
                "'latency <= 20s' or 'tpot <= 50ms'."
            )
        limits[fields[measure]] = value
    return Limits(**limits)


def limits_of(objectives: Iterable[Objective]) -> Limits:
    """What a single reply must keep where the objectives say nothing of single ones: the limits of their
    times, the tightest of each."""
    fields = {"latency": "latency_s", "first_token": "first_token_s", "token": "token_time_s"}
    limits: dict[str, float] = {}
    for one in objectives:
        if one.measure in fields:
            name = fields[one.measure]
            limits[name] = min(one.limit, limits.get(name, one.limit))
    return Limits(**limits)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
