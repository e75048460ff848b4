"""Memory does not grow with the number of rows: peak resident size at 1,000 and at 100,000 streamed rows.

    python -m benchmarks.memory [--json FILE] [--quick]

The rows' images are small (2 KB) and shared: with large ones 100,000 rows would need 14 GB of disk, and what
could grow with the rows is everything but the images.
"""

from __future__ import annotations

from typing import Any

from benchmarks import measured
from benchmarks.scheme import Figure, Findings, Options, median, present
from benchmarks.servers import bare, endpoint
from benchmarks.splits import IMAGE_BYTES, Kind, noise_split, small_split

FEW, MANY = 1000, 100_000
CONCURRENCY = 64
KINDS: tuple[Kind, ...] = ("scored", "judged")


def measure(options: Options) -> Findings:
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    for kind in KINDS:
        few = _runs(kind, options.rows(FEW, 300), options, options.repeats)
        many = _runs(kind, options.rows(MANY, 3000), options, 1)
        peak, base = (median(one["peak_memory_mb"]["ended"] for one in runs) for runs in (many, few))
        figures += [
            Figure(what=f"peak memory, {kind}, {few[0]['rows']:,} rows", value=base, unit="MB"),
            Figure(what=f"peak memory, {kind}, {many[0]['rows']:,} rows", value=peak, unit="MB"),
            Figure(what=f"growth, {kind}", value=(peak / base - 1) * 100, unit="%", at_most=10),
        ]
        details[kind] = [*few, *many]
    large = _large(options)
    details["large images"] = large
    figures.append(
        Figure(
            what=f"peak memory, scored, {large['rows']:,} rows with images of 140 KB",
            value=large["peak_memory_mb"]["ended"],
            unit="MB",
        )
    )
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    f"Peak resident size of our process (VmHWM), concurrency {CONCURRENCY}, no latency. The images are 2 KB "
    "each and shared among rows; the last figure has large ones for comparison. `scored` rows take one call, "
    "`judged` rows two."
)


def _runs(kind: Kind, rows: int, options: Options, repeats: int) -> list[dict[str, Any]]:
    split = small_split(options.folder, [kind] * rows)
    with endpoint(*bare()) as server:
        return [
            measured.run(server, split, options.folder / "memory.sqlite", concurrency=CONCURRENCY).summary()
            for _ in range(repeats)
        ]


def _large(options: Options) -> dict[str, Any]:
    split = noise_split(options.folder, "scored", options.rows(5000, 400), image_bytes=IMAGE_BYTES)
    with endpoint(*bare()) as server:
        return measured.run(
            server, split, options.folder / "memory.sqlite", concurrency=CONCURRENCY
        ).summary()


def main() -> None:
    present("memory", measure, __doc__)


if __name__ == "__main__":
    main()
