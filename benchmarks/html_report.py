"""What the page of a run as large as the full benchmark takes: 78,000 rows, thirteen attributes.

    python -m benchmarks.html_report [--json FILE] [--quick] [--folder FOLDER]

The store is made first, through the store's own doors (see big_run.py), and is no part of what is measured.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from benchmarks.big_run import ROWS, VALUES_OF, big_run
from benchmarks.machine import REPOSITORY
from benchmarks.scheme import Figure, Findings, Options, median, present

SECONDS_AIM, MEMORY_AIM_MB = 10, 500


def measure(options: Options) -> Findings:
    rows = options.rows(ROWS, 2_000)
    store = options.folder / f"big-{rows}.sqlite"
    big_run(store, name="one", rows=rows)
    big_run(store, name="other", rows=rows, seed=1)
    page = options.folder / "page.html"
    jobs = {
        "HTML report": ["report", "one"],
        "HTML comparison of two runs": ["compare", "one", "other"],
    }
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    for what, command in jobs.items():
        runs = [
            timed_command([*command, "--store", str(store), "--out", str(page)])
            for _ in range(options.repeats)
        ]
        shown = f"{what}, {rows:,} rows"
        aims = (SECONDS_AIM, MEMORY_AIM_MB) if what == "HTML report" else (None, None)
        figures += [
            Figure(what=shown, value=median(run["seconds"] for run in runs), unit="s", at_most=aims[0]),
            Figure(what=f"CPU, {shown}", value=median(run["cpu_s"] for run in runs), unit="s"),
            Figure(
                what=f"peak memory, {shown}",
                value=median(run["peak_memory_mb"] for run in runs),
                unit="MB",
                at_most=aims[1],
            ),
            Figure(what=f"size, {shown}", value=page.stat().st_size / 2**20, unit="MB"),
        ]
        details[what] = runs
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    "The whole command (`mmbu report RUN --out page.html`) in a process of its own, from its start to its "
    "end: interpreter, imports, reading the store, 1,000 bootstrap resamples of every group of "
    f"{len(VALUES_OF)} attributes ({sum(VALUES_OF.values())} values), figures, page. Memory is the peak "
    "resident size (VmHWM); CPU is user and system time of all threads."
)

PROGRAM = """
import resource, sys
from benchmarks.child import peak_memory_kb
from mmbu_async.__main__ import main
try:
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, peak_memory_kb(), file=sys.stderr)
"""


def timed_command(arguments: list[str]) -> dict[str, float]:
    """Seconds and peak memory of one `mmbu` command. What it prints is not kept."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    seconds = time.perf_counter() - begun
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: ended with code {done.returncode}: {done.stderr}")
    cpu_s, memory_kb = done.stderr.split()[-2:]
    return {
        "seconds": round(seconds, 3),
        "cpu_s": round(float(cpu_s), 3),
        "peak_memory_mb": round(int(memory_kb) / 1024, 1),
    }


def main() -> None:
    present("html_report", measure, __doc__)


if __name__ == "__main__":
    main()
