"""What one request costs: `mmbu bench` and `mmbu run` beside the openai SDK and httpx.

    python -m benchmarks.clients [--json FILE] [--quick]

All send one image of 100 KB, again and again, and read the reply. The others are installed into a throw-away
environment, by pip.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.environments import install
from benchmarks.machine import REPOSITORY
from benchmarks.scheme import Figure, Findings, Options, median, present
from benchmarks.servers import OURS, bare, endpoint, pin
from benchmarks.splits import noise_images

IMAGE_BYTES = 100_000
CONCURRENCIES = (64, 256, 1000)
REQUESTS, THEIRS = 5000, 1000
"""Of ours, and of those that cost tens of times as much each."""
STREAMS = 64
TOKENS = 50
TOKENS_A_SECOND = 50
TRUE_FIRST_TOKEN_S = 0.02
HERE = Path(__file__).resolve().parent
BENCH, BUST, RUN = "mmbu bench", "mmbu bench, each body anew", "mmbu run"


def measure(options: Options) -> Findings:
    image = str(noise_images(options.folder / "one", 1, IMAGE_BYTES)[0])
    details: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        python, version = install(Path(scratch), "openai", "uvloop", "httpx")
        sdk = f"openai SDK {version}"
        ways = {
            BENCH: ([sys.executable, "-m", "benchmarks.client_bench"], ["plain"]),
            BUST: ([sys.executable, "-m", "benchmarks.client_bench"], ["bust"]),
            RUN: ([sys.executable, "-m", "benchmarks.client_ours"], []),
        }
        if python is not None:
            ways[sdk] = ([str(python), str(HERE / "client_openai.py")], [])
            ways["httpx"] = ([str(python), str(HERE / "client_httpx.py")], [])
        with endpoint(*bare()) as server:
            for name, (command, last) in ways.items():
                requests = options.rows(THEIRS if name in (sdk, "httpx") else REQUESTS, 500)
                for concurrency in CONCURRENCIES:
                    arguments = [server.openai, image, str(concurrency), str(requests)]
                    details[f"{name}, {concurrency}"] = [
                        _run([*command, *arguments, *last]) for _ in range(options.repeats)
                    ]
        details |= _streams(options, image, None if python is None else str(python))
    figures = [*_costs(ways, details), *_ratios(sdk, details), *_stream_figures(details)]
    if python is None:
        figures.append(Figure(what="CPU a request, openai SDK", value=None, unit="ms", note=version))
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    "User and system time of the process over its requests, connections opened before, on uvloop, against "
    "the bare endpoint on the other core. Building the request, HTTP, and reading the reply are in it; of "
    "`mmbu bench` also schedule, stopwatch and record, of `mmbu run` limits, retries and the image's "
    "SHA-256. A bench makes its bodies before it measures; 'each body anew' has a few other pixels and a "
    f"number in each. Streams: {STREAMS} at once, begun one after the other over a second, {TOKENS} tokens "
    f"at {TOKENS_A_SECOND} a second from the whole simulator, whose first token comes "
    f"{TRUE_FIRST_TOKEN_S * 1e3:.0f} ms after it has read the request."
)


def _streams(options: Options, image: str, python: str | None) -> dict[str, Any]:
    flags = ["--latency", str(TRUE_FIRST_TOKEN_S), "--tokens-per-second", str(TOKENS_A_SECOND)]
    requests = str(STREAMS * options.rows(6, 2))
    found: dict[str, Any] = {}
    with endpoint(*flags, "--reply-tokens", str(TOKENS), "--blind") as server:
        arguments = [server.openai, image, str(STREAMS), requests]
        ours = [sys.executable, "-m", "benchmarks.client_bench", *arguments, "stream"]
        found["streams, mmbu bench"] = [_run(ours) for _ in range(options.repeats)]
        if python is not None:
            theirs = [python, str(HERE / "client_openai_stream.py"), *arguments]
            found["streams, openai SDK"] = [_run(theirs) for _ in range(options.repeats)]
    return found


def _costs(ways: Iterable[str], details: dict[str, Any]) -> list[Figure]:
    return [
        Figure(
            what=f"CPU a request, {name}, {concurrency:,} at once",
            value=median(one["cpu_ms"] for one in details[f"{name}, {concurrency}"]),
            unit="ms",
        )
        for name in ways
        for concurrency in CONCURRENCIES
    ]


def _ratios(sdk: str, details: dict[str, Any]) -> list[Figure]:
    found = []
    for concurrency in CONCURRENCIES:
        if f"{sdk}, {concurrency}" in details:
            ours, theirs = (
                median(one["cpu_ms"] for one in details[f"{name}, {concurrency}"]) for name in (BENCH, sdk)
            )
            found.append(
                Figure(
                    what=f"times the openai SDK's requests a CPU second, {concurrency:,} at once",
                    value=theirs / ours,
                    unit="x",
                    at_least=20.0 if concurrency == 256 else None,
                )
            )
    found.append(
        Figure(
            what="requests a second on one core, mmbu bench, 256 at once",
            value=median(one["requests_a_second"] for one in details[f"{BENCH}, 256"]),
            unit="requests/s",
        )
    )
    return found


def _stream_figures(details: dict[str, Any]) -> list[Figure]:
    found = []
    for name in ("mmbu bench", "openai SDK"):
        runs = details.get(f"streams, {name}")
        if runs is None:
            continue
        ours = name == "mmbu bench"
        found += [
            Figure(
                what=f"CPU an event of a stream, {name}",
                value=median(one["cpu_s"] / one["events"] * 1e6 for one in runs),
                unit="µs",
                at_most=50.0 if ours else None,
            ),
            Figure(
                what=f"time to first token, {name}, median ({TRUE_FIRST_TOKEN_S * 1e3:.0f} ms are true)",
                value=median(one["first_token_p50_s"] for one in runs) * 1e3,
                unit="ms",
                at_most=TRUE_FIRST_TOKEN_S * 1e3 + 10 if ours else None,
            ),
            Figure(
                what=f"time to first token, {name}, p99",
                value=median(one["first_token_p99_s"] for one in runs) * 1e3,
                unit="ms",
            ),
        ]
    return found


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
