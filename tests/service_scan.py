"""The API of a service held against its own description by schemathesis: no 500, nothing undescribed.

    python -m tests.service_scan [--examples N] [--seed N]

A service over a real scheduler, with a run that has ended and one that is paused, and the simulator as its
endpoint. Streams of events are left out: they have no end. So is the check that whatever fits the description
is accepted: settings can fit it and name a data set that is not there.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.service_kit import TOKEN, api
from tests.whole_service import Service, whole_service

OVER, HELD = "over", "held"
"""Runs that are there. The first is asked about: other names would say 404 and no more."""
LEFT_OUT = ("watch", "watch_all")
PHASES = "examples,coverage,fuzzing"


def scan(url: str, *, examples: int, seed: int = 1, phases: str = PHASES) -> subprocess.CompletedProcess[str]:
    """Its output says what was found; it ends with 0 where that is nothing."""
    program = Path(sys.executable).parent / "schemathesis"
    command = [str(program), "run", f"{url}{api(path='/openapi.json')}", "--seed", str(seed)]
    command += ["--max-examples", str(examples), "--phases", phases, "--no-color"]
    command += ["--header", f"Authorization: Bearer {TOKEN}", "--exclude-checks", "positive_data_acceptance"]
    command += ["--suppress-health-check", "all", "--generation-database", "none"]
    command += [part for name in LEFT_OUT for part in ("--exclude-operation-id", name)]
    with tempfile.TemporaryDirectory() as folder:
        settings = f'[parameters]\n"path.run" = "{OVER}"\n'
        (Path(folder) / "schemathesis.toml").write_text(settings, encoding="utf-8")
        return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


@contextmanager
def scanned_service(folder: Path) -> Iterator[Service]:
    """With runs in several states."""
    with whole_service(folder, token=TOKEN) as service:
        service.submit(OVER, limit=6)
        service.wait_for(OVER, "done")
        service.submit(HELD, limit=6)
        service.post(api(HELD, "/pause"))
        yield service


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.service_scan", description=__doc__)
    parser.add_argument("--examples", type=int, default=100, help="of each operation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--phases", default=PHASES, help="of schemathesis")
    flags = parser.parse_args(arguments)
    # Settings without a data set mean the hub's: what is not on this machine is not asked for.
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as folder, scanned_service(Path(folder)) as service:
        found = scan(service.url, examples=flags.examples, seed=flags.seed, phases=flags.phases)
    sys.stdout.write(found.stdout + found.stderr)
    return found.returncode


if __name__ == "__main__":
    sys.exit(main())
