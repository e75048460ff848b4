"""What all benchmarks have in common: flags, figures with their aims, a table, and JSON.

A benchmark is a module with a function from `Options` to `Findings`, and a `main` that hands it to `present`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import describe, headline, others_percent, spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What every benchmark can be told."""

    quick: bool
    """Few rows and one repeat: shows that the benchmark works, not what the program can do."""
    folder: Path
    """For images and stores; it decides which disk is measured."""

    @property
    def repeats(self) -> int:
        return 1 if self.quick else 3

    def rows(self, full: int, quick: int) -> int:
        return quick if self.quick else full


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number, and what it should be."""

    what: str
    value: float | None
    """None: could not be measured; `note` says why."""
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    @property
    def aim(self) -> str:
        if self.at_most is not None:
            return f"at most {number(self.at_most)}"
        return f"at least {number(self.at_least)}" if self.at_least is not None else ""

    @property
    def verdict(self) -> str:
        """`met`, `missed`, `not measured`, or '' where there is no aim."""
        if self.value is None:
            return "not measured"
        if self.at_most is not None:
            return "met" if self.value <= self.at_most else "missed"
        if self.at_least is not None:
            return "met" if self.value >= self.at_least else "missed"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a benchmark found."""

    figures: Sequence[Figure]
    method: str
    """How it was measured, in a few sentences for the page of figures."""
    details: Any
    """Every single measurement, for whoever doubts a median."""


def present(name: str, measure: Callable[[Options], Findings], about: str | None) -> None:
    """Parse the flags, measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="write the figures there")
    parser.add_argument("--quick", action="store_true", help="few rows, one repeat: only shows that it works")
    parser.add_argument(
        "--folder", type=Path, default=None, help="keep images and stores there (default: a temporary folder)"
    )
    flags = parser.parse_args()
    before = spent()
    with _folder(flags.folder) as folder:
        findings = measure(Options(quick=flags.quick, folder=folder))
    machine = {**describe(), "others_percent": others_percent(before, spent())}
    print(headline(machine))
    print(aligned(figure_lines(findings.figures)))
    if flags.json:
        write_findings(flags.json, name, machine, findings, quick=flags.quick)


def write_findings(
    file: Path, name: str, machine: Mapping[str, Any], findings: Findings, *, quick: bool
) -> None:
    content = {
        "benchmark": name,
        "quick": quick,
        "machine": machine,
        "method": findings.method,
        "figures": [asdict(figure) for figure in findings.figures],
        "details": findings.details,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def figure_lines(figures: Iterable[Figure]) -> list[list[str]]:
    """Header and one line a figure."""
    lines = [["figure", "value", "unit", "aim", "verdict", "note"]]
    lines += [
        [figure.what, number(figure.value), figure.unit, figure.aim, figure.verdict, figure.note]
        for figure in figures
    ]
    return lines


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Cells below each other; columns whose cells are numbers are set to the right."""
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    right = [n for n in range(len(widths)) if all(line[n][:1].isdigit() or not line[n] for line in lines[1:])]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if n in right else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def number(value: float | None) -> str:
    """Three digits that count: 0.782, 11.8, 1,240, 104,000."""
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) < 0.001:
        return f"{value:.2g}"
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1
    return f"{value:.{digits}f}"


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


@contextmanager
def _folder(wanted: Path | None) -> Iterator[Path]:
    if wanted is not None:
        wanted.mkdir(parents=True, exist_ok=True)
        yield wanted
        return
    with tempfile.TemporaryDirectory(prefix="mmbu-benchmark-") as folder:
        yield Path(folder)
