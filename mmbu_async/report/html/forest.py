"""Forest plots: a point and its interval for each group, below each other on one scale from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mmbu_async.report import words
from mmbu_async.report.groups import Group
from mmbu_async.report.html.labels import lines
from mmbu_async.report.html.plot import Plot, drawing

WIDTH = 390.0
LABEL = 128.0
"""Room for names, in pixels; then rows, the scale, value and interval."""
ROWS = 170.0
LEFT, RIGHT = 184.0, 268.0
VALUE = 315.0
LINE = 14.0
LEAST = 25.0
"""Height of a row."""
TOP, FOOT = 40.0, 6.0

Metric = Literal["accuracy", "f1"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A row of the plot."""

    name: str
    n: int
    value: float | None
    """None while rows are open; then `bounds` are known."""
    low: float | None
    """Ends of the interval, or of the intervals of both bounds."""
    high: float | None
    bounds: tuple[float, float] | None = None
    """From all open rows wrong to all open rows right."""
    small: bool = False
    chance: float | None = None
    aside: bool = False
    """The rows without a value of the attribute: none of its groups."""


def marks(groups: Sequence[Group], metric: Metric = "accuracy") -> list[Mark]:
    """One for each group."""
    return [_mark(group, metric) for group in groups]


def _mark(group: Group, metric: Metric) -> Mark:
    worst, best = (
        found.accuracy if metric == "accuracy" else found.f1 for found in (group.worst, group.best)
    )
    bounds = None
    if group.open and worst.value is not None and best.value is not None:
        bounds = (worst.value, best.value)
    return Mark(
        name="(not given)" if group.name is None else group.name or "(blank)",
        n=group.n,
        value=None if group.open else worst.value,
        low=worst.low,
        high=best.high,
        bounds=bounds,
        small=group.small,
        chance=group.chance,
        aside=group.name is None,
    )


def forest(identity: str, label: str, marks: Sequence[Mark], *, reference: float | None = None) -> str:
    """The plot as SVG. A dashed line stands at `reference`, what all rows together have."""
    named = [lines(mark.name, LABEL) for mark in marks]
    heights = [max(LEAST, len(name) * LINE + 9) for name in named]
    with drawing(WIDTH, TOP + sum(heights) + FOOT) as plot:
        _scale(plot, reference)
        at = TOP
        for mark, name, height in zip(marks, named, heights, strict=True):
            _row(plot, mark, name, at + height / 2)
            at += height
        return plot.svg(identity, label)


def _scale(plot: Plot, reference: float | None) -> None:
    foot = plot.height - FOOT
    for share, shown in ((0.0, "0"), (0.25, ""), (0.5, "0.5"), (0.75, ""), (1.0, "1")):
        plot.line((_x(share), _x(share)), (TOP - 6, foot), ink="line" if shown else "faint")
        plot.text(_x(share), TOP - 14, shown, align="center", ink="muted", size=11)
    plot.text(ROWS, TOP - 14, "rows", align="right", ink="muted", size=11)
    plot.text(plot.width, TOP - 14, "interval", align="right", ink="muted", size=11)
    if reference is not None:
        x = _x(reference)
        plot.line((x, x), (TOP - 6, foot), ink="muted", dashed=True)
        plot.text(x, 9, f"all {words.share(reference)}", align="center", ink="muted", size=11)


def _row(plot: Plot, mark: Mark, name: Sequence[str], y: float) -> None:
    quiet = mark.small
    for number, part in enumerate(name):
        plot.text(0, y + (number - (len(name) - 1) / 2) * LINE, part, ink="muted" if mark.aside else "ink")
    plot.text(ROWS, y, words.count(mark.n), align="right", ink="muted")
    if mark.small:
        plot.text(ROWS + 1, y, "*", ink="muted")
    if mark.low is not None and mark.high is not None:
        plot.line((_x(mark.low), _x(mark.high)), (y, y), ink="accent", width=1.0 if quiet else 1.8)
    if mark.chance is not None:
        plot.point(_x(mark.chance), y, shape="D", size=6, face="paper", edge="muted")
    if mark.bounds is not None:
        left, right = _x(mark.bounds[0]), _x(mark.bounds[1])
        plot.box(left, y - 5, max(right - left, 1.5), 10, face="paper", edge="accent", hatch="//////")
        plot.text(plot.width, y, words.span(*mark.bounds), align="right")
        return
    if mark.value is not None:
        plot.point(_x(mark.value), y, face="paper" if quiet else "accent")
    plot.text(VALUE, y, words.share(mark.value), align="right", bold=not quiet)
    plot.text(plot.width, y, words.span(mark.low, mark.high), align="right", ink="muted", size=11)


def _x(share: float) -> float:
    return LEFT + share * (RIGHT - LEFT)
