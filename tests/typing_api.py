"""Type-checked and never run: what a caller of the Python API may rely on.

A change of a name, an argument or a type breaks the check here before it breaks somebody's script.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import assert_type

import mmbu_async
from mmbu_async import JudgeConfig, MmbuError, RunConfig, RunResult, api, evaluate, evaluate_sync
from mmbu_async.model import (
    Answer,
    Benchmark,
    Completion,
    Failure,
    Finish,
    Prompt,
    Sample,
    Score,
    ScoreItem,
    Status,
    Verdict,
)
from mmbu_async.pipeline.doctor import Finding
from mmbu_async.pipeline.dryrun import DryRun
from mmbu_async.report import ReportData
from mmbu_async.report.adaptations import Adaptations
from mmbu_async.report.comparison import Comparison
from mmbu_async.report.judges import JudgesReport
from mmbu_async.report.plan import Plan
from mmbu_async.store import RowRecord
from mmbu_async.tasks.mmbu_public import MmbuPublic

STORE = Path("mmbu.sqlite")


def configure() -> RunConfig:
    """Every setting by its name; a wrong type is found by the checker, a wrong value when it is made."""
    config = RunConfig(
        model="gpt-4o-mini",
        endpoint="openai",
        base_url="http://localhost:8000/v1",
        api_key_env="MINE",
        concurrency=64,
        rpm=500,
        tpm=100_000.0,
        max_tokens=2048,
        temperature=0.0,
        seed=1,
        params={"reasoning_effort": "low"},
        stream=True,
        timeout=600.0,
        connect_timeout=15.0,
        idle_timeout=300.0,
        max_attempts=6,
        max_retry_time=1800.0,
        input_price=0.15,
        output_price=0.6,
        benchmark="mmbu-public",
        name="night",
        store=STORE,
        data="folder",
        limit=10,
        task=("counting",),
        where={"metadata_stain": "H&E"},
        max_cost=25.0,
        judge=JudgeConfig(model="claude-sonnet-5", endpoint="anthropic", name="official"),
        panel=(JudgeConfig(model="gpt-4o", endpoint="openai"),),
        verdict="majority",
        judge_coverage=0.98,
        synchronous="full",
        preflight=True,
    )
    assert_type(config.judge.max_tokens, int)
    assert_type(config.judges, tuple[JudgeConfig, ...])
    assert_type(config.store, Path)
    assert_type(config.host, str)
    return config


async def work(config: RunConfig) -> None:
    """What makes calls."""
    result = await evaluate(config, new_run=True, check=False)
    assert_type(result, RunResult)
    assert_type(result.run, str)
    assert_type(result.complete, bool)
    assert_type(result.exit_code, int)
    assert_type(result.stopped, MmbuError | None)
    assert_type(result.report(), ReportData)
    assert_type(await api.resume("night", store=STORE, changes={"concurrency": 8}), RunResult)
    assert_type(await api.rejudge("night", store=STORE, judge=JudgeConfig(model="x")), RunResult)
    assert_type(await api.rejudge("night", failed=True, changes={"judge_coverage": 0.98}), RunResult)
    assert_type(await api.doctor(config), list[Finding])
    for row in result:
        read(row)


def work_without_a_loop(config: RunConfig) -> None:
    """The same for callers without an event loop."""
    assert_type(evaluate_sync(config), RunResult)
    assert_type(api.resume_sync("night", store=STORE), RunResult)
    assert_type(api.rejudge_sync("night", store=STORE), RunResult)


def look(config: RunConfig) -> None:
    """What makes none."""
    assert_type(api.dry_run(config), DryRun)
    assert_type(api.report("night", store=STORE), ReportData)
    assert_type(api.rows("night", store=STORE), Iterator[RowRecord])
    assert_type(api.compare(["base", "night"], store=STORE, flips=Path("flips.csv")), Comparison)
    assert_type(api.compare_pairs(Path("pairs.csv"), store=STORE), Adaptations)
    assert_type(api.judges("night", store=STORE, labels=Path("labels.csv")), JudgesReport)
    assert_type(api.plan("night", store=STORE, difference=0.02), Plan)
    assert_type(api.plan(rows=5000, accuracy=0.6, disagreement=0.3, power=0.9, alpha=0.01), Plan)
    assert_type(api.rescore("night", store=STORE).changed, tuple[str, ...])
    assert_type(api.export("night", Path("rows.parquet"), store=STORE), int)
    assert_type(api.export_long(["night", "day"], Path("long.parquet"), store=STORE, every_judge=True), int)
    assert_type(api.card("night", store=STORE), str)
    assert_type(api.show("night", "row-1", store=STORE), api.Shown)
    for status in api.status(store=STORE):
        assert_type(status, api.RunStatus)
    assert_type(mmbu_async.__version__, str)


def read(row: RowRecord) -> None:
    """What is known of a row."""
    assert_type(row.sample, Sample)
    assert_type(row.status, Status)
    assert_type(row.completion, Completion | None)
    assert_type(row.failure, Failure | None)
    assert_type(row.answer, Answer | None)
    assert_type(row.score, Score | None)
    for verdict in row.verdicts.values():
        assert_type(verdict.correct, bool | None)


def outcome_of(outcome: Completion | Failure) -> str:
    """A call's outcome is one of two, and the checker knows which fields each has."""
    if isinstance(outcome, Completion):
        assert_type(outcome.finish, Finish)
        return outcome.text
    assert_type(outcome.status, int | None)
    return outcome.message


def benchmark_of_ones_own(benchmark: Benchmark, rows: Sequence[ScoreItem]) -> list[Score]:
    """What a file in tasks/ has to offer."""
    for item in rows:
        assert_type(benchmark.prompt(item.sample), Prompt)
        assert_type(item.verdict, Verdict | None)
    return benchmark.score(rows)


SHIPPED: type[Benchmark] = MmbuPublic
