"""The figures of a stage, computed from its records alone.

Times are of replies (phase OK) that count; what went wrong is counted by phase beside them and never enters a
time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mmbu_async.bench.measured import EARLY_ENDS, End, Measured
from mmbu_async.bench.plan import Closed, Load
from mmbu_async.bench.rates import ANY, Limits, Rates, Window, rates_of, window_of
from mmbu_async.bench.record import Phase, Record
from mmbu_async.bench.spread import Spread, spread, spread_of
from mmbu_async.stats import Estimate, wilson


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds of replies; None where there is nothing to tell."""

    latency: Spread | None
    """From the intended start to the last byte."""
    first_token: Spread | None
    """From the intended start, reasoning included."""
    first_thought: Spread | None
    """From the actual start to the first token of reasoning."""
    first_output: Spread | None
    """From the actual start to the first token of the reply itself."""
    gap: Spread | None
    """Between two pieces of a stream: inter-token latency."""
    token: Spread | None
    """Of a reply, the mean time a token takes after the first."""
    service: Spread | None
    """From the actual start to the last byte."""
    delay: Spread | None
    """From the intended to the actual start."""
    connect: Spread | None
    """Of replies that needed a new connection."""
    upload: Spread | None
    first_byte: Spread | None
    """From the actual start to the response's first line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a stage came to."""

    target: str
    load: Load
    ended: End
    window_s: float
    """Length of the time over which rates are counted."""
    short: bool
    """Too short for rates: it ended when the first replies had hardly come."""
    sent: int
    warmup: int
    """Of those, requests that do not count."""
    counted: int
    phases: dict[Phase, int]
    """Of those that count."""
    errors: Estimate
    """Share of those that count and are not OK."""
    rates: Rates
    times: Times
    on_the_wire: float
    """Mean number of requests under way with a connection of their own."""
    estimated: int
    """Replies whose tokens are estimated."""
    in_one_piece: int
    """Streams that something buffered."""
    output_tokens: float | None
    """Mean of a reply."""
    input_tokens: float | None
    cost_usd: float
    """Of all requests, warm-up included, as far as it is known."""
    cost_unknown: int
    """Requests whose cost is not."""
    scored: int
    right: Estimate
    """Share of the scored replies."""
    cut_by_limit: int
    """Replies that the token limit ended."""


def figures(blocks: Sequence[Measured], limits: Limits = ANY) -> Figures:
    """Everything that is known of a stage: one block, or several of the same load on the same endpoint that
    took turns with those of another one."""
    first = blocks[0]
    records = [record for block in blocks for record in block.records]
    counted = [record for block in blocks for record in block.records if block.counts(record)]
    replies = [record for record in counted if record.ok]
    windows = [window_of(block) for block in blocks]
    bad = len(counted) - len(replies)
    scored = [record for record in replies if record.correct is not None]
    return Figures(
        target=first.target,
        load=first.plan.load,
        ended=next((block.ended for block in blocks if block.ended in EARLY_ENDS), first.ended),
        window_s=sum(window.length for window in windows),
        short=any(window.short for window in windows),
        sent=sum(record.phase is not Phase.UNSENT for record in records),
        warmup=len(records) - len(counted),
        counted=len(counted),
        phases=dict(sorted(Counter(record.phase for record in counted).items(), key=_place)),
        errors=_share(bad, len(counted)),
        rates=rates_of(blocks, windows, limits),
        times=_times(replies, blocks),
        on_the_wire=_on_the_wire(blocks, windows),
        estimated=sum(record.estimated for record in replies),
        in_one_piece=sum(record.in_one_piece for record in replies),
        output_tokens=_mean([record.output_tokens for record in replies]),
        input_tokens=_mean([record.input_tokens for record in replies]),
        cost_usd=sum(record.cost_usd or 0.0 for record in records),
        cost_unknown=sum(record.cost_usd is None and record.phase is not Phase.UNSENT for record in records),
        scored=len(scored),
        right=_share(sum(record.correct is True for record in scored), len(scored)),
        cut_by_limit=sum(record.finish == "length" for record in replies),
    )


def _times(replies: Sequence[Record], blocks: Sequence[Measured]) -> Times:
    def of(read: Callable[[Record], float | None]) -> Spread | None:
        return spread([value for record in replies if (value := read(record)) is not None])

    streamed = [record for record in replies if not record.in_one_piece]
    return Times(
        latency=of(lambda record: record.latency_s),
        first_token=of(lambda record: record.first_token_s),
        first_thought=spread([at for one in streamed if (at := one.first_thought_s) is not None]),
        first_output=spread([at for one in streamed if (at := one.first_output_s) is not None]),
        gap=spread_of(part for block in blocks for part in block.gaps.stretches()),
        token=of(lambda record: record.token_time_s),
        service=of(lambda record: record.total_s),
        delay=of(lambda record: max(0.0, record.delay_s)),
        connect=of(lambda record: record.connect_s),
        upload=of(lambda record: record.upload_s),
        first_byte=of(lambda record: record.first_byte_s),
    )


def _on_the_wire(blocks: Sequence[Measured], windows: Sequence[Window]) -> float:
    length = sum(window.length for window in windows)
    if not length:
        return 0.0
    busy = 0.0
    for block, window in zip(blocks, windows, strict=True):
        for record in block.records:
            if record.sent_s is not None and record.upload_s is not None:
                connected = record.started_s + record.sent_s - record.upload_s
                busy += max(0.0, min(window.end, record.ended_s) - max(window.begin, connected))
    return busy / length


def _share(some: int, of: int) -> Estimate:
    found = wilson(some, of)
    return Estimate() if found is None else Estimate(value=some / of, low=found.low, high=found.high)


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None


_ORDER = list(Phase)


def _place(item: tuple[Phase, int]) -> int:
    return _ORDER.index(item[0])


def wanted(load: Load) -> float | None:
    """Requests that a closed loop wants under way at any time; None for an open one."""
    return float(load.concurrency) if isinstance(load, Closed) else None
