"""The tables that a bench is shown in: a line for each part, narrow enough for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from mmbu_async.bench import words
from mmbu_async.bench.record import Phase
from mmbu_async.bench.report import Part
from mmbu_async.bench.spread import SHARES, Spread
from mmbu_async.report.words import NONE, percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """A table with a line for each part: header and how a part fills it."""

    title: str
    cells: tuple[tuple[str, Callable[[Part], str]], ...]


def _mean(found: Spread | None) -> str:
    return NONE if found is None else words.seconds(found.mean.value)


def _largest(found: Spread | None) -> str:
    return NONE if found is None else words.seconds(found.largest)


def _first_of_answer(part: Part) -> str:
    """Apart from reasoning; where there is none it is the first token."""
    times = part.figures.times
    return NONE if times.first_thought is None else words.percentile(times.first_output, "p50")


def _share(part: Part, *, field: str, share: str) -> str:
    return words.percentile(getattr(part.figures.times, field), share)


OVERVIEW = (
    Columns(
        title="Throughput",
        cells=(
            ("replies", lambda part: f"{part.figures.phases.get(Phase.OK, 0):,}"),
            ("req/s", lambda part: words.many(part.figures.rates.requests.value)),
            ("good/s", lambda part: words.many(part.figures.rates.good.value)),
            ("images/s", lambda part: words.many(part.figures.rates.images.value)),
            ("Mpixel/s", lambda part: _millions(part.figures.rates.pixels.value)),
            ("tok in/s", lambda part: words.many(part.figures.rates.input_tokens.value)),
            ("tok out/s", lambda part: words.many(part.figures.rates.output_tokens.value)),
            ("right", lambda part: words.right(part.figures)),
            ("errors", lambda part: words.errors(part.figures)),
        ),
    ),
    Columns(
        title="Tokens",
        cells=tuple(
            (f"{name} {share}", partial(_share, field=field, share=share))
            for name, field, shares in (
                ("TTFT", "first_token", ("p50", "p95", "p99")),
                ("ITL", "gap", ("p50", "p99")),
                ("TPOT", "token", ("p50", "p99")),
            )
            for share in shares
        ),
    ),
    Columns(
        title="Latency",
        cells=(
            ("mean", lambda part: _mean(part.figures.times.latency)),
            *((share, partial(_share, field="latency", share=share)) for share in SHARES),
            ("max", lambda part: _largest(part.figures.times.latency)),
        ),
    ),
    Columns(
        title="On the way",
        cells=(
            ("upload p50", partial(_share, field="upload", share="p50")),
            ("1st byte p50", partial(_share, field="first_byte", share="p50")),
            ("thought p50", partial(_share, field="first_thought", share="p50")),
            ("answer p50", _first_of_answer),
            ("MB up/s", lambda part: _millions(part.figures.rates.bytes_up.value)),
            ("MB down/s", lambda part: _millions(part.figures.rates.bytes_down.value)),
        ),
    ),
    Columns(
        title="This process",
        cells=(
            ("CPU", lambda part: NONE if (cpu := part.verdict.itself.cpu) is None else percent(cpu)),
            ("lag p50", lambda part: words.seconds(part.verdict.itself.lag_p50_s)),
            ("lag p99", lambda part: words.seconds(part.verdict.itself.lag_p99_s)),
            ("delay p99", lambda part: words.seconds(part.verdict.itself.delay_p99_s)),
            ("on the wire", lambda part: words.three(part.figures.on_the_wire)),
        ),
    ),
)


SAME = frozenset({"good/s", "images/s"})
"""Columns that are left out where they say what the one of all replies says."""


def shown(parts: Sequence[Part], columns: Columns) -> Iterator[tuple[str, list[str]]]:
    """The columns that tell anything, each with a cell for every part."""
    filled = {name: [fill(part) for part in parts] for name, fill in columns.cells}
    for name, cells in filled.items():
        told = any(cell not in ("", NONE) for cell in cells)
        if told and not (name in SAME and cells == filled["req/s"]):
            yield name, cells


def _millions(value: float | None) -> str:
    return NONE if not value else words.three(value / 1e6)
