"""Drawings as SVG that belongs to a page: its font, its colours in light and dark, texts that stay text.

matplotlib draws; what it writes is then made to fit. Colours are drawn as markers and replaced by variables
of the page's style sheet. Texts are drawn as placeholders and replaced by escaped text, so that matplotlib
reads no formula into a foreign `$`, looks for no glyph, and measures nothing. Ids get the figure's own name,
since those of two SVGs in one page would meet.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from mmbu_async.report.html.markup import cut

Align = Literal["left", "center", "right"]
Upright = Literal["top", "center", "baseline", "bottom"]

COLOURS = (
    *("ink", "muted", "line", "faint", "paper"),
    *("good", "bad", "open", "accent", "second"),
)
"""What a colour is for. The style sheet says which one that is, in light and in dark."""

_MARKERS = {name: f"#0a00{place:02x}" for place, name in enumerate(COLOURS, start=1)}
_VARIABLES = {marker: f"var(--{name})" for name, marker in _MARKERS.items()}

SIZE = 12.0
"""Of texts, in pixels of the drawing."""

_RC = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mmbu",
    "font.size": SIZE,
    "hatch.linewidth": 1.2,
    "lines.solid_capstyle": "butt",
    "path.simplify": False,
}


@contextmanager
def drawing(width: float, height: float) -> Iterator[Plot]:
    """A drawing to be made and written within this context: in it hold matplotlib's own settings and ours,
    whatever the user's file says, and those of whoever draws beside us are as before afterwards."""
    defaults: dict[Any, Any] = dict(matplotlib.rcParamsDefault)
    ours = {name: value for name, value in (defaults | _RC).items() if "backend" not in name}
    with matplotlib.rc_context(ours):
        yield Plot(width, height)


class Plot:
    """A drawing of a width and height in pixels, the origin at its upper left. There is no current figure:
    nothing of it is shared. Every text, ticks' included, goes through `text`."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self._texts: list[str] = []
        self._figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        self._figure.patch.set_visible(False)
        self._page: Axes = self._figure.add_axes((0, 0, 1, 1))
        self._page.set_axis_off()
        self._page.set(xlim=(0, width), ylim=(height, 0))

    def text(
        self,
        x: float,
        y: float,
        foreign: str,
        *,
        align: Align = "left",
        upright: Upright = "center",
        ink: str = "ink",
        size: float = SIZE,
        bold: bool = False,
        rotation: float = 0.0,
    ) -> None:
        """One line of any text."""
        if not foreign:
            return
        self._texts.append(escape(cut(foreign), quote=False))
        self._page.text(
            x,
            y,
            _placeholder(len(self._texts) - 1),
            ha=align,
            va=upright,
            color=_drawn(ink),
            fontsize=size,
            fontweight="bold" if bold else "normal",
            rotation=rotation,
            rotation_mode="anchor",
            parse_math=False,
            clip_on=False,
        )

    def line(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        ink: str = "line",
        width: float = 1.0,
        dashed: bool = False,
    ) -> None:
        """A straight line."""
        style = (0.0, (4.0, 3.0)) if dashed else "-"
        self._add(x, y, color=_drawn(ink), linewidth=width, linestyle=style)

    def point(
        self,
        x: float,
        y: float,
        *,
        shape: str = "s",
        size: float = 7.0,
        face: str = "accent",
        edge: str = "accent",
    ) -> None:
        """A mark around a place; `shape` is one of matplotlib's letters."""
        self._add(
            (x,),
            (y,),
            linestyle="none",
            marker=shape,
            markersize=size,
            markerfacecolor=_drawn(face),
            markeredgecolor=_drawn(edge),
            markeredgewidth=1.4,
            zorder=3,
        )

    def _add(self, x: Sequence[float], y: Sequence[float], **style: Any) -> None:
        # Axes.plot and .scatter also look after scales, which here are fixed: they take ten times as long.
        self._page.add_artist(Line2D(x, y, clip_on=False, **style))

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        face: str,
        edge: str | None = None,
        hatch: str | None = None,
        line: float = 1.0,
    ) -> None:
        """A rectangle, `x` and `y` its upper left corner; a hatch is drawn in the colour of the edge."""
        self._page.add_artist(
            Rectangle(
                (x, y),
                width,
                height,
                facecolor=_drawn(face),
                edgecolor=_drawn(edge or face),
                linewidth=line if edge else 0.0,
                hatch=hatch,
                zorder=2,
                clip_on=False,
            )
        )

    def svg(self, identity: str, label: str) -> str:
        """The drawing as an SVG element. `identity` is the figure's, `label` tells it to who cannot see."""
        written = io.StringIO()
        self._figure.savefig(written, format="svg", metadata={"Date": None})
        drawn = written.getvalue()
        body = drawn[drawn.index(">", drawn.index("<svg")) + 1 : drawn.rindex("</svg>")]
        opening = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" role="img" '
            f'aria-label="{escape(cut(label), quote=True)}">'
        )
        return f"{opening}{self._with_texts(_tidy(body, identity))}</svg>"

    def _with_texts(self, body: str) -> str:
        return _PLACEHOLDER.sub(lambda found: f">{self._texts[int(found[1])]}<", body)


def _drawn(colour: str) -> str:
    """What to draw with: a marker for a colour of the page, any other colour as it is."""
    return _MARKERS.get(colour, colour)


def _placeholder(number: int) -> str:
    return f"t{number:05d}"


_PLACEHOLDER = re.compile(r">t(\d{5})<")
_ID = re.compile(r'\sid="([^"]+)"')
_MARKER = re.compile("|".join(_VARIABLES))
_CHANGES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"<metadata>.*?</metadata>\s*", re.DOTALL), ""),
    # Would hold for the whole page. What it says stands in the page's style sheet.
    (re.compile(r"<defs>\s*<style.*?</style>\s*</defs>\s*", re.DOTALL), ""),
    (re.compile(r"<!--.*?-->\s*", re.DOTALL), ""),
    (re.compile(r" ?font-family: [^;\"]*;"), ""),
    (re.compile(r' transform="rotate\(-?0 [^)]*\)"'), ""),
    (re.compile(r"xlink:href"), "href"),
    # A variable is sure to be understood in a style, not in an attribute.
    (re.compile(r' fill="(#0a00\w\w)"'), r' style="fill: \1"'),
    (re.compile(r"(\d\.\d\d)\d+"), r"\1"),
    (re.compile(r"\s*\n\s*"), "\n"),
)


def _tidy(body: str, identity: str) -> str:
    for pattern, replacement in _CHANGES:
        body = pattern.sub(replacement, body)
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', body))
    names = {one or other for one, other in used}
    body = _ID.sub(lambda found: f' id="{identity}-{found[1]}"' if found[1] in names else "", body)
    body = re.sub(r'(url\(#|href="#)', rf"\g<1>{identity}-", body)
    return _MARKER.sub(lambda found: _VARIABLES[found[0]], body)
