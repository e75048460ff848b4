"""What exports of a run as large as the full benchmark take: 78,000 rows, thirteen attributes.

    python -m benchmarks.exports [--json FILE] [--quick] [--folder FOLDER]

The store is made first, through the store's own doors (see big_run.py), and is no part of what is measured.
"""

from __future__ import annotations

from typing import Any

from benchmarks.big_run import ROWS, VALUES_OF, big_run
from benchmarks.html_report import timed_command
from benchmarks.scheme import Figure, Findings, Options, median, present

FORMS = {
    "JSON Lines": ("rows.jsonl", ()),
    "CSV": ("rows.csv", ()),
    "Parquet": ("rows.parquet", ()),
    "long form": ("long.parquet", ("--long",)),
    "leaderboard's row": ("row.leaderboard.json", ()),
}


def measure(options: Options) -> Findings:
    rows = options.rows(ROWS, 2_000)
    store = options.folder / f"big-{rows}.sqlite"
    big_run(store, name="one", rows=rows)
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    for what, (name, flags) in FORMS.items():
        out = options.folder / name
        command = ["export", "one", "--store", str(store), "--out", str(out), *flags]
        runs = [timed_command(command) for _ in range(options.repeats)]
        figures += [
            Figure(
                what=f"{label}{what}, {rows:,} rows",
                value=median(run[measured] for run in runs),
                unit=unit,
            )
            for label, measured, unit in (("", "seconds", "s"), ("peak memory, ", "peak_memory_mb", "MB"))
        ]
        figures.append(
            Figure(what=f"size, {what}, {rows:,} rows", value=out.stat().st_size / 2**20, unit="MB")
        )
        details[what] = runs
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    "The whole command (`mmbu export RUN --out FILE`) in a process of its own, from its start to its end. "
    f"The long form has a line for each row and each of {len(VALUES_OF)} attributes, over a million in all. "
    "Memory is the peak resident size (VmHWM); Parquet's library alone takes some 80 MB of it."
)


def main() -> None:
    present("exports", measure, __doc__)


if __name__ == "__main__":
    main()
