"""A comparison of benches in the terminal and as JSON."""

from __future__ import annotations

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mmbu_async.bench import words
from mmbu_async.bench.compare import BenchComparison, Line
from mmbu_async.report.plain import json_text, line
from mmbu_async.report.words import NONE, share_percent
from mmbu_async.stats import Estimate


def print_comparison(found: BenchComparison, console: Console) -> None:
    """A table for each load."""
    console.print(Text(line(f"{found.second} against {found.first}"), style="bold"))
    for difference in found.differences:
        console.print(Text(line(f"not the same: {difference}"), style="yellow"), soft_wrap=True)
    for pair in found.pairs:
        console.print()
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
        table.add_column(line(pair.load), no_wrap=True)
        for name in (found.first, found.second, "change", "95 % interval"):
            table.add_column(line(name), justify="right")
        for one in pair.lines:
            mark = " *" if one.differs else ""
            cells = (_value(one, one.first), _value(one, one.second), _change(one) + mark, _interval(one))
            table.add_row(one.what, *map(Text, cells))
        console.print(table)
        for remark in pair.remarks:
            console.print(Text(line(remark), style="yellow"), soft_wrap=True)
    for name, loads in ((found.first, found.only_first), (found.second, found.only_second)):
        if loads:
            console.print(Text(line(f"only in {name}: {', '.join(loads)}")), soft_wrap=True)
    console.print(Text("* the interval leaves no change out. Times and rates: as multiples; shares: points."))


def to_json(found: BenchComparison) -> str:
    """Indented, ends with a line end."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return json_text(orjson.dumps(found, option=options).decode())


def _value(one: Line, side: Estimate) -> str:
    if side.value is None:
        return NONE
    if one.unit == "share":
        return share_percent(side.value)
    return words.seconds(side.value) if one.unit == "s" else f"{words.many(side.value)}/s"


def _change(one: Line) -> str:
    value = one.change.value
    if value is None:
        return NONE
    return _points(value) if one.unit == "share" else f"x {value:.3f}"


def _interval(one: Line) -> str:
    low, high = one.change.low, one.change.high
    if low is None or high is None:
        return NONE
    if one.unit == "share":
        return f"{_points(low)} to {_points(high)}"
    return f"{low:.3f} to {high:.3f}"


def _points(share: float) -> str:
    return f"{share * 100:+.1f}".replace("-", "\u2212")
