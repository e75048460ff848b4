"""Seeds side by side, each in a process of its own, and the sum of what they showed."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from tests.endurance.endpoint import REPOSITORY

SUMS = (
    *("rows", "sessions", "requests", "repeated_calls", "unread_replies", "lost_replies"),
    *("unstored_requests", "unknown_cost", "lost_rows", "seconds"),
)
TABLES = ("blows", "faults", "exit_codes")
MINUTES = 15
"""A seed takes half a minute on a free machine."""


@dataclass(kw_only=True)
class Rounds:
    """Plays seeds and keeps what they showed in a file."""

    out: Path | None
    folder: Path
    options: tuple[str, ...] = ()
    """Further flags of each seed's process."""
    done: dict[int, dict[str, Any]] = field(default_factory=dict)

    def play(self, seeds: Iterable[int], *, jobs: int) -> int:
        """0 where no invariant is broken. What the file has of these seeds is taken from there."""
        wanted = list(seeds)
        self.folder.mkdir(parents=True, exist_ok=True)
        commit = describe()["commit"]
        if self.out is not None and self.out.exists():
            kept = json.loads(self.out.read_text("utf-8"))["per_seed"]
            self.done = {one["seed"]: one for one in kept if one["seed"] in wanted and not one["broken"]}
        with ThreadPoolExecutor(jobs) as pool:
            playing = [pool.submit(self._one, seed) for seed in wanted if seed not in self.done]
            for future in as_completed(playing):
                one = future.result() | {"commit": commit}
                self.done[one["seed"]] = one
                self._tell(one)
                self._write()
        broken = sum(bool(one["broken"]) for one in self.done.values())
        sys.stdout.write(f"{len(self.done)} seeds, {broken} with a broken invariant\n")
        return 1 if broken else 0

    def summary(self) -> dict[str, Any]:
        """Figures of all seeds together, and each seed's own."""
        seeds = [self.done[number] for number in sorted(self.done)]
        tables = {name: sum((Counter(one[name]) for one in seeds), Counter[str]()) for name in TABLES}
        return {
            "command": f"python -m tests.endurance --seeds {len(seeds)}",
            "machine": describe(),
            "commits": sorted({str(one["commit"]) for one in seeds}),
            "clock": sorted({one["clock"] for one in seeds}),
            "disk": sorted({one["disk"] for one in seeds}),
            "seeds": len(seeds),
            "broken": sum(bool(one["broken"]) for one in seeds),
            **{name: round(sum(one[name] for one in seeds), 1) for name in SUMS},
            "kills": tables["blows"]["sigkill"],
            "most_memory_mb": round(max((one["most_memory_mb"] for one in seeds), default=0.0), 1),
            **{name: dict(sorted(counts.items())) for name, counts in tables.items()},
            "per_seed": seeds,
        }

    def _one(self, seed: int) -> dict[str, Any]:
        command = self._command(seed)
        try:
            done = subprocess.run(
                command, cwd=REPOSITORY, capture_output=True, text=True, timeout=60 * MINUTES, check=False
            )
            said, why = done.stdout.strip(), done.stderr
        except subprocess.TimeoutExpired:
            said, why = "", f"it did not end within {MINUTES} minutes"
        try:
            found: dict[str, Any] = json.loads(said)
        except json.JSONDecodeError:
            found = dict.fromkeys(SUMS, 0) | {name: {} for name in TABLES}
            found |= {"seed": seed, "most_memory_mb": 0.0, "clock": "", "disk": ""}
            found["broken"] = [f"the suite itself failed: {why.strip()[-2000:]}"]
        return found

    def _command(self, seed: int) -> list[str]:
        command = [sys.executable, "-m", "tests.endurance", "--seed", str(seed), "--folder", str(self.folder)]
        return [*command, *self.options]

    def _tell(self, one: dict[str, Any]) -> None:
        """A line a seed; a seed that fails says how to repeat it and what it left."""
        blows = ", ".join(f"{count} {name}" for name, count in sorted(one["blows"].items()))
        state = "BROKEN" if one["broken"] else "ok"
        lines = [
            f"seed {one['seed']}: {state}; {one['rows']} rows, {one['sessions']} sessions, {one['requests']} "
            f"requests, {sum(one['faults'].values())} faults, {one['repeated_calls']} repeated; {blows}; "
            f"{one['most_memory_mb']:.0f} MB, {one['seconds']:.0f} s"
        ]
        lines += [f"  {words}" for words in one["broken"]]
        if one["broken"]:
            lines.append(f"  again: {shlex.join(self._command(one['seed']))}")
            lines.append(f"  kept: {self.folder}/seed-{one['seed']}")
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()

    def _write(self) -> None:
        if self.out is None:
            return
        self.out.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.out.with_name(self.out.name + ".new")
        fresh.write_text(json.dumps(self.summary(), indent=1) + "\n", "utf-8")
        fresh.replace(self.out)
