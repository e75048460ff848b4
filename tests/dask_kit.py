"""A Dask cluster in processes of its own: a scheduler, and workers without nannies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LOOPBACK = ("--host", "127.0.0.1")


@dataclass(slots=True, kw_only=True)
class Cluster:
    """What has been started; all of it is ended by process id."""

    folder: Path
    environment: dict[str, str]
    address: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *LOOPBACK, "--no-dashboard", *arguments]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=self.environment, cwd=self.folder
            )

    def worker(self, name: str) -> None:
        """It is there when its log says so."""
        options = ("--no-nanny", "--nthreads", "1", "--name", name, "--local-directory", str(self.folder))
        # Loaded at once, or one of several would work alone for as long as the others load.
        preload = ("--preload", "mmbu_async.pipeline.cluster.station")
        self.start(name, "dask_worker", self.address, *options, *preload)

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait(30)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def end(self) -> None:
        for name in list(self.processes):
            self.kill(name)


@contextmanager
def cluster(folder: Path, workers: int, **environment: str) -> Iterator[Cluster]:
    """A scheduler and workers that know the package and no key."""
    root = Path(__file__).parents[1]
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    found = Cluster(folder=folder, environment={**plain, "PYTHONPATH": str(root), **environment})
    file = folder / "scheduler.json"
    try:
        found.start("scheduler", "dask_scheduler", "--port", "0", "--scheduler-file", str(file), "--no-show")
        wait_for(lambda: file.exists() and bool(_address(file)))
        found.address = _address(file)
        for number in range(workers):
            found.worker(f"worker{number}")
        for number in range(workers):
            wait_for(lambda number=number: "Registered to" in found.log(f"worker{number}"))  # type: ignore[misc]
        yield found
    finally:
        found.end()


def _address(file: Path) -> str:
    try:
        content: dict[str, Any] = json.loads(file.read_text())
    except json.JSONDecodeError:
        # It is being written.
        return ""
    return str(content["address"])


def wait_for(condition: Callable[[], bool], timeout: float = 60) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        time.sleep(0.02)
