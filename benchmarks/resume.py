"""How soon a resumed run does something: from the start of the process to the first request.

    python -m benchmarks.resume [--json FILE] [--quick]

The store holds 100,000 finished rows, half of them judged, and ten that are open. Beside it a fresh run of
ten rows in an empty store: what that takes is start-up. The request is timed by the server that gets it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from benchmarks import measured
from benchmarks.machine import file_system
from benchmarks.measured import Measured
from benchmarks.scheme import Figure, Findings, Options, median, present
from benchmarks.servers import Endpoint, bare, endpoint
from benchmarks.splits import Kind, small_split

FINISHED, OPEN = 100_000, 10
REPEATS = 5
RUN = "resumed"


def measure(options: Options) -> Findings:
    finished = options.rows(FINISHED, 3000)
    store = _finished_store(options, finished)
    repeats = 2 if options.quick else REPEATS
    fresh = [_fresh(options) for _ in range(repeats)]
    resumed = [_resumed(options, store, finished) for _ in range(repeats)]
    start_up = median(one["first_request_s"] for one in fresh)
    first = median(one["first_request_s"] for one in resumed)
    figures = [
        Figure(what="first request of a fresh run of 10 rows", value=start_up, unit="s"),
        Figure(what=f"first request of a resume after {finished:,} rows", value=first, unit="s"),
        Figure(what="beyond start-up", value=first - start_up, unit="s", at_most=1),
    ]
    details = {"disk": file_system(options.folder), "fresh": fresh, "resumed": resumed}
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    "Wall time from just before the process is started until the simulator, in a process of its own, sees "
    f"the first request. The resumed run has {FINISHED:,} finished rows, half with verdicts, written by a "
    f"run of its own, and {OPEN} open ones. The file is in the page cache."
)


def _finished_store(options: Options, finished: int) -> Path:
    """A store that a real run filled; its last rows were left out by --limit."""
    store = options.folder / f"finished-{finished}.sqlite"
    split = _split(options, finished + OPEN)
    with endpoint(*bare()) as server:
        measured.fill(server, split, store, name=RUN, limit=finished)
    return store


def _split(options: Options, rows: int) -> Path:
    kinds: list[Kind] = ["judged" if n % 2 else "scored" for n in range(rows)]
    return small_split(options.folder, kinds)


def _fresh(options: Options) -> dict[str, Any]:
    log = _new_log(options)
    with endpoint("--blind", "--log", str(log)) as server:
        work = measured.run(server, _split(options, OPEN), options.folder / "fresh.sqlite")
    return _timed(work, log)


def _resumed(options: Options, finished_store: Path, finished: int) -> dict[str, Any]:
    store, log = options.folder / "resumed.sqlite", _new_log(options)
    measured.remove_store(store)
    shutil.copyfile(finished_store, store)
    try:
        with endpoint("--blind", "--log", str(log)) as server:
            work = measured.work(
                {"resume": RUN, "store": str(store), "changes": _changes(server, finished + OPEN)}
            )
    finally:
        measured.remove_store(store)
    return _timed(work, log)


def _changes(server: Endpoint, limit: int) -> dict[str, Any]:
    """A larger limit, and the port of today's server."""
    return {"limit": limit, "base_url": server.openai, "judge": {"base_url": server.url}}


def _timed(work: Measured, log: Path) -> dict[str, Any]:
    requests = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    first = min(one["arrived_at"] for one in requests)
    steps = {name: round(mark["at"] - work.started_at, 3) for name, mark in work.marks.items()}
    return {"first_request_s": round(first - work.started_at, 3), "requests": len(requests), "steps_s": steps}


def _new_log(options: Options) -> Path:
    log = options.folder / "resume.jsonl"
    log.unlink(missing_ok=True)
    return log


def main() -> None:
    present("resume", measure, __doc__)


if __name__ == "__main__":
    main()
