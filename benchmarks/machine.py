"""Where a figure was measured: without it a figure says nothing."""

from __future__ import annotations

import os
import platform
import resource
import sqlite3
import subprocess
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from mmbu_async.version import VERSION

PACKAGES = ("aiohttp", "aiosqlite", "matplotlib", "numpy", "orjson", "pillow", "pybase64", "uvloop")
REPOSITORY = Path(__file__).resolve().parent.parent


def describe(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """The machine, the versions of what matters on it, and the commit that was measured."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "cores_usable": len(usable_cores()),
        "memory_mb": _memory_mb(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "packages": {"mmbu-async": VERSION, **{name: _version(name) for name in packages}},
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def spent() -> tuple[float, float, float] | None:
    """Seconds on the clock, of all cores that somebody used, and of those that we and our children did."""
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:9]]
    except OSError:
        return None
    idle = ticks[3] + ticks[4]
    ours = sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    return time.monotonic(), (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK"), ours


def others_percent(
    before: tuple[float, float, float] | None, after: tuple[float, float, float] | None
) -> float | None:
    """How much of the machine other programs took meanwhile: the figures suffer from it."""
    if before is None or after is None:
        return None
    wall, busy, ours = (end - begin for begin, end in zip(before, after, strict=True))
    return round(max(0.0, busy - ours) / (wall * (os.cpu_count() or 1)) * 100, 1)


def headline(machine: Mapping[str, Any]) -> str:
    """One line for above a table."""
    others = machine.get("others_percent")
    return (
        f"{machine['cpu']}, {machine['cores_usable']} of {machine['cores']} cores, "
        f"{machine['memory_mb']} MB; {machine['platform']}; Python {machine['python']}, "
        f"SQLite {machine['sqlite']}; commit {machine.get('commit')}; {machine['date']}"
        + ("" if others is None else f"; other programs took {others:g} % of the machine meanwhile")
    )


def usable_cores() -> list[int]:
    """Numbers of the cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def file_system(folder: Path) -> str:
    """The kind of disk below a folder (`ext4`, `tmpfs`): a commit to memory costs nothing."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text("utf-8").splitlines()]
    except OSError:
        return "unknown"
    place = folder.resolve()
    above = [(len(point), kind) for _, point, kind, *_ in mounts if place.is_relative_to(point)]
    return max(above)[1] if above else "unknown"


def _commit() -> str | None:
    """Short hash of the commit, with `+` where package or benchmarks differ from it."""
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", "mmbu_async", "benchmarks/*.py")
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+" if changed else "")


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(REPOSITORY), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _memory_mb() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (AttributeError, ValueError, OSError):
        return None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
