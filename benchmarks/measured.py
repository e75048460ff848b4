"""One run of our own in a process of its own, and what it used."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import REPOSITORY
from benchmarks.servers import OURS, Endpoint, pin

SAMPLE_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a child reported."""

    started_at: float
    """Unix seconds when the process was started."""
    marks: dict[str, dict[str, float]]
    samples: list[list[float]]
    """Unix seconds, rows done, model calls in flight."""
    counts: dict[str, int]

    @property
    def rows(self) -> int:
        return self.counts["scored"]

    @property
    def start_up_s(self) -> float:
        """From the start of the process until everything is imported."""
        return self.marks["imported"]["at"] - self.started_at

    @property
    def start_up_cpu_s(self) -> float:
        return self._cpu(None, "imported")

    @property
    def cpu_ms_a_row(self) -> float:
        """User and system time of `evaluate()` from call to return: reading and checking the table of rows,
        registering them, calls, checkpoint, scores. Start-up is not in it."""
        return self._cpu("imported", "ended") / self.rows * 1e3

    @property
    def engine_cpu_ms_a_row(self) -> float:
        """The part from the first row read to the last reply on disk."""
        return self._cpu("engine began", "engine ended") / self.rows * 1e3

    @property
    def rows_a_second(self) -> float:
        """Over `evaluate()` from call to return."""
        return self.rows / (self.marks["ended"]["at"] - self.marks["imported"]["at"])

    @property
    def engine_rows_a_second(self) -> float:
        return self.rows / (self.marks["engine ended"]["at"] - self.marks["engine began"]["at"])

    def steady_rows_a_second(self, full: int) -> float:
        """Between the moment at which `full` calls were first in flight, a second added for them to be of
        all ages, and the moment at which nine tenths of the rows were done."""
        begun = next((at for at, _, in_flight in self.samples if in_flight >= full), self.samples[0][0]) + 1.0
        window = [(at, done) for at, done, _ in self.samples if at >= begun and done <= 0.9 * self.rows]
        if len(window) < 2:
            raise RuntimeError("the run was too short to have a steady part; give it more rows")
        (first_at, first), (last_at, last) = window[0], window[-1]
        return (last - first) / (last_at - first_at)

    def peak_memory_mb(self, until: str = "ended") -> float:
        """Most resident memory from the start of the process to a mark."""
        return self.marks[until]["peak_memory_kb"] / 1024

    def _cpu(self, since: str | None, until: str) -> float:
        used = self.marks[until]["user_s"] + self.marks[until]["system_s"]
        if since is None:
            return used
        return used - self.marks[since]["user_s"] - self.marks[since]["system_s"]

    def summary(self) -> dict[str, Any]:
        """What the JSON keeps of it."""
        span = {
            part: self.marks[part]["user_s"] - self.marks["imported"]["user_s"]
            for part in ("engine began", "engine ended", "ended")
        }
        return {
            "rows": self.rows,
            "cpu_ms_a_row": round(self.cpu_ms_a_row, 4),
            "engine_cpu_ms_a_row": round(self.engine_cpu_ms_a_row, 4),
            "user_share": round(span["ended"] / max(1e-9, self._cpu("imported", "ended")), 3),
            "rows_a_second": round(self.rows_a_second, 1),
            "engine_rows_a_second": round(self.engine_rows_a_second, 1),
            "start_up_s": round(self.start_up_s, 3),
            "start_up_cpu_s": round(self.start_up_cpu_s, 3),
            "peak_memory_mb": {name: round(self.peak_memory_mb(name), 1) for name in self.marks},
        }


def run(server: Endpoint, data: Path, store: Path, **settings: Any) -> Measured:
    """`evaluate()` of a split against a server, into a fresh store that is deleted afterwards."""
    try:
        return fill(server, data, store, **settings)
    finally:
        remove_store(store)


def fill(server: Endpoint, data: Path, store: Path, **settings: Any) -> Measured:
    """The same, and the store stays."""
    remove_store(store)
    config = {
        "model": "bare",
        "base_url": server.openai,
        "data": str(data),
        "store": str(store),
        "judge": {"base_url": server.url, "concurrency": settings.get("concurrency", 64)},
        **settings,
    }
    return work({"config": config})


def work(job: dict[str, Any], *, pinned: bool = True) -> Measured:
    """Have a child do a job: on the core that is ours, or, with what it starts, wherever there is one."""
    command = [sys.executable, "-m", "benchmarks.child"]
    started_at = time.time()
    child = subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    if pinned:
        pin(child.pid, OURS)
    output, _ = child.communicate(json.dumps({"sample_s": SAMPLE_S, **job}))
    if child.returncode:
        raise RuntimeError(f"the measured process ended with code {child.returncode}")
    report = json.loads(output)
    return Measured(
        started_at=started_at,
        marks={one["name"]: one for one in report["marks"]},
        samples=report["samples"],
        counts=report["counts"],
    )


def remove_store(store: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{store}{suffix}").unlink(missing_ok=True)
