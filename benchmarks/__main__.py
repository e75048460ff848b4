"""All benchmarks, one after the other.

    python -m benchmarks [--only NAME ...] [--quick] [--out FOLDER] [--folder FOLDER]

Results go to benchmarks/results/NAME.json; `python -m benchmarks.table` makes docs/benchmarks.md of them.
Nothing else should run on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import REPOSITORY

NAMES = (
    *("pipeline", "checkpointing", "limits", "resume", "memory", "iou", "masks", "zip_images"),
    *("statistics", "html_report", "row_browser", "service", "service_limits", "exports", "clients"),
    *("bench_precision", "bench_truth", "dask", "peers"),
)
RESULTS = Path(__file__).resolve().parent / "results"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES)
    )
    parser.add_argument(
        "--quick", action="store_true", help="few rows, one repeat: only shows that they work"
    )
    parser.add_argument("--out", type=Path, default=None, help="where the JSON goes")
    parser.add_argument(
        "--folder", type=Path, default=None, help="for images and stores (default: temporary)"
    )
    flags = parser.parse_args()
    out = flags.out or (Path(tempfile.gettempdir()) / "mmbu-benchmarks-quick" if flags.quick else RESULTS)
    failed = []
    with tempfile.TemporaryDirectory(prefix="mmbu-benchmark-") as scratch:
        for name in flags.only:
            print(f"\n== {name}", flush=True)
            command = [sys.executable, "-m", f"benchmarks.{name}", "--json", str(out / f"{name}.json")]
            command += ["--folder", str(flags.folder or scratch), *(["--quick"] if flags.quick else [])]
            if subprocess.run(command, cwd=REPOSITORY).returncode:
                failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return len(failed) > 0


if __name__ == "__main__":
    sys.exit(main())
