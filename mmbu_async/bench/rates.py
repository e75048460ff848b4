"""What there was a second, and between which moments that is counted.

Rates are of replies that ended between warm-up and the last start, those of requests that began in the
warm-up included: at a steady load as many lap over one end as over the other. Users of a closed loop often
march in step, and then a whole wave of replies falls on either side of an end. So there a window opens and
closes gradually, over the mean time of a reply, which is the period of such waves: wherever they fall, they
weigh the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mmbu_async.bench.measured import Measured
from mmbu_async.bench.plan import Closed
from mmbu_async.bench.record import Phase, Record
from mmbu_async.bench.spread import rate
from mmbu_async.stats import Estimate

LATE_SHARE = 0.5
"""Where fewer of the replies than that ended before the last start, the stage was too short for rates."""
FEWEST_REPLIES = 1.5
"""In a closed loop, where requests started for less than so many mean times of a reply, it was so too."""


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
class Window:
    """Between which replies are counted for rates, after the block's begin."""

    begin: float
    end: float
    short: bool

    @property
    def length(self) -> float:
        return max(0.0, self.end - self.begin)


def window_of(block: Measured) -> Window:
    """That of one block; one that is too short for rates goes on to the last reply."""
    begin, end = block.begin_s, block.end_s
    replies = [record for record in block.records if record.ok and block.counts(record)]
    if warm := block.plan.warmup.requests:
        starts = [record.intended_s for record in block.records if record.number >= warm]
        begin = max(begin, min(starts, default=begin))
    inside = [record.total_s for record in replies if begin < record.ended_s <= end]
    least = 0.0
    if isinstance(block.plan.load, Closed) and inside:
        least = FEWEST_REPLIES * sum(inside) / len(inside)
    if len(inside) >= LATE_SHARE * len(replies) and end - begin > least:
        return Window(begin=begin, end=end, short=False)
    return Window(begin=begin, end=max((one.ended_s for one in replies), default=end), short=True)


def rates_of(blocks: Sequence[Measured], windows: Sequence[Window], limits: Limits) -> Rates:
    """Over the windows of all blocks, laid end to end."""
    length = sum(window.length for window in windows)
    starts: list[float] = []
    begun: list[float] = []
    ends: list[float] = []
    replies: list[tuple[Record, float]] = []
    before = 0.0
    for block, window in zip(blocks, windows, strict=True):
        shift = before - window.begin
        weigh_at = _opening(block, window)
        for record in block.records:
            if record.phase is Phase.UNSENT:
                continue
            if window.begin < record.started_s <= window.end:
                starts.append(record.started_s + shift)
                begun.append(weigh_at(record.started_s))
            # The first start that counts is often the moment of an end: of the two moments one counts.
            if record.ok and window.begin < record.ended_s <= window.end:
                ends.append(record.ended_s + shift)
                replies.append((record, weigh_at(record.ended_s)))
        before += window.length

    def of(weigh: Callable[[Record], float]) -> Estimate:
        return rate(ends, [weigh(record) * share for record, share in replies], length)

    return Rates(
        started=rate(starts, begun, length),
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


def _opening(block: Measured, window: Window) -> Callable[[float], float]:
    """How much what happens at a moment weighs; the mean over the window is 1."""
    inside = [one.total_s for one in block.records if one.ok and window.begin < one.ended_s <= window.end]
    if not isinstance(block.plan.load, Closed) or window.short or not sum(inside):
        return lambda at: 1.0
    gradual = min(sum(inside) / len(inside), window.length / 2)
    full = window.length / (window.length - gradual)
    return lambda at: full * min(1.0, (at - window.begin) / gradual, (window.end - at) / gradual)
