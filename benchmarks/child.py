"""The process that is measured: reads a job as JSON from standard input, works, prints what it used.

    echo '{"config": {"model": "m", ...}}' | python -m benchmarks.child

CPU time and memory are this process's alone. Clock readings are Unix seconds, so that they can be compared
with those of the process that started this one and with a server's log.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

MARKS: list[dict[str, Any]] = []


def mark(name: str) -> None:
    """Note the time, and the CPU (all threads together) and memory used so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    MARKS.append(
        {
            "name": name,
            "at": time.time(),
            "user_s": used.ru_utime,
            "system_s": used.ru_stime,
            # Of processes that were started here and have ended.
            "children_s": others.ru_utime + others.ru_stime,
            "peak_memory_kb": peak_memory_kb(),
        }
    )


def peak_memory_kb() -> int:
    """Most resident memory so far. The kernel's own count (ru_maxrss) may be that of the parent process."""
    try:
        status = Path("/proc/self/status").read_text("ascii").splitlines()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // 1024 if sys.platform == "darwin" else peak
    return int(next(line.split()[1] for line in status if line.startswith("VmHWM")))


def main() -> None:
    mark("entered")
    job = json.load(sys.stdin)
    os.environ.setdefault("OPENAI_API_KEY", "none")
    os.environ.setdefault("ANTHROPIC_API_KEY", "none")
    from mmbu_async import api
    from mmbu_async.config import build_config
    from mmbu_async.pipeline.monitor import Monitor
    from mmbu_async.pipeline.run import Stages

    mark("imported")
    samples: list[tuple[float, int, int]] = []

    async def watch(monitor: Monitor, stages: Stages) -> None:
        mark("engine began")
        concurrency = stages.infer.client.gate.concurrency.state
        try:
            while True:
                samples.append((time.time(), monitor.done, concurrency.in_flight))
                await asyncio.sleep(job["sample_s"])
        finally:
            samples.append((time.time(), monitor.done, concurrency.in_flight))
            mark("engine ended")

    if "resume" in job:
        result = api.resume_sync(job["resume"], store=Path(job["store"]), changes=job["changes"], watch=watch)
    else:
        result = api.evaluate_sync(build_config(job["config"]), watch=watch)
    mark("ended")
    report = {
        "marks": MARKS,
        "samples": samples,
        "counts": asdict(result.counts),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
