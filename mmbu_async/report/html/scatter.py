"""Points with their numbers, and the straight line through them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10

from mmbu_async.report.html.plot import Plot, drawing

WIDTH, HEIGHT = 390.0, 280.0
LEFT, RIGHT = 46.0, 372.0
TOP, BOTTOM = 16.0, 236.0
SPARE = 0.08
"""Share of the span that is left free on either side of the points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    name: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From values to places on the page."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> Iterator[float]:
        """Round numbers, some five of them."""
        rough = (self.high - self.low) / 5
        decade = 10.0 ** floor(log10(rough))
        step = next(factor * decade for factor in (1, 2, 2.5, 5, 10) if factor * decade >= rough)
        number = -floor(-self.low / step)
        while number * step <= self.high:
            yield number * step
            number += 1


def scatter(
    identity: str,
    label: str,
    points: Sequence[Point],
    *,
    x_name: str,
    y_name: str,
    line: tuple[float, float] | None = None,
) -> str:
    """The plot as SVG. `line` is slope and intercept."""
    ends = [*(point.y for point in points)]
    across = _scale([point.x for point in points], LEFT, RIGHT)
    if line is not None:
        ends += [line[0] * x + line[1] for x in (across.low, across.high)]
    up = _scale(ends, BOTTOM, TOP)
    with drawing(WIDTH, HEIGHT) as plot:
        _axes(plot, across, up, x_name, y_name)
        if line is not None:
            heights = [up.at(line[0] * x + line[1]) for x in (across.low, across.high)]
            plot.line((LEFT, RIGHT), (heights[0], heights[1]), ink="muted", width=1.4, dashed=True)
        for point in points:
            x, y = across.at(point.x), up.at(point.y)
            plot.point(x, y, shape="o", size=7)
            plot.text(x + 8, y - 7, point.name, size=11)
        return plot.svg(identity, label)


def _axes(plot: Plot, across: Scale, up: Scale, x_name: str, y_name: str) -> None:
    for value in up.ticks():
        y = up.at(value)
        plot.line((LEFT, RIGHT), (y, y), ink="faint")
        plot.text(LEFT - 6, y, f"{value:g}", align="right", ink="muted", size=11)
    plot.line((LEFT, RIGHT), (BOTTOM, BOTTOM), ink="line")
    for value in across.ticks():
        x = across.at(value)
        plot.line((x, x), (BOTTOM, BOTTOM + 4), ink="line")
        plot.text(x, BOTTOM + 14, f"{value:g}", align="center", ink="muted", size=11)
    plot.text((LEFT + RIGHT) / 2, BOTTOM + 34, x_name, align="center", ink="muted", size=11)
    plot.text(0, 6, y_name, ink="muted", size=11)


def _scale(values: Sequence[float], start: float, end: float) -> Scale:
    low, high = min(values), max(values)
    spare = (high - low) * SPARE or abs(high) * SPARE or 1.0
    return Scale(low=low - spare, high=high + spare, start=start, end=end)
