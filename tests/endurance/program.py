"""The program under test as a process, and what can be done to it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tests.endurance.endpoint import REPOSITORY

PRELOAD = Path(__file__).parent / "preload"
KEYS = {
    "OPENAI_API_KEY": "endurance-openai-key",
    "AZURE_OPENAI_API_KEY": "endurance-azure-key",
    "ANTHROPIC_API_KEY": "endurance-anthropic-key",
    "GEMINI_API_KEY": "endurance-gemini-key",
}
POLL_S = 0.01


def faketime() -> Path | None:
    """libfaketime where it is installed (Debian's package of that name): it shifts the clock below Python."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return found[0] if found else None


class Clock:
    """The wall clock of the program under test. Its monotonic clocks are real, as when a clock is set."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self._library = faketime()
        self.jump(0.0)

    @property
    def kind(self) -> str:
        return "libfaketime or time.time" if self._library else "time.time"

    def jump(self, seconds: float) -> None:
        """So far from the real time, from now on."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{seconds:+.3f}", "ascii")
        fresh.replace(self._file)

    def environment(self, *, below_python: bool) -> dict[str, str]:
        """`time.time` alone is shifted, or where libfaketime is there and wanted, what lies below it."""
        if self._library is None or not below_python:
            return {"ENDURANCE_CLOCK": str(self._file)}
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }


class Program:
    """One start of `mmbu`. Its output goes to files, so that no full pipe holds it up."""

    def __init__(self, arguments: Sequence[str], *, said: Path, environment: dict[str, str]) -> None:
        self.arguments = tuple(arguments)
        self._out, self._err = said.with_suffix(".out"), said.with_suffix(".err")
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mmbu_async", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=REPOSITORY,
                env={**_plain_environment(), **KEYS, "PYTHONPATH": str(PRELOAD), **environment},
            )
        self.most_memory_mb = 0.0
        """Largest resident size that was seen."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    @property
    def out(self) -> str:
        return self._out.read_text("utf-8", "replace")

    @property
    def err(self) -> str:
        return self._err.read_text("utf-8", "replace")

    def signal(self, number: signal.Signals) -> None:
        if self.code is None:
            self._look()
            self._process.send_signal(number)

    def limit(self, what: int, soft: int | None) -> None:
        """Set a soft limit of the running process; None: as high as allowed."""
        with suppress(ProcessLookupError):
            _, hard = resource.prlimit(self.pid, what)
            resource.prlimit(self.pid, what, (hard if soft is None else soft, hard))

    def open_files(self) -> int:
        """The highest file descriptor that it has open, and one."""
        with suppress(OSError):
            return max((int(file.name) for file in Path(f"/proc/{self.pid}/fd").iterdir()), default=0) + 1
        return 0

    def moments(self, seconds: float) -> Iterator[None]:
        """A turn every few milliseconds until the time is over or the program has ended."""
        deadline = time.monotonic() + seconds
        while self.code is None and time.monotonic() < deadline:
            yield
            self._look()
            time.sleep(POLL_S)

    def wait(self, seconds: float) -> bool:
        """Whether it ended by itself."""
        for _ in self.moments(seconds):
            pass
        return self.code is not None

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Whether the condition came true while the program ran."""
        return any(condition() for _ in self.moments(seconds))

    def end(self) -> None:
        """Nothing is left running."""
        if self.code is None:
            self._process.kill()
        self._process.wait()

    def _look(self) -> None:
        with suppress(OSError):
            for line in Path(f"/proc/{self.pid}/status").read_text("ascii", "replace").splitlines():
                if line.startswith("VmHWM:"):
                    self.most_memory_mb = max(self.most_memory_mb, int(line.split()[1]) / 1024)


def _plain_environment() -> dict[str, str]:
    """This process's environment without settings, keys or proxies of whoever runs the suite."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MMBU_", "ENDURANCE_", "PYTHON"))
        and not name.endswith("_API_KEY")
        and not name.lower().endswith("_proxy")
    } | {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
