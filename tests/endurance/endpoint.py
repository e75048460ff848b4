"""The simulator as a process that can die and come back at the same address."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.endurance.plan import OPINION, Episode, Plan

REPOSITORY = Path(__file__).parents[2]
HOST = "127.0.0.1"
STARTS = 20
"""Tries at the same port: the system may have lent it to somebody for a moment."""


class Endpoint:
    """One address; each start has a log of its own."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder = folder
        self._plan = plan
        self._port = _free_port()
        self._process: subprocess.Popen[str] | None = None
        self._flags: list[str] = []
        self._seed = 0
        self._name = ""
        self._logs: list[Path] = []

    def url(self, *, named: bool = False) -> str:
        """The address, by number or by a name that has to be looked up."""
        return f"http://{'endpoint.test' if named else HOST}:{self._port}"

    def begin(self, name: str, episode: Episode | None) -> None:
        """Serve with an episode's troubles; None: with the character of the model alone."""
        rules = [
            f"{fault.value}@{'judge' if fault is OPINION else 'model'}=text:{mark(row)}"
            for row, fault in self._plan.marked.items()
        ]
        self._flags = ["--latency", self._plan.latency, "--drip-interval-s", "0.2", "--blind"]
        self._seed = self._plan.seed
        if episode is not None:
            rules += episode.faults
            self._seed = episode.server_seed * 10
            self._flags += [
                *("--retry-after-s", str(episode.retry_after_s)),
                *("--retry-after-style", episode.retry_after_style),
                *("--stall-s", str(episode.stall_s)),
            ]
        else:
            self._flags[1] = "0.01"
        for rule in rules:
            self._flags += ["--fault", rule]
        self._logs = []
        self._name = name
        self.start()

    def start(self) -> None:
        """Once more, with what was set by `begin` and another seed: request ids are never used twice."""
        log = self._folder / f"{self._name}-{len(self._logs)}.jsonl"
        log.touch()
        self._logs.append(log)
        command = [sys.executable, "-m", "mmbu_async.simulator", *self._flags, "--log", str(log)]
        command += ["--seed", str(self._seed + len(self._logs))]
        for _ in range(STARTS):
            process = subprocess.Popen(
                [*command, "--port", str(self._port)], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
            )
            assert process.stdout is not None
            if line := process.stdout.readline():
                assert json.loads(line)["url"] == self.url()
                self._process = process
                return
            process.wait()
        raise RuntimeError(f"the simulator cannot listen on port {self._port} again")

    def stop(self, *, kill: bool = False) -> None:
        """In good order every request that had come is in the log; by SIGKILL those under way are not."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        process.communicate(timeout=30)

    @property
    def ended(self) -> int:
        """Requests in the logs since `begin`."""
        return sum(log.read_bytes().count(b"\n") for log in self._logs)

    def records(self) -> list[dict[str, Any]]:
        """The logs since `begin`."""
        return [json.loads(line) for log in self._logs for line in whole_lines(log)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def mark(row: int) -> str:
    """Words in the question of a row that the model answers in its own way."""
    return f"(case {row:03d})"


def whole_lines(log: Path) -> Sequence[str]:
    """What has its line end: a server that was killed may have left half a line."""
    return [line for line in log.read_text("utf-8").rpartition("\n")[0].split("\n") if line]
