"""Sessions that call models: each ends in a `RunResult`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from mmbu_async.api.reporting import report, rows
from mmbu_async.api.scoring import still_tied
from mmbu_async.config import CLUSTER, JudgeConfig, RunConfig, build_config
from mmbu_async.errors import EXIT_INCOMPLETE, EXIT_OK, ConfigError, ImageError, MmbuError
from mmbu_async.images import find_limits
from mmbu_async.model import ImageRef, Json
from mmbu_async.pipeline.changing import with_changes
from mmbu_async.pipeline.hosting import Host
from mmbu_async.pipeline.opening import (
    Bench,
    Rules,
    check_same_judge,
    config_of,
    find_or_make_run,
    lay_out,
    open_existing,
    rules_of,
    select_rows,
    with_absolute_paths,
)
from mmbu_async.pipeline.progress import silent
from mmbu_async.pipeline.run import Watch
from mmbu_async.pipeline.working import Work, Worker
from mmbu_async.report import ReportData
from mmbu_async.store import RowRecord, RunCounts, RunRecord, Store

REJUDGE_SETTINGS = frozenset(
    {"judge", "panel", "verdict", "judge_coverage", "max_cost", "synchronous", "batch_poll", *CLUSTER}
)
"""Settings that a rejudge heeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A run after a session. Iterating gives its rows in dataset order, streamed from the store."""

    run: str
    store: Path
    counts: RunCounts
    stopped: MmbuError | None
    """Why the session ended early; None: nothing was left to do."""
    judge_coverage: float = 1.0
    """The share of rows with a verdict that was asked for: see RunConfig."""
    verdict: str = "judge"
    """Whose word makes the scores: see RunConfig."""
    tied: int = 0
    """Rows that stay unjudged because all of the panel have voted and no side has won."""

    @property
    def complete(self) -> bool:
        """Every selected row has a score."""
        return self.stopped is None and self.counts.scored == self.counts.selected

    @property
    def exit_code(self) -> int:
        if self.stopped is not None:
            return self.stopped.exit_code
        counts = self.counts
        if counts.failed or counts.pending or counts.coverage < self.judge_coverage:
            return EXIT_INCOMPLETE
        return EXIT_OK

    def report(self) -> ReportData:
        return report(self.run, store=self.store)

    def __iter__(self) -> Iterator[RowRecord]:
        return rows(self.run, store=self.store)


async def evaluate(
    config: RunConfig,
    *,
    new_run: bool = False,
    watch: Watch = silent,
    check: bool = True,
    host: Host | None = None,
) -> RunResult:
    """Run a model on a benchmark, or go on with the run of that name, until every row has its score.

    `new_run` starts another run under a fresh name. What ends a session early (budget, interrupt, an
    endpoint that refuses or is down) is raised as its named error, or with `check=False` only noted in the
    result; either way all that was paid for is in the store. Raises ConfigError, DataError, RunChangedError
    or StoreError before any call where the run cannot begin. `host`: what a process that works on several
    runs at once lends to each; None: there is this run only.
    """
    host = host or Host()
    config = with_absolute_paths(config)
    bench = await host.apart(partial(lay_out, config))
    opening = partial(Store.open, config.store, synchronous=config.synchronous)
    with await host.apart(opening) as store:

        def find() -> RunRecord:
            found = find_or_make_run(store, bench, new_run=new_run)
            select_rows(store, found, bench)
            return found

        run = await host.apart(find)
        return await _work(store, run, run.config, bench, Work(kind="run"), watch, check, host)


async def resume(
    run: str,
    *,
    store: Path = Path("mmbu.sqlite"),
    changes: Mapping[str, Json] | None = None,
    watch: Watch = silent,
    check: bool = True,
    host: Host | None = None,
) -> RunResult:
    """Go on with a run. `changes` may name any setting that does not change answers; see RunConfig. `host`:
    see `evaluate`."""
    host = host or Host()
    with await host.apart(partial(open_existing, store)) as opened:

        def find() -> tuple[RunRecord, Mapping[str, Json], Bench]:
            found = opened.run(run)
            kept = found.config
            config = with_absolute_paths(with_changes(config_of(found, store), changes))
            bench = lay_out(config)
            found = find_or_make_run(opened, bench, new_run=False)
            select_rows(opened, found, bench)
            return found, kept, bench

        found, kept, bench = await host.apart(find)
        return await _work(opened, found, kept, bench, Work(kind="resume"), watch, check, host)


async def rejudge(
    run: str,
    *,
    store: Path = Path("mmbu.sqlite"),
    judge: JudgeConfig | None = None,
    changes: Mapping[str, Json] | None = None,
    failed: bool = False,
    watch: Watch = silent,
    check: bool = True,
    host: Host | None = None,
) -> RunResult:
    """Buy verdicts, and nothing else, for rows that have a reply and no usable verdict of this judge.

    Earlier verdicts stay under the earlier judge's name. Scores follow the new judge once it was asked about
    every row. None: the run's own judge, for rows it left unjudged or that are read differently today;
    `failed`: only for rows it left unjudged. `changes` may name the judge's settings and REJUDGE_SETTINGS.
    Raises ConfigError for others, which would be kept with a run whose replies were made without them.
    `host`: see `evaluate`.
    """
    host = host or Host()
    if idle := sorted(set(changes or ()) - REJUDGE_SETTINGS):
        raise ConfigError(
            f"a rejudge asks the judge alone, and {', '.join(idle)} would mean nothing to it: leave out what "
            "is not the judge's, or resume the run with it."
        )
    with await host.apart(partial(open_existing, store)) as opened:
        found = await host.apart(partial(opened.run, run))
        config = with_changes(config_of(found, store), changes)
        if judge is not None:
            config = build_config(config.model_dump() | {"judge": judge}, "the settings")
        rules = rules_of(config)
        if failed:
            check_same_judge(found, config, rules)
        work = Work(kind="rejudge", infer=False, judge_anew=True, failed_only=failed)
        return await _finish(_without_data(opened, found, config, rules, work, watch, host), check)


async def call_back(
    run: str,
    *,
    store: Path = Path("mmbu.sqlite"),
    watch: Watch = silent,
    check: bool = True,
    host: Host | None = None,
) -> RunResult:
    """Cancel the batches of a run that are out at a provider, wait for their end, and store what was done
    until then, which is charged. Hands nothing in: rows that came back without an answer stay open."""
    host = host or Host()
    with await host.apart(partial(open_existing, store)) as opened:
        found = await host.apart(partial(opened.run, run))
        config = config_of(found, store)
        work = Work(kind="cancel", infer=False, call_back=True)
        worker = _without_data(opened, found, config, rules_of(config), work, watch, host)
        return await _finish(worker, check)


def _without_data(
    store: Store, run: RunRecord, config: RunConfig, rules: Rules, work: Work, watch: Watch, host: Host
) -> Worker:
    """For work that sends no image: where the data lie does not matter."""
    return Worker(
        store=store,
        run=run,
        config=config,
        rules=rules,
        work=work,
        watch=watch,
        random=Random(),
        read_image=_no_image,
        limits=find_limits(config.endpoint, config.host, config.image_limits),
        kept=run.config,
        host=host,
    )


async def _work(
    store: Store,
    run: RunRecord,
    kept: Mapping[str, Json],
    bench: Bench,
    work: Work,
    watch: Watch,
    check: bool,
    host: Host,
) -> RunResult:
    """`kept`: the run's settings in the store when those of the bench were made."""
    worker = Worker(
        store=store,
        run=run,
        config=bench.config,
        rules=bench.rules,
        work=work,
        watch=watch,
        random=Random(),
        read_image=bench.source.read_image,
        limits=bench.limits,
        kept=kept,
        stamp=bench.source.stamp,
        host=host,
    )
    return await _finish(worker, check)


async def _finish(worker: Worker, check: bool) -> RunResult:
    stopped = await worker.work_on()
    if stopped is not None and check:
        raise stopped

    def sum_up() -> RunResult:
        counts = worker.store.counts(worker.run.id)
        return RunResult(
            run=worker.run.name,
            store=worker.store.path,
            counts=counts,
            stopped=stopped,
            judge_coverage=worker.config.judge_coverage,
            verdict=worker.config.verdict,
            tied=still_tied(worker.store, worker.store.run(worker.run.name), counts),
        )

    return await worker.host.apart(sum_up)


def _no_image(ref: ImageRef) -> bytes:
    raise ImageError("no image is needed to judge")
