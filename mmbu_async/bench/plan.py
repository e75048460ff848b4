"""What a stage is: which load, until when, and what of it does not count."""

from __future__ import annotations

from dataclasses import dataclass

from mmbu_async.bench.arrivals import CONSTANT, Arrivals
from mmbu_async.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """So many users, each with one request under way at any time: a slow server is asked less."""

    concurrency: int

    @property
    def name(self) -> str:
        return f"{self.concurrency:,} at once"

    @property
    def size(self) -> float:
        return float(self.concurrency)


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Requests start at times of their own, whatever became of the earlier ones."""

    rate: float
    """Requests a second."""
    arrivals: Arrivals = CONSTANT
    most_in_flight: int | None = None
    """A cap of our own; what waits before it is counted as waiting. None: none."""

    @property
    def name(self) -> str:
        cap = "" if self.most_in_flight is None else f", at most {self.most_in_flight:,} at once"
        how = "" if self.arrivals.kind == "constant" else f" ({self.arrivals.name})"
        return f"{self.rate:g}/s{how}{cap}"

    @property
    def size(self) -> float:
        return self.rate


Load = Closed | Open


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """When a stage starts no further request; whatever comes first. Warm-up counts with the rest."""

    requests: int | None = None
    seconds: float | None = None
    interval: float | None = None
    """The 95 % interval of the median latency is this share of the median to either side, or tighter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmup:
    """What a stage begins with and no figure counts: whichever is longer, and the ramp in any case."""

    requests: int = 0
    seconds: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Warmup:
        """Reads `20` (requests), `10s` or `20,10s`."""
        made: dict[str, float] = {}
        try:
            for part in text.split(","):
                name = "seconds" if part.strip().endswith("s") else "requests"
                value = float(part.strip().removesuffix("s"))
                if name in made or not 0 <= value < 1e9 or (name == "requests" and value != int(value)):
                    raise ValueError
                made[name] = value
        except ValueError:
            raise ConfigError(
                f"warm-up '{text}' cannot be read; write a number of requests (20), a time (10s) or both "
                "(20,10s)."
            ) from None
        return cls(requests=int(made.get("requests", 0)), seconds=made.get("seconds", 0.0))

    @property
    def name(self) -> str:
        parts = [f"{self.requests:,} requests"] if self.requests else []
        parts += [f"{self.seconds:g} s"] if self.seconds else []
        return " and ".join(parts) or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """One load on one endpoint."""

    load: Load
    ends: Ends
    warmup: Warmup = Warmup()
    ramp_s: float = 0.0
    """Users or rate rise evenly over so many seconds, which do not count."""
    drain_s: float = 600.0
    """How long requests that are under way at the end are waited for."""
    watch_saturation: bool = True
    """End early where an open loop asks for more than is served."""
