"""Bars from a zero line: accuracy points that were lost, and differences with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmbu_async.report import words
from mmbu_async.report.html.forest import LABEL, LEAST, LINE, ROWS, WIDTH
from mmbu_async.report.html.labels import lines, width
from mmbu_async.report.html.plot import Plot, drawing

LEFT, RIGHT = 184.0, 336.0
MIDDLE, REACH = 264.0, 64.0
"""Of the scale of differences: the place of zero, and of its ends on either side."""
TOP, FOOT = 8.0, 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What rows of one kind cost."""

    name: str
    n: int
    wrong: float
    """Share of all selected rows that are wrong and of this kind: points of accuracy."""
    open: float
    """The same of those without a score, which may be lost or not."""


def losses(identity: str, label: str, found: Sequence[Loss]) -> str:
    """A bar for each kind, as SVG: wrong rows filled, open ones hatched."""
    most = max((one.wrong + one.open for one in found), default=0.0) or 1.0
    # Two numbers need more room than one.
    right = RIGHT - 30 if any(one.open for one in found) else RIGHT
    named = [lines(one.name, LABEL) for one in found]
    heights = [max(LEAST, len(name) * LINE + 9) for name in named]
    with drawing(WIDTH, TOP + sum(heights) + FOOT) as plot:
        plot.line((LEFT, LEFT), (TOP, plot.height - FOOT), ink="line")
        at = TOP
        for one, name, height in zip(found, named, heights, strict=True):
            y = at + height / 2
            _name(plot, name, y, one.n)
            wrong, open_rows = (share / most * (right - LEFT) for share in (one.wrong, one.open))
            if one.wrong:
                plot.box(LEFT, y - 6, wrong, 12, face="bad")
            if one.open:
                plot.box(LEFT + wrong, y - 6, open_rows, 12, face="paper", edge="open", hatch="//////")
            ends = words.share(one.wrong) if not one.open else words.span(one.wrong, one.wrong + one.open)
            plot.text(plot.width, y, ends, align="right", bold=bool(one.wrong))
            at += height
        return plot.svg(identity, label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A difference with its interval."""

    name: str
    n: int
    value: float | None
    low: float | None
    high: float | None
    small: bool = False
    note: str = ""
    """A few characters at the end of the row, e.g. a mark of significance."""


def changes(identity: str, label: str, found: Sequence[Change], *, bars: bool = True) -> str:
    """Differences on a scale with zero in the middle, as SVG; as points where they are not bars."""
    reach = max((abs(end) for one in found for end in (one.value, one.low, one.high) if end), default=0.0)
    reach = _round_up(reach)
    named = [lines(one.name, LABEL) for one in found]
    heights = [max(LEAST, len(name) * LINE + 9) for name in named]
    top = 30.0
    with drawing(WIDTH, top + sum(heights) + FOOT) as plot:
        for share in (-1.0, -0.5, 0.0, 0.5, 1.0):
            x = _x(share, 1.0)
            plot.line((x, x), (top - 6, plot.height - FOOT), ink="muted" if share == 0 else "faint")
            if share in (-1.0, 0.0, 1.0):
                shown = "0" if share == 0 else words.signed(share * reach).rstrip("0").rstrip(".")
                plot.text(x, top - 14, shown, align="center", ink="muted", size=11)
        plot.text(ROWS, top - 14, "rows", align="right", ink="muted", size=11)
        at = top
        for one, name, height in zip(found, named, heights, strict=True):
            _change(plot, one, name, at + height / 2, reach, bars=bars)
            at += height
        return plot.svg(identity, label)


def _change(plot: Plot, one: Change, name: Sequence[str], y: float, reach: float, *, bars: bool) -> None:
    _name(plot, name, y, one.n, small=one.small)
    if one.value is None:
        plot.text(plot.width, y, words.NONE, align="right", ink="muted")
        return
    zero, end = _x(0.0, reach), _x(one.value, reach)
    face = "good" if one.value >= 0 else "bad"
    if bars:
        plot.box(
            min(zero, end),
            y - 6,
            abs(end - zero),
            12,
            face="paper" if one.small or one.value < 0 else face,
            edge=face,
            hatch="//////" if one.value < 0 and not one.small else None,
        )
    if one.low is not None and one.high is not None:
        plot.line((_x(one.low, reach), _x(one.high, reach)), (y, y), ink="ink" if bars else face, width=1.6)
    if not bars:
        plot.point(end, y, face="paper" if one.small else face, edge=face)
    plot.text(plot.width, y, words.signed(one.value) + one.note, align="right", bold=not one.small)


def _name(plot: Plot, name: Sequence[str], y: float, n: int, *, small: bool = False) -> None:
    for number, part in enumerate(name):
        plot.text(0, y + (number - (len(name) - 1) / 2) * LINE, part)
    plot.text(ROWS, y, words.count(n), align="right", ink="muted")
    if small:
        plot.text(ROWS + 1, y, "*", ink="muted")


def _x(value: float, reach: float) -> float:
    return MIDDLE + value / reach * REACH


def _round_up(reach: float) -> float:
    """The end of the scale: a number that reads well."""
    return next((end for end in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75) if reach <= end), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """How many of some rows two runs have right together, alone, or not at all."""

    name: str
    n: int
    wins: int
    ties_right: int
    ties_wrong: int
    losses: int
    small: bool = False


def outcomes(identity: str, label: str, found: Sequence[Outcomes]) -> str:
    """A bar of full width for each group as SVG, divided by outcome."""
    named = [lines(one.name, LABEL) for one in found]
    heights = [max(LEAST, len(name) * LINE + 9) for name in named]
    ends = [f"{words.count(one.wins)} : {words.count(one.losses)}" for one in found]
    top, right = 26.0, WIDTH - 10 - max(width(end) for end in ("wins : losses", *ends))
    with drawing(WIDTH, top + sum(heights) + FOOT) as plot:
        plot.text(ROWS, top - 14, "rows", align="right", ink="muted", size=11)
        plot.text(plot.width, top - 14, "wins : losses", align="right", ink="muted", size=11)
        at = top
        for one, name, height, end in zip(found, named, heights, ends, strict=True):
            y, left = at + height / 2, LEFT
            _name(plot, name, y, one.n, small=one.small)
            for count, face, edge, hatch in (
                (one.wins, "good", "good", None),
                (one.ties_right, "faint", "line", None),
                (one.ties_wrong, "paper", "line", None),
                (one.losses, "paper", "bad", "//////"),
            ):
                wide = count / one.n * (right - LEFT) if one.n else 0.0
                if count:
                    plot.box(left, y - 6, wide, 12, face=face, edge=edge, hatch=hatch)
                left += wide
            plot.text(plot.width, y, end, align="right")
            at += height
        return plot.svg(identity, label)
