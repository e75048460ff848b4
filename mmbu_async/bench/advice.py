"""What follows for a run: how many calls at once, how many a minute, and what a benchmark then takes."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mmbu_async.bench.figures import Figures
from mmbu_async.bench.measured import EARLY_ENDS
from mmbu_async.bench.plan import Closed
from mmbu_async.bench.record import Phase
from mmbu_async.bench.report import BenchReport, Part
from mmbu_async.config import DEFAULT_BASE_URLS
from mmbu_async.model import Json

ENOUGH = 0.95
"""Share of the best throughput that is as good as it: the least load that brings it is the best one."""
MOST_ERRORS = 0.01
"""Share of requests that may fail at a load that is recommended."""
HEADROOM = 1.5
"""Places for calls beyond those that are under way on average, where a rate is what limits them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Settings for `mmbu run`, and what they come to."""

    target: str
    at: str
    """The load that they follow from."""
    concurrency: int
    rpm: int | None
    """None: no limit was met, and none is needed."""
    replies_a_second: float
    benchmark: str
    """'' where no benchmark is planned for."""
    rows: int
    hours: float | None
    usd: float | None
    """Of the model's calls; None: no price is known."""
    command: str


def advise(report: BenchReport) -> tuple[Advice, ...]:
    """For each endpoint, where anything can be recommended."""
    found = [_advise(report, target) for target in report.targets]
    return tuple(advice for advice in found if advice is not None)


def _advise(report: BenchReport, target: str) -> Advice | None:
    parts = report.of(target)
    part = _best(parts, _held(report))
    if part is None:
        return None
    figures, config = part.figures, report.bench.config
    rate = figures.rates.requests.value or 0.0
    limited = any(one.figures.phases.get(Phase.RATE_LIMIT) for one in parts)
    if isinstance(part.load, Closed):
        concurrency = part.load.concurrency
        rpm = math.floor(rate * 60) if limited else None
    else:
        service = figures.times.service
        busy = part.load.rate * (service.mean.value or 0.0) if service is not None else 1.0
        concurrency = max(1, math.ceil(busy * HEADROOM))
        rpm = max(1, math.floor(part.load.rate * 60))
        rate = min(rate, part.load.rate)
    planned = config.get("planned") or {}
    rows = int(planned.get("rows", 0))
    settings = config["config"] if target == report.targets[0] else config["beside"]
    return Advice(
        target=target,
        at=part.load.name,
        concurrency=concurrency,
        rpm=rpm,
        replies_a_second=rate,
        benchmark=str(planned.get("benchmark", "")),
        rows=rows,
        hours=rows / rate / 3600 if rows and rate else None,
        usd=_usd(parts, rows),
        command=_command(str(planned.get("benchmark", "")), config["config"], settings, concurrency, rpm),
    )


def _best(parts: Sequence[Part], held: float | None) -> Part | None:
    """The load that a search held; else the least of those that bring about the most."""
    if held is not None:
        return next((part for part in parts if part.role == "probe" and part.load.size == held), None)
    good = [
        part
        for part in parts
        if part.figures.ended not in EARLY_ENDS
        and (part.figures.errors.value or 0.0) <= MOST_ERRORS
        and part.figures.rates.requests.value
        and not part.figures.short
    ]
    most = max((_rate(part.figures) for part in good), default=0.0)
    enough = [part for part in good if _rate(part.figures) >= ENOUGH * most]
    return min(enough, key=lambda part: part.load.size, default=None)


def _held(report: BenchReport) -> float | None:
    result = report.bench.result
    return None if result is None else result["held"]


def _rate(found: Figures) -> float:
    return found.rates.requests.value or 0.0


def _usd(parts: Sequence[Part], rows: int) -> float | None:
    """By the mean of all replies whose cost is known, whatever the load."""
    costs = [
        record.cost_usd
        for part in parts
        for block in part.blocks
        for record in block.records
        if record.ok and record.cost_usd is not None
    ]
    return rows * sum(costs) / len(costs) if costs and rows else None


def _command(
    benchmark: str,
    config: Mapping[str, Json],
    settings: Mapping[str, Json],
    concurrency: int,
    rpm: int | None,
) -> str:
    """In a form that a shell takes."""
    words = ["mmbu", "run", *([benchmark] if benchmark else []), *_flags(config, settings)]
    words += ["--concurrency", str(concurrency), *(["--rpm", str(rpm)] if rpm is not None else [])]
    return shlex.join(words)


def _flags(config: Mapping[str, Json], settings: Mapping[str, Json]) -> Iterator[str]:
    yield from ("--model", str(settings["model"]))
    if settings["endpoint"] != "openai":
        yield from ("--endpoint", str(settings["endpoint"]))
    if settings["base_url"] and settings["base_url"] != DEFAULT_BASE_URLS.get(settings["endpoint"]):
        yield from ("--base-url", str(settings["base_url"]))
    if settings["api_key_env"]:
        yield from ("--api-key-env", str(settings["api_key_env"]))
    if config["data"]:
        yield from ("--data", str(config["data"]))
    if settings["stream"]:
        yield "--stream"
    if settings.get("image_detail"):
        yield from ("--image-detail", str(settings["image_detail"]))
    if settings.get("prompt_caching"):
        yield "--prompt-caching"
