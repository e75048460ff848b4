"""Histograms: how seconds, tokens and overlap spread over rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from mmbu_async.report import words
from mmbu_async.report.distributions import PER_DECADE, Bin, Histogram
from mmbu_async.report.html.labels import width
from mmbu_async.report.html.plot import Plot, drawing

WIDTH, HEIGHT = 390.0, 200.0
LEFT, RIGHT = 44.0, 384.0
TOP, BOTTOM = 52.0, 174.0
ZERO = 16.0
"""Width of the bar for zeros, and of the gap after it."""
MOST_BARS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From values to places on the page."""

    low: float
    high: float
    logarithmic: bool
    left: float

    def x(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = log10(low), log10(high), log10(at)
        return self.left + (at - low) / (high - low) * (RIGHT - self.left)

    def ticks(self) -> Iterator[float]:
        if not self.logarithmic:
            yield from (0.0, 0.25, 0.5, 0.75, 1.0)
            return
        decades = log10(self.high / self.low)
        factors = (
            (1.0,)
            if decades > 2.5
            else (1.0, 2.0, 5.0)
            if decades > 1
            else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
        )
        for decade in range(floor(log10(self.low)), ceil(log10(self.high)) + 1):
            for factor in factors:
                if self.low <= factor * 10.0**decade <= self.high * 1.0001:
                    yield factor * 10.0**decade


def spread(identity: str, label: str, found: Histogram, shown: Callable[[float], str]) -> str:
    """Seconds or tokens as SVG, on a logarithmic scale, with quantiles; `shown` writes a value."""
    bars = merged(found.bins, MOST_BARS)
    with drawing(WIDTH, HEIGHT) as plot:
        scale = _scale(bars, found)
        _bars(plot, scale, bars, found.zeros, lambda one: ("accent", None))
        _ticks(plot, scale, shown)
        quantiles = (("median", found.median), ("p90", found.p90), ("p99", found.p99))
        marked = [(scale.x(value), f"{name} {shown(value)}") for name, value in quantiles if value > 0]
        for row, (x, name, after) in enumerate(_placed(marked)):
            _quantile(plot, x, name, row, after=after)
        return plot.svg(identity, label)


def overlap(identity: str, label: str, found: Histogram, threshold: float = 0.5) -> str:
    """Largest IoU as SVG; what is right from the threshold on is filled, what is wrong hatched."""
    with drawing(WIDTH, HEIGHT) as plot:
        scale = Scale(low=0.0, high=1.0, logarithmic=False, left=LEFT + 2 * ZERO if found.zeros else LEFT)
        _bars(
            plot,
            scale,
            found.bins,
            found.zeros,
            lambda one: ("good", None) if one.low >= threshold else ("paper", "bad"),
            ("none", "bad"),
        )
        _ticks(plot, scale, lambda value: f"{value:g}")
        x = scale.x(threshold)
        plot.line((x, x), (TOP - 18, BOTTOM), ink="ink", width=1.4, dashed=True)
        plot.text(x + 6, TOP - 12, f"right from IoU {threshold:g} on", size=11)
        return plot.svg(identity, label)


def merged(bins: Sequence[Bin], most: int) -> tuple[Bin, ...]:
    """As few neighbouring bins of a logarithmic histogram together as make no more than `most` of them."""
    if not bins:
        return ()
    numbers = [round(log10(one.low) * PER_DECADE) for one in bins]
    together = max(1, ceil((numbers[-1] - numbers[0] + 1) / most))
    counts: Counter[int] = Counter()
    for number, one in zip(numbers, bins, strict=True):
        counts[number // together] += one.count
    edge = together / PER_DECADE
    return tuple(
        Bin(low=10 ** (number * edge), high=10 ** ((number + 1) * edge), count=count)
        for number, count in sorted(counts.items())
    )


def _scale(bars: Sequence[Bin], found: Histogram) -> Scale:
    left = LEFT + 2 * ZERO if found.zeros else LEFT
    low, high = (bars[0].low, bars[-1].high) if bars else (1.0, 10.0)
    # One value alone would fill the page.
    if high / low < 2:
        middle = (low * high) ** 0.5
        low, high = middle / 2, middle * 2
    return Scale(low=low, high=high, logarithmic=True, left=left)


def _bars(
    plot: Plot,
    scale: Scale,
    bars: Sequence[Bin],
    zeros: int,
    style: Callable[[Bin], tuple[str, str | None]],
    nothing: tuple[str, str] = ("0", "muted"),
) -> None:
    most = max((zeros, *(one.count for one in bars)), default=0) or 1
    tick = _tick(most)
    for count in (0, tick):
        y = BOTTOM - count / most * (BOTTOM - TOP)
        plot.line((LEFT, RIGHT), (y, y), ink="line" if count == 0 else "faint")
        plot.text(LEFT - 6, y, words.count(count), align="right", ink="muted", size=10)
    for one in bars:
        height = one.count / most * (BOTTOM - TOP)
        left, right = scale.x(one.low), scale.x(one.high)
        face, edge = style(one)
        hatch = "//////" if edge else None
        plot.box(
            left + 0.5, BOTTOM - height, max(right - left - 1, 1), height, face=face, edge=edge, hatch=hatch
        )
    if zeros:
        height = zeros / most * (BOTTOM - TOP)
        name, edge = nothing
        plot.box(LEFT + 1, BOTTOM - height, ZERO, height, face="paper", edge=edge, hatch="//////")
        plot.text(LEFT + 1 + ZERO / 2, BOTTOM + 12, name, align="center", ink="muted", size=11)


def _ticks(plot: Plot, scale: Scale, shown: Callable[[float], str]) -> None:
    free = LEFT + 1.5 * ZERO if scale.left > LEFT else 0.0
    for value in scale.ticks():
        x, name = scale.x(value), shown(value)
        half = width(name, 11) / 2
        if x - half > free and x + half <= WIDTH:
            plot.text(x, BOTTOM + 12, name, align="center", ink="muted", size=11)
            plot.line((x, x), (BOTTOM, BOTTOM + 3), ink="line")
            free = x + half + 6


def _placed(marked: Sequence[tuple[float, str]]) -> list[tuple[float, str, bool]]:
    """Each mark with whether its name stands after its line, from the top row down: so that no name lies on
    the line of another one. `marked` is in order of place."""
    after = [x + 6 + width(name, 11) <= WIDTH for x, name in marked]
    if not all(after) and all(x - 6 - width(name, 11) >= 0 for x, name in marked):
        after = [False] * len(marked)
    placed = [(x, name, side) for (x, name), side in zip(marked, after, strict=True)]
    return [one for one in placed if one[2]] + [one for one in reversed(placed) if not one[2]]


def _quantile(plot: Plot, x: float, name: str, row: int, *, after: bool) -> None:
    y = 10.0 + 13 * row
    plot.line((x, x), (y - 4, BOTTOM), ink="ink", dashed=True)
    plot.text(x + 4 if after else x - 4, y, name, align="left" if after else "right", size=11)


def _tick(most: int) -> int:
    """The largest round number that is not above the highest bar."""
    decade = int(10 ** floor(log10(most)))
    return max(factor * decade for factor in (1, 2, 5) if factor * decade <= most)
