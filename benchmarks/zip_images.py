"""Figures read out of one large archive: flat memory, and the cost of an image beside plain files.

    python -m benchmarks.zip_images [--json FILE] [--quick] [--mb 2048]

Builds an archive of the given size (2 GB; with --quick 50 MB) and some plain files in a temporary folder,
reads random members from eight threads as a run does, and deletes everything.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.child import peak_memory_kb
from benchmarks.scheme import Figure, Findings, Options, median, present
from mmbu_async.model import DataSpec, ImageRef
from mmbu_async.sources import open_data

FULL_MB, QUICK_MB = 2048, 50
FEW, MANY = 100, 10_000
"""Reads after which memory is looked at."""
THREADS = 8
MANY_MEMBERS = 150_000
"""As many as the archive of PMC-VQA has."""
IMAGE_BYTES = (20_000, 180_000)
"""Smallest and largest; 100 KB in the mean."""
SPEC = DataSpec(
    hub="",
    tables=("test.csv",),
    image_columns=("Figure_path",),
    image_folders=("images",),
    archives=("images.zip",),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What reading took, in a process of its own."""

    open_s: float
    few_mb: float
    """Most resident memory after FEW images."""
    many_mb: float
    """After all."""
    cpu_us: float
    """An image, user and system time of all threads."""
    wall_us: float
    read_mb: float


def measure(mb: int | None, options: Options) -> Findings:
    size = (mb or options.rows(FULL_MB, QUICK_MB)) * 2**20
    reads = options.rows(MANY, 1000)
    build(options.folder / "deflated", zipped(options.folder / "deflated", size, zipfile.ZIP_DEFLATED))
    build(options.folder / "stored", zipped(options.folder / "stored", size // 10, zipfile.ZIP_STORED))
    build(options.folder / "plain", files(options.folder / "plain", size // 10))
    ways: dict[str, Callable[[], Reading]] = {
        "archive, deflated": partial(apart, options.folder / "deflated", "source", reads),
        "archive, stored": partial(apart, options.folder / "stored", "source", reads),
        "plain files": partial(apart, options.folder / "plain", "source", reads),
        "zipfile's own reader, deflated": partial(apart, options.folder / "deflated", "zipfile", reads),
    }
    # One after the other and then again, so that a busy minute does not fall upon one way alone.
    results: dict[str, list[Reading]] = {name: [] for name in ways}
    for _ in range(options.repeats):
        for name, way in ways.items():
            results[name].append(way())
    archive = results["archive, deflated"]
    few, many = median(one.few_mb for one in archive), median(one.many_mb for one in archive)
    directory = many_members(options.folder / "members", options.rows(MANY_MEMBERS, 15_000))
    packed = (options.folder / "deflated" / "images.zip").stat().st_size
    return Findings(
        figures=[
            Figure(what="archive, deflated", value=packed / 2**20, unit="MB"),
            Figure(what=f"peak memory after {FEW:,} images", value=few, unit="MB"),
            Figure(what=f"peak memory after {reads:,} images", value=many, unit="MB"),
            Figure(what="growth", value=(many / few - 1) * 100, unit="%", at_most=10),
            *(
                Figure(what=f"CPU an image, {name}", value=median(one.cpu_us for one in found), unit="µs")
                for name, found in results.items()
            ),
            Figure(
                what="archive, stored, above plain files",
                value=median(one.cpu_us for one in results["archive, stored"])
                - median(one.cpu_us for one in results["plain files"]),
                unit="µs",
                at_most=200,
            ),
            Figure(what="opening the directory of that many members", value=directory.open_s, unit="s"),
            Figure(what="peak memory with that directory", value=directory.many_mb, unit="MB"),
        ],
        method=METHOD,
        details={name: [asdict(one) for one in found] for name, found in results.items()}
        | {"directory": asdict(directory)},
    )


METHOD = (
    f"Images of {IMAGE_BYTES[0] // 1000} to {IMAGE_BYTES[1] // 1000} KB, as hard to compress as JPEG is; "
    f"random members, {THREADS} threads, files in the page cache; each reading in a fresh process. The "
    "stored archive and the plain files are a tenth of the size. The last two figures are of an archive of "
    f"{MANY_MEMBERS:,} empty members, as many as PMC-VQA's has."
)


def build(folder: Path, names: Iterator[str]) -> None:
    """The table of a benchmark in the layout of PMC-VQA; drawing the names makes the images."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "test.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Figure_path", "Question"])
        writer.writerows([name, "What is shown?"] for name in names)


def zipped(folder: Path, size: int, method: int) -> Iterator[str]:
    with zipfile.ZipFile(folder / "images.zip", "w", method) as archive:
        for name, data in images(size):
            archive.writestr(f"images/{name}", data)
            yield name


def files(folder: Path, size: int) -> Iterator[str]:
    (folder / "images").mkdir(exist_ok=True)
    for name, data in images(size):
        (folder / "images" / name).write_bytes(data)
        yield name


def images(size: int) -> Iterator[tuple[str, bytes]]:
    """Pictures of `size` bytes together. One byte in four is small, so that deflate finds a per cent to
    take away, as it does with JPEG, and unpacking is not mere copying."""
    rng = np.random.default_rng(2026)
    pool = rng.integers(0, 256, 2**24, dtype=np.uint8)
    pool[::4] &= 63
    number = 0
    while size > 0:
        length = int(rng.integers(*IMAGE_BYTES))
        begin = int(rng.integers(0, len(pool) - length))
        yield f"PMC{number:07}_FIG1.jpg", pool[begin : begin + length].tobytes()
        number, size = number + 1, size - length


def many_members(folder: Path, count: int) -> Reading:
    """An archive of nothing but its directory."""

    def names() -> Iterator[str]:
        with zipfile.ZipFile(folder / "images.zip", "w") as archive:
            for number in range(count):
                name = f"PMC{number:07}_FIG1.jpg"
                archive.writestr(zipfile.ZipInfo(f"images/{name}"), b"")
                yield name

    build(folder, names())
    return apart(folder, "source", FEW)


def apart(folder: Path, way: str, reads: int) -> Reading:
    """Read in a fresh process: memory that was used once may never be given back."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(read, folder, way, reads).result()


def read(folder: Path, way: str, reads: int) -> Reading:
    with (folder / "test.csv").open(encoding="utf-8", newline="") as file:
        names = [row["Figure_path"] for row in csv.DictReader(file)]
    order = np.random.default_rng(7).integers(0, len(names), reads + FEW)
    began = time.process_time()
    get = with_zipfile(folder) if way == "zipfile" else with_source(folder)
    open_s = time.process_time() - began
    with ThreadPoolExecutor(THREADS) as pool:

        def take(numbers: NDArray[np.int64]) -> int:
            """A part for each thread: a future for each image would take more memory than reading it."""
            parts = [numbers[thread::THREADS] for thread in range(THREADS)]
            return sum(pool.map(lambda part: sum(get(names[number]) for number in part), parts))

        take(order[:FEW])
        few_kb = peak_memory_kb()
        began, cpu = time.perf_counter(), time.process_time()
        size = take(order[FEW:])
        cpu, wall = time.process_time() - cpu, time.perf_counter() - began
    return Reading(
        open_s=open_s,
        few_mb=few_kb / 1024,
        many_mb=peak_memory_kb() / 1024,
        cpu_us=cpu / reads * 1e6,
        wall_us=wall / reads * 1e6,
        read_mb=size / 2**20,
    )


def with_source(folder: Path) -> Callable[[str], int]:
    """As a run reads: name, archive or folder, bytes."""
    source = open_data(str(folder), SPEC)
    return lambda name: len(source.read_image(ImageRef(locator=name)))


def with_zipfile(folder: Path) -> Callable[[str], int]:
    """One handle for all threads; zipfile locks it while it reads."""
    archive = zipfile.ZipFile(folder / "images.zip")
    return lambda name: len(archive.read(f"images/{name}"))


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--mb", type=int, default=None)
    flags, others = parser.parse_known_args()
    sys.argv[1:] = others
    present("zip_images", partial(measure, flags.mb), __doc__)


if __name__ == "__main__":
    main()
