"""Figures of a bench's page: the curve of latency over throughput, stages over time, how times are spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, log10

import numpy as np

from mmbu_async.bench import words
from mmbu_async.bench.measured import Measured
from mmbu_async.bench.record import Record
from mmbu_async.report.distributions import PER_DECADE, Bin, Histogram
from mmbu_async.report.html.plot import Plot, drawing
from mmbu_async.report.html.scatter import Scale
from mmbu_async.report.html.spreads import spread

WIDTH, HEIGHT = 390.0, 280.0
LEFT, RIGHT = 58.0, 380.0
TOP, BOTTOM = 22.0, 236.0
MOST_POINTS = 300
"""Requests of a stage that are drawn; of more, evenly many are left out."""
INKS = ("accent", "bad")
"""Of the first and the other endpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A load on the curve."""

    name: str
    rate: float
    """Replies a second."""
    p50: float
    p95: float
    clean: bool
    """Neither ended early nor limited by the client."""


def curve(identity: str, label: str, lines: Sequence[tuple[str, Sequence[Spot]]]) -> str:
    """Latency over throughput as SVG: lines of an endpoint, in the order of their loads.

    Loads that ended early, or at which the client was the limit, are hollow.
    """
    spots = [spot for _, found in lines for spot in found]
    targets = list(dict.fromkeys(target for target, _ in lines))
    named: list[tuple[float, float]] = []
    with drawing(WIDTH, HEIGHT) as plot:
        across = _from_zero(max(spot.rate for spot in spots), LEFT, RIGHT)
        up = _from_zero(max(spot.p95 for spot in spots), BOTTOM, TOP)
        _axes(plot, across, up, "replies a second", "latency")
        for target, found in lines:
            ink = INKS[targets.index(target) % len(INKS)]
            for share, dashed in (("p50", False), ("p95", True)):
                places = [(across.at(one.rate), up.at(getattr(one, share))) for one in found]
                for (x1, y1), (x2, y2) in pairwise(places):
                    plot.line((x1, x2), (y1, y2), ink=ink, width=1.4, dashed=dashed)
                for one, (x, y) in zip(found, places, strict=True):
                    shape = "o" if share == "p50" else "s"
                    plot.point(x, y, shape=shape, size=6, face=ink if one.clean else "paper", edge=ink)
            for one in found:
                x, y = min(across.at(one.rate), RIGHT - 24), up.at(one.p95) - 9
                # What would lie on another name is only in the table.
                if all(abs(x - u) > 58 or abs(y - v) > 11 for u, v in named):
                    plot.text(x, y, one.name, align="center", size=10, ink="muted")
                    named.append((x, y))
        return plot.svg(identity, label)


def timeline(identity: str, label: str, blocks: Sequence[Measured]) -> str:
    """Above, when each request was meant to start and how long it was waited for; crosses are what failed.
    Below, how many were outstanding. Blocks stand one after the other."""
    spots, bad, pile, length, begins = _laid(blocks)
    high, low = 150.0, 176.0
    with drawing(WIDTH, HEIGHT) as plot:
        across = _from_zero(max(length, 1e-3), LEFT, RIGHT)
        up = _from_zero(max((wait for _, wait, _ in spots), default=1.0), high, TOP)
        most = _from_zero(max((n for _, n in pile), default=1.0), BOTTOM, low)
        _axes(plot, across, up, "seconds", "latency", bottom=high, names=False)
        _axes(plot, across, most, "seconds", "outstanding", top=low)
        for at in begins:
            plot.line((across.at(at), across.at(at)), (TOP, BOTTOM), ink="line", dashed=True)
        for at, wait, counts in spots:
            plot.point(
                across.at(at),
                up.at(wait),
                shape=".",
                size=4,
                face="accent",
                edge="accent" if counts else "line",
            )
        for at in bad:
            plot.point(across.at(at), high - 5, shape="x", size=5, face="bad", edge="bad")
        for (x1, y1), (x2, y2) in pairwise(pile):
            plot.line((across.at(x1), across.at(x2)), (most.at(y1), most.at(y2)), ink="accent", width=1.2)
        return plot.svg(identity, label)


def histogram(values: Sequence[float]) -> Histogram:
    """As reports draw it."""
    found = np.maximum(np.sort(np.asarray(values)), 1e-6)
    numbers, counts = np.unique(np.floor(np.log10(found) * PER_DECADE).astype(int), return_counts=True)
    median, p90, p99 = (float(np.quantile(found, share, method="inverted_cdf")) for share in (0.5, 0.9, 0.99))
    return Histogram(
        n=len(found),
        zeros=0,
        mean=float(found.mean()),
        least=float(found[0]),
        median=median,
        p90=p90,
        p99=p99,
        most=float(found[-1]),
        bins=tuple(
            Bin(low=10 ** (number / PER_DECADE), high=10 ** ((number + 1) / PER_DECADE), count=count)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
        ),
    )


def distribution(identity: str, label: str, found: Histogram) -> str:
    """How a time is spread over replies, on a logarithmic scale."""
    return spread(identity, label, found, words.seconds)


def _laid(
    blocks: Sequence[Measured],
) -> tuple[list[tuple[float, float, bool]], list[float], list[tuple[float, float]], float, list[float]]:
    """Requests, failures, the pile, and how long it all took, with blocks one after the other."""
    spots: list[tuple[float, float, bool]] = []
    bad: list[float] = []
    pile: list[tuple[float, float]] = []
    begins: list[float] = []
    before = 0.0
    for block in blocks:
        if before:
            begins.append(before)
        for record in _thinned(block.records):
            if record.ok:
                spots.append((before + record.intended_s, record.latency_s, block.counts(record)))
            else:
                bad.append(before + record.intended_s)
        pile += [(before + tick.at_s, float(tick.outstanding)) for tick in block.ticks]
        before += block.end_s + block.drained_s
    return spots, bad, pile, before, begins


def _thinned(records: Sequence[Record]) -> Sequence[Record]:
    """Evenly, but for what failed."""
    step = -(-len(records) // MOST_POINTS)
    return [record for number, record in enumerate(records) if not record.ok or number % step == 0]


def _from_zero(most: float, start: float, end: float) -> Scale:
    return Scale(low=0.0, high=most * 1.08 or 1.0, start=start, end=end)


def _axes(
    plot: Plot,
    across: Scale,
    up: Scale,
    x_name: str,
    y_name: str,
    *,
    top: float = TOP,
    bottom: float = BOTTOM,
    names: bool = True,
) -> None:
    shown = words.seconds if y_name == "latency" else _whole
    for value in _some(up, least=0.0 if y_name == "latency" else 1.0):
        y = up.at(value)
        plot.line((LEFT, RIGHT), (y, y), ink="faint")
        plot.text(LEFT - 6, y, shown(value) if value else "0", align="right", ink="muted", size=11)
    plot.line((LEFT, RIGHT), (bottom, bottom), ink="line")
    plot.text(0, top - 12, y_name, ink="muted", size=11)
    if not names:
        return
    for value in across.ticks():
        x = across.at(value)
        plot.line((x, x), (bottom, bottom + 4), ink="line")
        plot.text(x, bottom + 14, f"{value:g}", align="center", ink="muted", size=11)
    plot.text((LEFT + RIGHT) / 2, bottom + 34, x_name, align="center", ink="muted", size=11)


def _some(scale: Scale, least: float) -> list[float]:
    """At most four round numbers, no nearer to each other than the least."""
    rough = scale.high / 3
    decade = 10.0 ** floor(log10(rough))
    step = next(factor * decade for factor in (1, 2, 2.5, 5, 10) if factor * decade >= rough)
    step = max(step, least)
    return [number * step for number in range(4) if number * step <= scale.high]


def _whole(value: float) -> str:
    return f"{value:,.0f}"
