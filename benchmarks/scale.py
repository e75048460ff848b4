"""How long a large campaign takes at which pace, and what that asks of machines. No figure is typed in.

    python -m benchmarks.scale [--rows N] [--set-ups N] [--models N] [--judged SHARE] [--write | --check]

Prints the tables for docs/several_machines.md: rows, set-ups and models are multiplied, and the rates of one
process come from benchmarks/results. `--write` puts them into the page, `--check` says whether it has them.
`python -m benchmarks.table` writes them too.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.__main__ import RESULTS
from benchmarks.machine import REPOSITORY
from benchmarks.scheme import number

PAGE = REPOSITORY / "docs" / "several_machines.md"
BEGIN, END = "<!-- scale: begin -->", "<!-- scale: end -->"
LIMITS_RPM = (500, 5_000, 30_000)
"""Requests a minute that a key may have: a new account, a usual one, a large one."""
IMAGE_BYTES = 140_000
"""As in the benchmark of the pipeline."""
IN_BASE64 = 4 / 3
_UNITS = (("s", 60.0), ("minutes", 60.0), ("hours", 24.0), ("days", 365.25), ("years", math.inf))


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """Many runs of one benchmark."""

    rows: int = 78_000
    set_ups: int = 24
    models: int = 17
    judged: float = 1.0
    """Share of the rows that need a judge's call."""

    @property
    def runs(self) -> int:
        return self.set_ups * self.models

    @property
    def all_rows(self) -> int:
        return self.rows * self.runs

    @property
    def calls(self) -> float:
        return self.all_rows * (1 + self.judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the benchmarks found."""

    scored: float
    """Rows a second of one process, one call a row."""
    judged: float
    """The same with a judge's call for each row."""
    driver_ms: float | None
    """CPU of a driver a row, with two workers; None: not measured."""

    @classmethod
    def read(cls, results: Path) -> Measured:
        pipeline = _figures(results / "pipeline.json")
        return cls(
            scored=pipeline["rows a second, one call a row"],
            judged=pipeline["rows a second, two calls a row, the judge's the second"],
            driver_ms=_figures(results / "dask.json").get("CPU of the driver a row, 2 local workers"),
        )

    def rate(self, judged: float) -> float:
        """Rows a second when so many need a judge: seconds a row are shared out between the two kinds."""
        return 1 / ((1 - judged) / self.scored + judged / self.judged)


def _figures(file: Path) -> dict[str, float]:
    if not file.exists():
        return {}
    return {one["what"]: one["value"] for one in json.loads(file.read_text("utf-8"))["figures"]}


def tables(campaign: Campaign, measured: Measured) -> str:
    return "\n".join([*_counts(campaign), "", *_paces(campaign, measured), "", *_bounds(campaign, measured)])


def _counts(campaign: Campaign) -> Iterator[str]:
    yield "| | |"
    yield "| --- | ---: |"
    yield f"| rows of a run | {campaign.rows:,} |"
    yield f"| runs: {campaign.set_ups} set-ups × {campaign.models} models | {campaign.runs:,} |"
    yield f"| rows in all | {campaign.all_rows:,} |"
    yield f"| calls, {campaign.judged:.0%} of the rows judged | {campaign.calls:,.0f} |"


def _paces(campaign: Campaign, measured: Measured) -> Iterator[str]:
    full = measured.rate(campaign.judged)
    paces = [(f"a key with {rpm:,} requests a minute", rpm / 60) for rpm in LIMITS_RPM]
    paces += [("one process, nothing else in the way", full), ("ten such processes", 10 * full)]
    yield "| pace of the model under test | rows/s | one run | all runs | of one process | images |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for what, rate in paces:
        megabytes = rate * IMAGE_BYTES * IN_BASE64 / 1e6
        yield (
            f"| {what} | {number(rate)} | {_time(campaign.rows / rate)} | {_time(campaign.all_rows / rate)} "
            f"| {rate / full:.0%} | {number(megabytes)} MB/s |"
        )


def _bounds(campaign: Campaign, measured: Measured) -> Iterator[str]:
    full = measured.rate(campaign.judged)
    yield (
        f"One process was measured at {number(measured.scored)} rows/s with one call a row and at "
        f"{number(measured.judged)} with a judge's call for each: {number(full)} here. A key would have to "
        f"allow {full * 60:,.0f} requests a minute before the process is what limits."
    )
    if measured.driver_ms is not None:
        yield (
            f"With workers the driver was measured at {number(measured.driver_ms)} ms of CPU a row with one "
            f"call, which bounds it at {number(1000 / measured.driver_ms)} rows/s, whoever works for it."
        )


def _time(seconds: float) -> str:
    """In the largest unit of which there is one at least."""
    for unit, many in _UNITS:
        if seconds < many:
            return f"{number(seconds)} {unit}"
        seconds /= many
    raise AssertionError("years have no end")


def with_tables(page: str, text: str) -> str:
    """The page with these tables between its marks."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}"


def update(*, check: bool) -> bool:
    """Put the tables of the usual campaign into the page, or only look; whether it had them."""
    page = PAGE.read_text("utf-8")
    made = with_tables(page, tables(Campaign(), Measured.read(RESULTS)))
    if made != page and not check:
        PAGE.write_text(made, encoding="utf-8")
    return made == page


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    usual = Campaign()
    parser.add_argument("--rows", type=int, default=usual.rows, help=f"of a run (default {usual.rows})")
    parser.add_argument("--set-ups", type=int, default=usual.set_ups, help=f"(default {usual.set_ups})")
    parser.add_argument("--models", type=int, default=usual.models, help=f"(default {usual.models})")
    parser.add_argument("--judged", type=float, default=usual.judged, help="share of the rows (default 1)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="write the usual campaign's into the page")
    what.add_argument("--check", action="store_true", help="exit 1 where the page has others")
    flags = parser.parse_args()
    if flags.write or flags.check:
        same = update(check=flags.check)
        if flags.check:
            print("up to date" if same else "behind: run python -m benchmarks.scale --write")
        return flags.check and not same
    campaign = Campaign(rows=flags.rows, set_ups=flags.set_ups, models=flags.models, judged=flags.judged)
    print(tables(campaign, Measured.read(RESULTS)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
