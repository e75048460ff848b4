"""The same images, server and cores for two other harnesses, and the ratios.

    python -m benchmarks.peers [--json FILE] [--quick]

evalscope and inspect_ai are installed into throw-away environments, by pip, and used by their public API with
their defaults. Where one cannot be had the table says so.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.environments import install
from benchmarks.machine import REPOSITORY
from benchmarks.measured import remove_store
from benchmarks.scheme import Figure, Findings, Options, median, present
from benchmarks.servers import OURS, Endpoint, bare, endpoint, pin
from benchmarks.splits import noise_split

FEW, MANY = 200, 2000
CONCURRENCY = 64
CHOICES = ("DAPI", "Giemsa", "DAB", "hematoxylin")
SCRIPTS = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another harness."""

    package: str
    script: str
    aim: float
    """How many times our CPU a row it should take."""


PEERS = (
    Peer(package="evalscope", script="peer_evalscope.py", aim=10),
    Peer(package="inspect_ai", script="peer_inspect.py", aim=35),
)

Cost = dict[str, float]
"""`cpu_s` and `wall_s` of one process from start to end, and the `rows` it worked on."""


def measure(options: Options) -> Findings:
    few, many = options.rows(FEW, 50), options.rows(MANY, 250)
    splits = [noise_split(options.folder, "scored", rows) for rows in (few, many)]
    details: dict[str, Any] = {}
    figures: list[Figure] = []
    with endpoint(*bare()) as server, tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        ours = [_costs(splits, partial(_ours, server, scratch)) for _ in range(options.repeats)]
        details["mmbu-async"] = ours
        cpu, speed = median(map(_cpu_ms, ours)), median(map(_rows_a_second, ours))
        figures += _figures("mmbu-async", cpu, speed)
        for peer in PEERS:
            python, version = install(Path(scratch), peer.package, "openai")
            name = f"{peer.package} {version}"
            if python is None:
                figures.append(Figure(what=f"CPU a row, {peer.package}", value=None, unit="ms", note=version))
                continue
            costs = _costs(splits, partial(_theirs, peer, python, server, scratch))
            details[name] = costs
            figures += _figures(name, _cpu_ms(costs), _rows_a_second(costs))
            figures += [
                Figure(
                    what=f"times our CPU a row, {name}",
                    value=_cpu_ms(costs) / cpu,
                    unit="x",
                    at_least=peer.aim,
                ),
                Figure(
                    what=f"times its rows a second, {name}", value=speed / _rows_a_second(costs), unit="x"
                ),
            ]
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    f"Each harness evaluates {FEW:,} and {MANY:,} rows with images of 140 KB against the same bare endpoint, "
    f"pinned to the same core, at most {CONCURRENCY} requests at once, in a process of its own from start to "
    "end. CPU and time a row are the difference of the two runs over the difference in rows, so that no "
    "start-up is in them. evalscope runs its pmc_vqa on a local copy that holds these images, inspect_ai "
    "multiple_choice over a list of samples; we run a scored-only split with the checkpoint under FULL. "
    "Replies are the same fixed text for all."
)


def _figures(name: str, cpu: float, speed: float) -> list[Figure]:
    return [
        Figure(what=f"CPU a row, {name}", value=cpu, unit="ms"),
        Figure(what=f"rows a second, {name}", value=speed, unit="rows/s"),
    ]


def _costs(splits: list[Path], run: Callable[[Path], Cost]) -> tuple[Cost, Cost]:
    few, many = (run(split) for split in splits)
    return few, many


def _cpu_ms(costs: tuple[Cost, Cost]) -> float:
    few, many = costs
    return (many["cpu_s"] - few["cpu_s"]) / (many["rows"] - few["rows"]) * 1e3


def _rows_a_second(costs: tuple[Cost, Cost]) -> float:
    few, many = costs
    return (many["rows"] - few["rows"]) / (many["wall_s"] - few["wall_s"])


def _ours(server: Endpoint, scratch: str, split: Path) -> Cost:
    store = Path(scratch) / "ours.sqlite"
    config = {
        "model": "bare",
        "base_url": server.openai,
        "data": str(split),
        "store": str(store),
        "concurrency": CONCURRENCY,
        "judge": {"base_url": server.url},
    }
    job = json.dumps({"config": config, "sample_s": 60})
    try:
        return _cost([sys.executable, "-m", "benchmarks.child"], len(_rows(split)), job, Path(scratch))
    finally:
        remove_store(store)


def _theirs(peer: Peer, python: Path, server: Endpoint, scratch: str, split: Path) -> Cost:
    rows = _rows(split)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        _lay_out(Path(folder), split, rows)
        command = [str(python), str(SCRIPTS / peer.script), folder, server.openai, str(CONCURRENCY)]
        return _cost([*command, str(Path(folder) / "out")], len(rows), "", Path(folder))


def _cost(command: list[str], rows: int, job: str, folder: Path) -> Cost:
    """Run to the end on our core. CPU is user and system time of the process and of what it waited for."""
    log = folder / "output.txt"
    began = time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True
        )
        pin(process.pid, OURS)
        assert process.stdin is not None
        process.stdin.write(job)
        process.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{log.read_text()[-3000:]}")
    return {"cpu_s": used.ru_utime + used.ru_stime, "wall_s": time.monotonic() - began, "rows": rows}


def _rows(split: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (split / "metadata.jsonl").read_text("utf-8").splitlines()]


def _lay_out(folder: Path, split: Path, rows: list[dict[str, str]]) -> None:
    """The same questions and images as both harnesses want them."""
    with zipfile.ZipFile(folder / "images.zip", "w", zipfile.ZIP_STORED) as archive:
        for row in rows:
            archive.write(split / row["file_name"], row["file_name"])
    with (folder / "test_clean.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(
            ["Figure_path", "Question", "Answer", *(f"Choice {letter}" for letter in "ABCD"), "Answer_label"]
        )
        for row in rows:
            options = [f" {letter}:{text} " for letter, text in zip("ABCD", CHOICES, strict=True)]
            table.writerow([Path(row["file_name"]).name, row["question"], CHOICES[0], *options, "A"])
    samples = [
        {
            "question": row["question"],
            "choices": CHOICES,
            "target": "A",
            "image": str((split / row["file_name"]).resolve()),
        }
        for row in rows
    ]
    (folder / "rows.json").write_text(json.dumps(samples), encoding="utf-8")


def main() -> None:
    present("peers", measure, __doc__)


if __name__ == "__main__":
    main()
