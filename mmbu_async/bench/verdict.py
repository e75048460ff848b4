"""Was it the endpoint that set these figures, or this process? And what else must be known to read them.

A load generator that is itself the bottleneck measures itself. Four signs of that stand in every result: the
CPU of the event loop's thread, the lateness of the loop, how late requests started, and how many were really
under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmbu_async.bench.figures import Figures, wanted
from mmbu_async.bench.histogram import Histogram
from mmbu_async.bench.measured import End, Measured
from mmbu_async.bench.plan import Open
from mmbu_async.bench.record import Phase
from mmbu_async.report.words import percent

BUSY = 0.9
"""Share of a core from which on the event loop's thread has no time left."""
LATE_S = 0.01
"""Lateness that is never mentioned: less than what two machines' networks do."""
LATE_SHARE = 0.05
"""Of the time that is measured, from which on lateness spoils it."""
WIRE_KEPT = 0.9
"""Share of the wanted requests under way that must really have been."""
WIRE_ERRORS = 0.1
"""Share of requests that fail from which on that says nothing."""
NOTED_SHARE = 0.01
"""Share of replies from which on something odd about them is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Self:
    """What this process did meanwhile."""

    cpu: float | None
    """Mean share of a core that the event loop's thread took; None: too short to tell."""
    cpu_most: float | None
    lag_p50_s: float | None
    """Lateness of the event loop."""
    lag_p99_s: float | None
    lag_most_s: float | None
    delay_p99_s: float | None
    """From intended to actual start."""
    on_the_wire: float
    wanted: float | None
    """Of a closed loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How far the figures can be believed."""

    itself: Self
    client_limited: tuple[str, ...]
    """Why this process had its part in these figures; empty: it had none."""
    client_bound: bool
    """Whether more load would have brought no more because of it: its core was full, or requests that were
    wanted were not under way."""
    remarks: tuple[str, ...]
    """What else a reader must know."""


def judge(blocks: Sequence[Measured], found: Figures) -> Verdict:
    """`found`: the figures of those blocks."""
    ticks = [tick for block in blocks for tick in block.ticks if block.begin_s <= tick.at_s <= block.end_s]
    lags = Histogram()
    for block in blocks:
        lags.merge(block.lags)
    delay = found.times.delay
    itself = Self(
        cpu=sum(tick.cpu for tick in ticks) / len(ticks) if ticks else None,
        cpu_most=max((tick.cpu for tick in ticks), default=None),
        lag_p50_s=lags.quantile(0.5),
        lag_p99_s=lags.quantile(0.99),
        lag_most_s=lags.quantile(1.0),
        delay_p99_s=delay.percentile("p99") if delay is not None else None,
        on_the_wire=found.on_the_wire,
        wanted=wanted(found.load),
    )
    return Verdict(
        itself=itself,
        client_limited=tuple(_limited(itself, found)),
        client_bound=_busy(itself) or _idle(itself, found),
        remarks=tuple(_remarks(found)),
    )


def _limited(itself: Self, found: Figures) -> list[str]:
    why = []
    if _busy(itself) and itself.cpu is not None:
        why.append(f"its event loop took {percent(itself.cpu)} of a core")
    yard = found.times.first_token or found.times.latency
    usual = yard.percentile("p50") if yard is not None else 0.0
    spoilt = max(LATE_S, LATE_SHARE * usual)
    if itself.lag_p99_s is not None and itself.lag_p99_s >= spoilt:
        why.append(f"its event loop was {itself.lag_p99_s * 1e3:.0f} ms late (p99)")
    load = found.load
    if isinstance(load, Open) and load.most_in_flight is None:
        if itself.delay_p99_s is not None and itself.delay_p99_s >= spoilt:
            why.append(f"requests started {itself.delay_p99_s * 1e3:.0f} ms late (p99)")
    elif _idle(itself, found):
        why.append(
            f"{found.on_the_wire:.1f} of {itself.wanted or 0:.0f} wanted requests were really under way"
        )
    return why


def _busy(itself: Self) -> bool:
    return itself.cpu is not None and itself.cpu >= BUSY


def _idle(itself: Self, found: Figures) -> bool:
    """Of a closed loop: users without a request under way. One that mostly fails at once has none to wait
    for."""
    if itself.wanted is None or found.short or (found.errors.value or 0.0) > WIRE_ERRORS:
        return False
    return found.on_the_wire < WIRE_KEPT * itself.wanted


def _remarks(found: Figures) -> list[str]:
    said = []
    replies = found.phases.get(Phase.OK, 0)
    if found.ended is End.SATURATED:
        said.append(
            "over-saturated: requests piled up and waiting grew, and the stage was ended early; its times "
            "say how long it lasted, not what the endpoint can do"
        )
    if found.short:
        said.append("too short for rates: the last request started when the first replies had hardly come")
    if replies and found.in_one_piece > NOTED_SHARE * replies:
        said.append(
            f"{found.in_one_piece:,} of {replies:,} streams came in one piece, buffered on the way or by a "
            "client that was late: they are left out of the times of tokens"
        )
    if found.estimated:
        said.append(
            f"no usage was told with {found.estimated:,} of {replies:,} replies: their tokens are estimated"
        )
    if replies and found.cut_by_limit > NOTED_SHARE * replies:
        said.append(f"the token limit cut {found.cut_by_limit:,} of {replies:,} replies")
    if not replies and found.counted:
        said.append("not one reply")
    return said
