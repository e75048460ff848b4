"""When requests of an open loop are meant to start: known before the first is sent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from mmbu_async.errors import ConfigError

BURSTIEST = 0.01
"""Least shape of gamma gaps: below, nearly all of them are 0 and the rest hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """How the gaps between starts are spread, whatever their mean."""

    kind: str = "constant"
    """`constant`: all alike; `poisson`: as of independent users; `gamma`: of a shape of one's own."""
    shape: float = 1.0
    """Of gamma gaps: 1 is Poisson, less comes in bursts, more is more even."""

    @classmethod
    def parse(cls, text: str) -> Arrivals:
        """Reads `constant`, `poisson` or `gamma:SHAPE`."""
        kind, colon, shape = text.partition(":")
        if kind in ("constant", "poisson") and not colon:
            return cls(kind=kind)
        try:
            value = float(shape) if kind == "gamma" else math.nan
        except ValueError:
            value = math.nan
        if not BURSTIEST <= value < math.inf:
            raise ConfigError(
                f"arrivals '{text}' cannot be read; write constant, poisson or gamma:SHAPE (at least "
                f"{BURSTIEST}; 1 is Poisson, less comes in bursts)."
            )
        return cls(kind=kind, shape=value)

    @property
    def name(self) -> str:
        return f"gamma:{self.shape:g}" if self.kind == "gamma" else self.kind

    @property
    def variance(self) -> float:
        """Of a gap, whose mean is 1."""
        return {"constant": 0.0, "poisson": 1.0}.get(self.kind, 1 / self.shape)

    def gap(self, random: Random) -> float:
        """One gap, of mean 1."""
        match self.kind:
            case "constant":
                return 1.0
            case "poisson":
                return random.expovariate(1.0)
            case _:
                return random.gammavariate(self.shape, 1 / self.shape)


CONSTANT = Arrivals()


def starts(rate: float, arrivals: Arrivals, random: Random, *, ramp_s: float = 0.0) -> Iterator[float]:
    """Seconds after the stage's begin at which requests are meant to start, without end.

    During the ramp the rate rises evenly from 0 to `rate`, and with it half as many requests start.
    """
    passed = 0.0
    while True:
        yield _time_of(passed, rate, ramp_s)
        passed += arrivals.gap(random)


def _time_of(passed: float, rate: float, ramp_s: float) -> float:
    """When so many requests are due to have started: the integral of the rate, undone."""
    in_ramp = rate * ramp_s / 2
    if passed < in_ramp:
        return math.sqrt(2 * ramp_s * passed / rate)
    return ramp_s + (passed - in_ramp) / rate
