"""Throw-away Python environments for what others make."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path


def install(scratch: Path, package: str, *more: str) -> tuple[Path | None, str]:
    """The interpreter of a fresh environment with the packages, and the first one's version; None and the
    reason where it cannot be had."""
    folder = scratch / f"environment-{package}"
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package, *more]
    installed = subprocess.run(command, capture_output=True, text=True)
    if installed.returncode:
        lines = installed.stderr.strip().splitlines() or ["pip failed"]
        return None, f"could not be installed ({lines[-1]})"
    ask = f"import importlib.metadata as m; print(m.version({package!r}))"
    version = subprocess.run([str(python), "-c", ask], capture_output=True, text=True, check=True)
    return python, version.stdout.strip()
