"""A map of accuracy over two properties: colour and number in each cell, hollow where rows are few."""

from __future__ import annotations

from functools import cache
from math import cos, radians, sin

from matplotlib import colormaps
from matplotlib.colors import to_hex

from mmbu_async.report import words
from mmbu_async.report.heatmap import Cell, Heatmap
from mmbu_async.report.html.labels import lines, width
from mmbu_async.report.html.plot import Plot, drawing

LABEL = 200.0
CELL, HEIGHT = 58.0, 38.0
SLANT = 38.0
"""Degrees by which the names of columns are turned."""
SLANTED = 170.0
"""Room for such a name."""
LINE = 13.0
LEGEND = 52.0

MOST_ROWS = 14
MOST_COLUMNS = 12


def shown(found: Heatmap) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The values drawn on either side: those with the most rows."""
    return found.rows[:MOST_ROWS], found.columns[:MOST_COLUMNS]


def heat(identity: str, label: str, found: Heatmap) -> str:
    """The map as SVG."""
    rows, columns = shown(found)
    names = [lines(name, SLANTED, most=1, size=11)[0] for name in columns]
    turned = radians(SLANT)
    head = max(width(name, 11) for name in names) * sin(turned) + 24
    # A slanted name may reach beyond the last column.
    ends = [CELL * (n + 0.5) + width(name, 11) * cos(turned) for n, name in enumerate(names)]
    right = LABEL + max(CELL * len(columns), *ends) + 4
    with drawing(right, head + HEIGHT * len(rows) + LEGEND) as plot:
        for number, name in enumerate(names):
            x = LABEL + CELL * (number + 0.5)
            plot.text(x, head - 8, name, upright="baseline", size=11, rotation=SLANT)
        for number, name in enumerate(rows):
            middle = head + HEIGHT * (number + 0.5)
            named = lines(name, LABEL - 12, most=2)
            for place, part in enumerate(named):
                plot.text(LABEL - 10, middle + (place - (len(named) - 1) / 2) * LINE, part, align="right")
        for one in found.cells:
            if one.row in rows and one.column in columns:
                _cell(
                    plot, one, LABEL + CELL * columns.index(one.column), head + HEIGHT * rows.index(one.row)
                )
        _legend(plot, head + HEIGHT * len(rows) + 18)
        return plot.svg(identity, label)


def _cell(plot: Plot, one: Cell, x: float, y: float) -> None:
    colour = _colour((one.worst + one.best) / 2)
    if one.small:
        plot.box(x + 2.5, y + 2.5, CELL - 5, HEIGHT - 5, face="paper", edge=colour, line=3.0)
        ink, quiet = "ink", "muted"
    else:
        plot.box(x + 1, y + 1, CELL - 2, HEIGHT - 2, face=colour)
        ink = quiet = "#000000" if _is_light(colour) else "#ffffff"
    accuracy = f"{one.worst:.2f}" if not one.open else f"{one.worst:.2f}–{one.best:.2f}"
    size = 12.0 if not one.open else 10.0
    middle = x + CELL / 2
    plot.text(middle, y + HEIGHT / 2 - 6, accuracy, align="center", ink=ink, bold=not one.small, size=size)
    n = words.count(one.n) + ("*" if one.small else "")
    plot.text(middle, y + HEIGHT / 2 + 8, n, align="center", ink=quiet, size=10)


def _legend(plot: Plot, top: float) -> None:
    steps, step = 30, 5.0
    for number in range(steps):
        plot.box(LABEL + number * step, top, step + 0.3, 9, face=_colour((number + 0.5) / steps))
    for share, name in ((0.0, "0"), (0.5, "0.5"), (1.0, "1")):
        plot.text(LABEL + share * steps * step, top + 18, name, align="center", ink="muted", size=10)
    plot.text(LABEL - 10, top + 5, "accuracy", align="right", ink="muted", size=11)


def _colour(share: float) -> str:
    colours = _colours()
    return colours[min(int(share * len(colours)), len(colours) - 1)]


@cache
def _colours() -> tuple[str, ...]:
    """From dark blue to yellow, in an order that is seen without any colour vision too."""
    found = colormaps["cividis"]
    return tuple(to_hex(found(number)) for number in range(found.N))


def _is_light(colour: str) -> bool:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue > 130
