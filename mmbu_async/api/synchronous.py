"""Twins for callers without an event loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from mmbu_async.api.benching import bench
from mmbu_async.api.running import RunResult, call_back, evaluate, rejudge, resume
from mmbu_async.bench.measuring import Tell
from mmbu_async.bench.measuring import silent as quiet
from mmbu_async.bench.session import Ended as BenchEnded
from mmbu_async.bench.spec import Spec
from mmbu_async.config import JudgeConfig, RunConfig
from mmbu_async.model import Json
from mmbu_async.pipeline.progress import silent
from mmbu_async.pipeline.run import Watch

T = TypeVar("T")


def run_sync(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end on a fast event loop."""
    if sys.platform == "win32":
        return asyncio.run(main())
    import uvloop

    return uvloop.run(main())


def evaluate_sync(
    config: RunConfig, *, new_run: bool = False, watch: Watch = silent, check: bool = True
) -> RunResult:
    """`evaluate` for callers without an event loop."""
    return run_sync(lambda: evaluate(config, new_run=new_run, watch=watch, check=check))


def resume_sync(
    run: str,
    *,
    store: Path = Path("mmbu.sqlite"),
    changes: Mapping[str, Json] | None = None,
    watch: Watch = silent,
    check: bool = True,
) -> RunResult:
    """`resume` for callers without an event loop."""
    return run_sync(lambda: resume(run, store=store, changes=changes, watch=watch, check=check))


def rejudge_sync(
    run: str,
    *,
    store: Path = Path("mmbu.sqlite"),
    judge: JudgeConfig | None = None,
    changes: Mapping[str, Json] | None = None,
    failed: bool = False,
    watch: Watch = silent,
    check: bool = True,
) -> RunResult:
    """`rejudge` for callers without an event loop."""
    return run_sync(
        lambda: rejudge(
            run, store=store, judge=judge, changes=changes, failed=failed, watch=watch, check=check
        )
    )


def call_back_sync(
    run: str, *, store: Path = Path("mmbu.sqlite"), watch: Watch = silent, check: bool = True
) -> RunResult:
    """`call_back` for callers without an event loop."""
    return run_sync(lambda: call_back(run, store=store, watch=watch, check=check))


def bench_sync(spec: Spec, *, tell: Tell = quiet) -> BenchEnded:
    """`bench` for callers without an event loop."""
    return run_sync(lambda: bench(spec, tell=tell))
