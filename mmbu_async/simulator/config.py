"""Settings of the simulator, and the distributions that a setting can name."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

from mmbu_async.errors import ConfigError
from mmbu_async.simulator.faults import FaultRule

_NORMAL = NormalDist()
_PARAMETERS = {"fixed": 1, "uniform": 2, "lognormal": 2, "exponential": 1}


def unit(seed: int, *parts: object) -> float:
    """A number in [0, 1) that depends on nothing but its arguments: the simulator's only randomness."""
    text = "\x1f".join(str(part) for part in (seed, *parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) / 2**64


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds until the first token of a reply, as a distribution.

    `fixed:S`, `uniform:LOW,HIGH`, `lognormal:MEDIAN,SIGMA` (sigma of the logarithm), `exponential:MEAN`.
    """

    kind: str = "fixed"
    first: float = 0.0
    second: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in _PARAMETERS or self.first < 0 or self.second < 0:
            raise ConfigError(f"latency {self.kind!r} is none of {', '.join(_PARAMETERS)} with numbers >= 0.")
        if self.kind == "lognormal" and self.first <= 0:
            raise ConfigError("the median of a lognormal latency must be above 0.")
        if self.kind == "uniform" and self.second < self.first:
            raise ConfigError("a uniform latency needs its lower bound first.")

    @classmethod
    def parse(cls, text: str) -> Latency:
        """Reads `lognormal:0.4,0.5`; a bare number is a fixed latency."""
        kind, colon, numbers = text.partition(":")
        if not colon:
            kind, numbers = "fixed", text
        try:
            values = [float(number) for number in numbers.split(",")]
        except ValueError:
            values = []
        if len(values) != _PARAMETERS.get(kind, 0) or not all(math.isfinite(value) for value in values):
            raise ConfigError(
                f"latency {text!r} cannot be read; write seconds, uniform:LOW,HIGH, "
                "lognormal:MEDIAN,SIGMA or exponential:MEAN."
            )
        return cls(kind, *values)

    def quantile(self, p: float) -> float:
        """Seconds below which a share `p` of all replies start; the truth that a measurement must find."""
        if self.kind == "fixed":
            return self.first
        if self.kind == "uniform":
            return self.first + p * (self.second - self.first)
        if self.kind == "exponential":
            return -self.first * math.log1p(-min(p, 1 - 2**-53))
        return self.first * math.exp(self.second * _NORMAL.inv_cdf(min(max(p, 2**-53), 1 - 2**-53)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorConfig:
    """What the simulated endpoint is like. Everything is off, free and instant unless set."""

    port: int = 0
    """On the loopback address; 0 takes a free one."""
    seed: int = 0
    """With the content of a request and its occurrence number it decides replies, latencies and faults."""

    latency: Latency = Latency()
    judge_latency: Latency | None = None
    """For judge requests; None: as `latency`."""
    tokens_per_second: float | None = None
    """Speed of a reply after its first token; None: instant."""
    max_concurrent: int | None = None
    """Replies made at once; further requests wait first in, first out. None: no bound."""
    max_queue: int | None = None
    """Requests that may wait for a place; one more is told the endpoint is overloaded. None: no bound."""
    servers: int | None = None
    """The same in exact times (see `servers.py`), instead of `max_concurrent`: the capacity is this number
    over the mean time that a reply takes. None: as `max_concurrent` says."""
    freezes: tuple[tuple[float, float], ...] = ()
    """With `servers`: from when to when none of them does anything, in seconds after the first request."""
    even_latency: bool = False
    """Latencies in order of arrival are spread evenly over their distribution, so that any few hundred
    replies in a row have its percentiles, instead of drawn by the content of each request."""
    reply_tokens: int | None = None
    """Length of every reply to a question, which then says nothing; None: an answer to it."""

    rpm: float | None = None
    """Requests a minute, for each key and model."""
    tpm: float | None = None
    """Tokens a minute, likewise: input is charged on admission, output when the reply is made."""
    limit_burst_s: float = 60.0
    """Both limits are token buckets that hold this many seconds of their rate and start full."""

    keys: frozenset[str] = frozenset()
    """API keys that are let in; empty: any, and for OpenAI paths none as well."""
    models: frozenset[str] = frozenset()
    """Model names that exist; empty: any."""
    max_body_bytes: int = 32 * 1024 * 1024
    max_image_base64: int | None = None
    """Longest base64 text of one image, in characters."""
    max_image_edge: int | None = None
    """Longest side of an image in pixels."""
    max_image_pixels: int | None = None
    unsupported_parameters: frozenset[str] = frozenset()
    """Request fields that are refused, as reasoning models refuse `temperature`."""

    faults: tuple[FaultRule, ...] = ()
    retry_after_s: float | None = 1.0
    """What an injected 429, 503 or 529 asks to wait; None: it does not say. Real limits say the true time."""
    retry_after_style: str = "seconds"
    """Header that says it: `seconds`, `ms`, `both`, `date` or `reset` (rate-limit reset headers alone)."""
    drip_interval_s: float = 1.0
    """Pause between two bytes of a dripped reply."""
    stall_s: float = 2.0
    """What a stall adds to the latency."""

    vision: bool = True
    """Look at images. False: every image question gets the same answer, at no cost."""
    vision_workers: int = 1
    """Threads that look at images."""
    vision_cache: int = 4096
    """Images whose findings are remembered."""

    batch_latency: Latency = Latency()
    """Seconds from a batch's acceptance to its end."""
    batch_expire: float = 0.0
    """Share of the requests in batches whose turn does not come in time."""
    batch_lost_answers: float = 0.0
    """Share of the batches that are accepted and whose answer never arrives."""
    batch_listing_lag_s: float = 0.0
    """Seconds until an accepted batch shows up in lists."""
    batch_max_requests: int | None = None
    """In one batch; None: as many as the vendor takes."""
    batch_max_bytes: int | None = None
    """Of one batch's file; None: as many as the vendor takes."""
    batch_queue: int | None = None
    """Requests of one key that may wait in batches; None: any number."""

    log: Path | None = None
    """JSON Lines file that every finished request is appended to."""
    log_memory: int = 100_000
    """Newest records kept in memory; 0 keeps none."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"simulator setting port must be 0 to 65535, not {self.port}.")
        for name in ("tokens_per_second", "max_concurrent", "rpm", "tpm", "limit_burst_s"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigError(f"simulator setting {name} must be above 0, not {value}.")
        for name in ("servers", "reply_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"simulator setting {name} must be at least 1, not {value}.")
        if self.servers is not None and self.max_concurrent is not None:
            raise ConfigError("the simulator takes servers or max_concurrent, not both: leave one out.")
        if self.freezes and self.servers is None:
            raise ConfigError(
                "simulator setting freezes needs servers that can stand still: give their number."
            )
        if any(not 0 <= begin < end for begin, end in self.freezes):
            raise ConfigError("a freeze must end after it begins, and none begins before the first request.")
        if self.retry_after_style not in ("seconds", "ms", "both", "date", "reset"):
            raise ConfigError(
                f"retry_after_style {self.retry_after_style!r} is none of seconds, ms, both, date, reset."
            )
