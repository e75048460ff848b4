"""How long a page of the row browser takes over a run of 78,000 rows, and what it does to a run that writes.

    python -m benchmarks.row_browser [--json FILE] [--quick] [--folder FOLDER]

The store is made first, through the store's own doors (see big_run.py), and is no part of what is measured.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
from PIL import Image

from benchmarks.big_run import FAMILIES, ROWS, VALUES_OF, big_run
from benchmarks.machine import REPOSITORY
from benchmarks.scheme import Figure, Findings, Options, median, present
from benchmarks.stores import call
from mmbu_async.store import LeaseOwner, Store, Writer

AIM_MS = 100
ONE, OTHER, LIVE = "one", "other", "live"
SEEN = 40
"""Rows whose images are looked at."""
AT_ONCE = 64
"""Replies that wait for their commit at the same time."""


def measure(options: Options) -> Findings:
    rows = options.rows(ROWS, 2_000)
    store = _store(options.folder, rows)
    times = 3 if options.quick else 12
    details: dict[str, Any] = {}
    figures: list[Figure] = []
    with _browser(store, ONE, OTHER) as site:
        # The program itself begins to read when the first page is asked for.
        details["first page, all rows read"] = [site.get("")]
        jobs: dict[str, Sequence[Sequence[str]]] = {
            name: [make(n) for n in range(times)] for name, make in _jobs(rows).items()
        }
        for name, each in jobs.items():
            first, again = [], []
            for first_path, *more in each:
                first.append(site.get(first_path))
                again += [site.get(path) for path in more]
            details[name] = {"first": first, "again": again}
            what = f"{name}, {rows:,} rows"
            figures.append(Figure(what=what, value=median(first), unit="ms", at_most=AIM_MS))
            if name in SLOWER_AT_FIRST:
                figures.append(Figure(what=f"{what}, its further pages", value=median(again), unit="ms"))
        peak = site.peak_memory_mb()
    figures.insert(
        0,
        Figure(
            what=f"first page after the start, {rows:,} rows of two runs read",
            value=details["first page, all rows read"][0] / 1000,
            unit="s",
        ),
    )
    figures.append(Figure(what="peak memory of the program", value=peak, unit="MB"))
    details["writer"] = waits = _writer(store, options.rows(20_000, 1_000))
    for name, milliseconds in waits.items():
        figures.append(
            Figure(what=f"wait for a commit, p99, {name}", value=milliseconds["p99_ms"], unit="ms")
        )
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    "`mmbu view one other` in a process of its own, asked over one kept connection; wall time from the "
    "request to the last byte of the page. Each line is the median of twelve different filters, values or "
    "rows that were not asked for before; further pages of a filter come from the keys that it left. "
    f"{sum(VALUES_OF.values())} values of {len(VALUES_OF)} attributes are drawn independently, so that "
    "hardly two rows are alike. Images are PNG of 512 x 512. The wait for a commit is that of replies to "
    f"another run of the same store, {AT_ONCE} at a time: alone, and while pages are read without a pause "
    "and the browser reads the runs anew whenever they are behind."
)

SLOWER_AT_FIRST = ("filter by a stratum", "search that finds few rows", "search that finds all rows")


def _jobs(rows: int) -> dict[str, Callable[[int], Sequence[str]]]:
    """Name -> what is asked for the n-th time: a page that is new to the program, and more of the same."""

    def listed(n: int, **wanted: str) -> list[str]:
        path = f"?pictures=0&{urlencode(wanted, quote_via=quote)}"
        return [path, f"{path}&after={rows // 3 + n}", f"{path}&before={rows - n}"]

    values = [
        f"{name}={name.removeprefix('metadata_')} {value}"
        for name in ("metadata_topic", "metadata_modality", "source_dataset")
        for value in range(8)
    ]
    outcomes = ("right", "wrong")
    keys = np.random.default_rng(5).integers(1, rows, 500).tolist()
    return {
        "page of all rows": lambda n: [f"?pictures=0&after={keys[n]}"],
        "filter by family and outcome": lambda n: listed(
            n, family=FAMILIES[n % 5], outcome=outcomes[n // 5 % 2], how=("tag", "untagged")[n // 10 % 2]
        ),
        "filter by a stratum": lambda n: listed(n, stratum=values[n]),
        "filter by flip, reply and family": lambda n: listed(
            n, flip=("gained", "lost")[n % 2], finish=("length", "stop")[n // 2 % 2], family=FAMILIES[n % 5]
        ),
        "search that finds few rows": lambda n: listed(n, q=f"row-{7 * n + 123}"),
        "search that finds all rows": lambda n: listed(n, q="the darker ones belong"[: 22 - n]),
        "row with its image": lambda n: [f"row?key={1 + n}"],
        "next row inside of a filter": lambda n: [f"row?outcome=wrong&key={keys[n + 100]}"],
        "small image of a list": lambda n: [f"image?size=small&n=0&key={1 + n}"],
    }


class _Site:
    """The program, and one connection to it."""

    def __init__(self, address: str, process: subprocess.Popen[str]) -> None:
        self.address = address
        self._process = process
        place = urlsplit(address)
        assert place.hostname is not None
        self._connection = http.client.HTTPConnection(place.hostname, place.port, timeout=120)

    def get(self, path: str) -> float:
        """Milliseconds until the last byte."""
        begun = time.perf_counter()
        self._connection.request("GET", f"/{path}")
        response = self._connection.getresponse()
        body = response.read()
        took = (time.perf_counter() - begun) * 1000
        if response.status != 200:
            raise SystemExit(f"{path}: {response.status} {body[:2000]!r}")
        return took

    def peak_memory_mb(self) -> float | None:
        try:
            lines = Path(f"/proc/{self._process.pid}/status").read_text("ascii").splitlines()
        except OSError:
            return None
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


@contextmanager
def _browser(store: Path, *runs: str) -> Iterator[_Site]:
    command = [sys.executable, "-m", "mmbu_async", "view", *runs, "--store", str(store), "--no-open"]
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = next(word for word in process.stdout.readline().split() if word.startswith("http://"))
        yield _Site(address, process)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _store(folder: Path, rows: int) -> Path:
    """Two runs over the same rows, with images for those that are looked at."""
    store = folder / f"rows-{rows}.sqlite"
    data = folder / "rows-data"
    big_run(store, name=ONE, rows=rows)
    big_run(store, name=OTHER, rows=rows, seed=1)
    (data / "images").mkdir(parents=True, exist_ok=True)
    (data / "metadata.jsonl").write_text('{"unique_id": "row-0"}\n', encoding="utf-8")
    random = np.random.default_rng(0)
    for number in range(SEEN):
        pixels = random.integers(0, 256, (512, 512), dtype=np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        (data / "images" / f"{number}.png").write_bytes(file.getvalue())
    with Store.open(store) as opened:
        for name in (ONE, OTHER):
            run = opened.run(name)
            settings = {"model": run.model, "data": str(data.absolute())}
            opened.set_run_config(run.id, {**run.config, **settings})
    return store


def _writer(store: Path, replies: int) -> dict[str, dict[str, float]]:
    """How long replies wait for their commit, without and with a browser that is used meanwhile."""
    found = {"alone": asyncio.run(_write(store, f"{LIVE}-alone", replies))}
    with _browser(store, ONE, OTHER) as site:
        site.get("")
        stop = threading.Event()
        reader = threading.Thread(target=_read_on, args=(site, stop))
        reader.start()
        try:
            found["beside a busy browser"] = asyncio.run(_write(store, f"{LIVE}-beside", replies))
        finally:
            stop.set()
            reader.join()
    return found


def _read_on(site: _Site, stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        site.get(f"?pictures=0&q=row-{number}")
        site.get(f"row?key={1 + number % SEEN}")


async def _write(path: Path, name: str, replies: int) -> dict[str, float]:
    with Store.open(path) as store:
        base = store.run(ONE)
        run = store.create_run(
            name=f"{name}-{time.time_ns()}",
            benchmark=base.benchmark,
            dataset_id=base.dataset.id,
            model="live",
            endpoint="openai",
            host="localhost",
            identity={},
            config={},
            package_version="0",
            now=time.time(),
        )
        store.select(run.id, None, replies)
        owner = LeaseOwner.current()
        session = store.begin_session(
            run.id, kind="run", owner=owner, package_version="0", config={}, now=time.time()
        )
    waits: list[float] = []
    keys = iter(range(1, replies + 1))

    async def work(writer: Writer) -> None:
        for key in keys:
            begun = time.perf_counter()
            await writer.write(call(run.id, session, key))
            waits.append((time.perf_counter() - begun) * 1000)

    begun = time.perf_counter()
    async with Writer.open(path) as writer, asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work(writer))
    took = time.perf_counter() - begun
    return {
        "p50_ms": float(np.quantile(waits, 0.5)),
        "p99_ms": float(np.quantile(waits, 0.99)),
        "longest_ms": max(waits),
        "replies_per_s": replies / took,
    }


def main() -> None:
    present("row_browser", measure, __doc__)


if __name__ == "__main__":
    main()
