"""What one call costs: our endpoint client beside the openai SDK.

    python -m benchmarks.clients [--json FILE] [--quick]

Both build the request from the bytes of one image of 140 KB, and read the reply. The SDK is installed into a
throw-away environment, by pip.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.environments import install
from benchmarks.machine import REPOSITORY
from benchmarks.scheme import Figure, Findings, Options, median, present
from benchmarks.servers import OURS, bare, endpoint, pin
from benchmarks.splits import IMAGE_BYTES, noise_images

CONCURRENCIES = (64, 1000)
REQUESTS = 5000
SCRIPT = Path(__file__).resolve().parent / "client_openai.py"


def measure(options: Options) -> Findings:
    image = str(noise_images(options.folder / "one", 1, IMAGE_BYTES)[0])
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    with endpoint(*bare()) as server, tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        ways = {"our client": [sys.executable, "-m", "benchmarks.client_ours"]}
        python, version = install(Path(scratch), "openai", "uvloop")
        if python is not None:
            ways[f"openai SDK {version}"] = [str(python), str(SCRIPT)]
        else:
            figures.append(Figure(what="CPU a request, openai SDK", value=None, unit="ms", note=version))
        for name, command in ways.items():
            for concurrency in CONCURRENCIES:
                arguments = [server.openai, image, str(concurrency), str(options.rows(REQUESTS, 1000))]
                runs = [_run([*command, *arguments]) for _ in range(options.repeats)]
                details[f"{name}, {concurrency}"] = runs
                figures.append(
                    Figure(
                        what=f"CPU a request, {name}, {concurrency:,} at once",
                        value=median(one["cpu_ms"] for one in runs),
                        unit="ms",
                    )
                )
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    "User and system time of the process over its requests, connections opened before, on uvloop, against "
    "the bare endpoint on the other core. Base64, JSON, SHA-256 of the image (ours alone), HTTP, limits, "
    "retries (ours) and reading the reply are in it."
)


def _run(command: list[str]) -> dict[str, float]:
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    pin(process.pid, OURS)
    output, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with code {process.returncode}")
    found: dict[str, float] = json.loads(output)
    return found


def main() -> None:
    present("clients", measure, __doc__)


if __name__ == "__main__":
    main()
