"""The program and the simulator as processes, for tests that look at them from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
MINI = DATA / "mini_mmbu"
KEYS = {"OPENAI_API_KEY": "test-openai-key", "ANTHROPIC_API_KEY": "test-anthropic-key"}


@dataclass(frozen=True, slots=True)
class Simulated:
    """A simulator in a process of its own."""

    url: str
    log: Path

    def requests(self) -> list[dict[str, Any]]:
        """Finished requests, as the simulator itself saw them."""
        if not self.log.exists():
            return []
        # The simulator may be in the middle of a line: what counts is what has its line end.
        whole, _, _ = self.log.read_text().rpartition("\n")
        return [json.loads(line) for line in whole.split("\n") if line]

    def flags(self, endpoint: str = "openai") -> list[str]:
        """What points model and judge to it."""
        base = f"{self.url}/v1" if endpoint == "openai" else self.url
        return [
            *("--endpoint", endpoint, "--base-url", base),
            *("--judge-endpoint", endpoint, "--judge-base-url", base),
        ]


@contextmanager
def simulator(log: Path, *flags: str) -> Iterator[Simulated]:
    """Serve on a free port until the block ends."""
    command = [sys.executable, "-m", "mmbu_async.simulator", "--log", str(log), *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Simulated(url=json.loads(process.stdout.readline())["url"], log=log)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def start(*arguments: str, cwd: Path | None = None, environment: dict[str, str] | None = None) -> Any:
    """The program, running."""
    return _start(("-m", "mmbu_async", *arguments), cwd, environment)


def _start(arguments: Sequence[str], cwd: Path | None, environment: dict[str, str] | None) -> Any:
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        cwd=cwd,
        env={**_plain_environment(), **KEYS, **(environment or {})},
    )


def mmbu(
    *arguments: str,
    cwd: Path | None = None,
    environment: dict[str, str] | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """The program, run to its end."""
    process = start(*arguments, cwd=cwd, environment=environment)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"mmbu {' '.join(arguments)} did not end:\n{out}\n{err}") from None
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


SEVERAL = """
import contextlib, io, json, sys
from mmbu_async.cli.main import main

found = []
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    found.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""


def several(
    *commands: Sequence[str], cwd: Path | None = None, environment: dict[str, str] | None = None
) -> list[subprocess.CompletedProcess[str]]:
    """Commands one after the other in one process, which costs the start of one."""
    process = _start(("-c", SEVERAL, json.dumps(commands)), cwd, environment)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return [
        subprocess.CompletedProcess(command, code, said, complained)
        for command, (code, said, complained) in zip(commands, json.loads(out), strict=True)
    ]


def kill(process: Any) -> float:
    """SIGKILL; returns the moment, in Unix seconds."""
    process.send_signal(signal.SIGKILL)
    moment = time.time()
    process.communicate(timeout=30)
    return moment


def wait_until(condition: Any, process: Any, timeout: float = 60) -> bool:
    """Poll until the condition holds (True) or the process has ended (False)."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if condition():
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    raise AssertionError("waited in vain")


def _plain_environment() -> dict[str, str]:
    """This process's environment without settings or keys of whoever runs the tests."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MMBU_") and not name.endswith("_API_KEY")
    } | {"COLUMNS": "100", "NO_COLOR": "1"}
