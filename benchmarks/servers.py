"""Simulated endpoints as processes of their own, each on a core of its own where there are two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.machine import REPOSITORY, usable_cores

CORES = usable_cores()
OURS, SERVERS = CORES[0], CORES[-1]
"""Cores of the process that is measured, and of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server that listens."""

    url: str
    """Base URL for Anthropic's format; with `/v1` for OpenAI's."""

    @property
    def openai(self) -> str:
        return f"{self.url}/v1"


@contextmanager
def endpoint(*flags: str) -> Iterator[Endpoint]:
    """`mmbu simulate` with these flags, until the block ends. Ended by its process id."""
    command = [sys.executable, "-m", "mmbu_async.simulator", "--port", "0", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    pin(process.pid, SERVERS)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the simulator did not start: {' '.join(command)}")
        yield Endpoint(url=json.loads(line)["url"])
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def bare(latency_s: float = 0.0) -> list[str]:
    """Flags of the cheapest endpoint there is: the server must not be what is measured."""
    return ["--bare", "--latency", str(latency_s)]


def pin(pid: int, core: int) -> None:
    """Keep a process that has just started on one core; threads that it starts stay there too."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, {core})
