"""Where a figure was measured: without it a figure says nothing.

    from machine import describe, write_json

Benchmarks run as scripts (`python benchmarks/NAME.py`), which puts this folder on the path.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("mmbu-async", "aiohttp", "aiosqlite", "numpy", "orjson", "pillow", "pybase64", "uvloop")


def describe(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """The machine and the versions of what matters on it."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_mb": _memory_mb(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: _version(name) for name in packages},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def headline(machine: Mapping[str, Any]) -> str:
    """One line for above a table."""
    return (
        f"{machine['cpu']}, {machine['cores_usable']} of {machine['cores']} cores, "
        f"{machine['memory_mb']} MB; {machine['platform']}; Python {machine['python']}, "
        f"SQLite {machine['sqlite']}; {machine['date']}"
    )


def write_json(file: Path, results: Any) -> None:
    """Results with the machine beside them, as every benchmark here writes them."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": describe(), "results": results}, indent=2)
    file.write_text(text + "\n", encoding="utf-8")


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
