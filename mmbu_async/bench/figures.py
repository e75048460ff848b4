"""The figures of a stage, computed from its records alone.

Times are of replies (phase OK) that count; what went wrong is counted by phase beside them and never enters a
time. Rates are of replies that ended between warm-up and the last start, those of requests that began in the
warm-up included: at a steady load as many lap over one end as over the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mmbu_async.bench.measured import EARLY_ENDS, End, Measured
from mmbu_async.bench.plan import Closed, Load
from mmbu_async.bench.record import Phase, Record
from mmbu_async.bench.spread import Spread, rate, spread, spread_of
from mmbu_async.stats import Estimate, wilson

LATE_SHARE = 0.5
"""Where fewer of the replies than that ended before the last start, the stage was too short for rates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a single reply must keep to count for the goodput; None: anything."""

    latency_s: float | None = None
    first_token_s: float | None = None
    token_time_s: float | None = None

    def kept(self, record: Record) -> bool:
        pairs = (
            (record.latency_s, self.latency_s),
            (record.first_token_s, self.first_token_s),
            (record.token_time_s, self.token_time_s),
        )
        return record.ok and all(limit is None or (at is not None and at <= limit) for at, limit in pairs)


ANY = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """A second."""

    started: Estimate
    """Requests that started, good or bad."""
    requests: Estimate
    """Replies."""
    good: Estimate
    """Of those the ones that keep the limits: the goodput."""
    images: Estimate
    pixels: Estimate
    input_tokens: Estimate
    output_tokens: Estimate
    """Reasoning included."""
    reasoning_tokens: Estimate
    bytes_up: Estimate
    bytes_down: Estimate


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
    """Most replies came after the last start: too short for rates."""
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
    windows = [_window(block) for block in blocks]
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
        rates=_rates(blocks, windows, limits),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Between which replies are counted for rates, after the block's begin."""

    begin: float
    end: float
    short: bool

    @property
    def length(self) -> float:
        return max(0.0, self.end - self.begin)


def _window(block: Measured) -> Window:
    begin, end = block.begin_s, block.end_s
    replies = [record for record in block.records if record.ok and block.counts(record)]
    if warm := block.plan.warmup.requests:
        starts = [record.intended_s for record in block.records if record.number >= warm]
        begin = max(begin, min(starts, default=begin))
    inside = sum(begin < record.ended_s <= end for record in replies)
    if inside >= LATE_SHARE * len(replies) and end > begin:
        return Window(begin=begin, end=end, short=False)
    return Window(begin=begin, end=max((one.ended_s for one in replies), default=end), short=True)


def _rates(blocks: Sequence[Measured], windows: Sequence[Window], limits: Limits) -> Rates:
    """Over the windows of all blocks, laid end to end."""
    length = sum(window.length for window in windows)
    starts: list[float] = []
    ends: list[float] = []
    replies: list[Record] = []
    before = 0.0
    for block, window in zip(blocks, windows, strict=True):
        shift = before - window.begin
        for record in block.records:
            if record.phase is not Phase.UNSENT and window.begin < record.started_s <= window.end:
                starts.append(record.started_s + shift)
            # The first start that counts is often the moment of an end: of the two moments one counts.
            if record.ok and window.begin < record.ended_s <= window.end:
                ends.append(record.ended_s + shift)
                replies.append(record)
        before += window.length

    def of(weigh: Callable[[Record], float]) -> Estimate:
        return rate(ends, [weigh(record) for record in replies], length)

    return Rates(
        started=rate(starts, [1.0] * len(starts), length),
        requests=of(lambda record: 1.0),
        good=of(lambda record: float(limits.kept(record))),
        images=of(lambda record: record.images),
        pixels=of(lambda record: record.pixels),
        input_tokens=of(lambda record: record.input_tokens),
        output_tokens=of(lambda record: record.output_tokens),
        reasoning_tokens=of(lambda record: record.reasoning_tokens),
        bytes_up=of(lambda record: record.bytes_up),
        bytes_down=of(lambda record: record.bytes_down),
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
