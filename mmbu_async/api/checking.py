"""Before a run: what there is to ask, what it would cost, and whether anybody answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from mmbu_async import tasks
from mmbu_async.config import RunConfig
from mmbu_async.errors import ConfigError, DataError
from mmbu_async.model import Benchmark, Sample
from mmbu_async.pipeline.doctor import Doctor, Finding
from mmbu_async.pipeline.dryrun import DryRun, DryRunner
from mmbu_async.pipeline.learning import learn
from mmbu_async.pipeline.opening import Bench, lay_out
from mmbu_async.pipeline.selecting import keeper
from mmbu_async.sources import samples


def benchmarks(*, broken: Callable[[str], None] = warnings.warn) -> list[Benchmark]:
    """Every benchmark that has a name: ours, and those of installed plug-ins.

    `broken` is told in a sentence of each plug-in that cannot be used.
    """
    found: list[Benchmark] = []
    for one in tasks.benchmarks():
        if isinstance(one, ConfigError):
            broken(str(one))
        else:
            found.append(one)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCheck:
    """What a local copy, or the hub's, was found to be."""

    source: str
    found: tuple[str, ...]
    """Tables, archives, image columns, a line each."""
    rows: DryRun


def check_data(benchmark: str, data: str | None = None) -> DataCheck:
    """Read every row and image of a benchmark's data. Raises DataError where rows cannot be used."""
    config = RunConfig(model="none", benchmark=benchmark, data=data)
    source = lay_out(config).source
    return DataCheck(source=source.description, found=source.describe(), rows=dry_run(config))


def dry_run(config: RunConfig) -> DryRun:
    """Validate rows and images, fill prompts, estimate tokens, money and time, as the store's replies of this
    model and these judges teach it. Makes no call and writes nothing."""
    bench = lay_out(config)
    return DryRunner(
        config=config,
        benchmark=bench.rules.benchmark,
        source=bench.source,
        limits=bench.limits,
        fill=bench.rules.fill,
        lessons=learn(config, bench.rules.benchmark, bench.rules.judge_prompt_sha256),
    ).run()


async def doctor(config: RunConfig) -> list[Finding]:
    """Send one row to model and judge and say what is wrong. Nothing is stored."""
    bench = lay_out(config)
    examiner = Doctor(
        config=config,
        benchmark=bench.rules.benchmark,
        source=bench.source,
        limits=bench.limits,
        fill=bench.rules.fill,
        read_verdict=bench.rules.read_verdict,
    )
    return await examiner.examine(_first_row(bench))


def _first_row(bench: Bench) -> Sample:
    keep = keeper(bench.config.task, bench.config.where)
    for sample, _ in samples(bench.source, bench.rules.benchmark):
        if keep is None or keep(sample):
            return sample
    raise DataError(f"{bench.source.description}: no row matches the selection; loosen --task or --where.")
