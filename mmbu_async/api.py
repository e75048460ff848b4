"""The same for Python callers as the command line offers, under the same names.

    result = await evaluate(RunConfig(model="gpt-4o-mini"))
    print(result.report().overall.accuracy)
    for row in result:
        print(row.sample.id, row.score)

Whatever goes wrong on purpose is an `MmbuError`.
"""

from __future__ import annotations

import asyncio
import sys
import time
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from mmbu_async import tasks
from mmbu_async.bench.compare import BenchComparison
from mmbu_async.bench.compare import compare as compare_benches
from mmbu_async.bench.measuring import Tell
from mmbu_async.bench.measuring import silent as quiet
from mmbu_async.bench.report import BenchReport, read_report
from mmbu_async.bench.session import Ended as BenchEnded
from mmbu_async.bench.session import run as run_bench
from mmbu_async.bench.spec import Spec
from mmbu_async.config import CLUSTER, JudgeConfig, RunConfig, build_config
from mmbu_async.errors import EXIT_INCOMPLETE, EXIT_OK, ConfigError, DataError, ImageError, MmbuError
from mmbu_async.images import find_limits
from mmbu_async.model import Benchmark, ImageRef, Json, Sample
from mmbu_async.pipeline.asking import Asked, ask_limits, ask_pause
from mmbu_async.pipeline.changing import with_changes
from mmbu_async.pipeline.doctor import Doctor, Finding
from mmbu_async.pipeline.dryrun import DryRun, DryRunner
from mmbu_async.pipeline.hosting import Host
from mmbu_async.pipeline.learning import learn
from mmbu_async.pipeline.looking import open_to_look, to_look_at
from mmbu_async.pipeline.opening import (
    Bench,
    Rules,
    check_same_judge,
    config_of,
    find_or_make_run,
    lay_out,
    leased,
    open_existing,
    rules_of,
    select_rows,
    with_absolute_paths,
)
from mmbu_async.pipeline.progress import silent
from mmbu_async.pipeline.recipe import recipe
from mmbu_async.pipeline.run import Watch
from mmbu_async.pipeline.scoring import score_run
from mmbu_async.pipeline.selecting import keeper
from mmbu_async.pipeline.takes import takes
from mmbu_async.pipeline.working import Work, Worker
from mmbu_async.report import ReportData, build_report, to_card, write_leaderboard, write_submission
from mmbu_async.report import export as write_export
from mmbu_async.report.adaptations import Adaptations, build_adaptations
from mmbu_async.report.comparable import check_comparable
from mmbu_async.report.compare import build_comparison
from mmbu_async.report.comparison import Comparison
from mmbu_async.report.flips import write_flips
from mmbu_async.report.judges import JudgesReport, build_judges, write_differing
from mmbu_async.report.labels import read_labels
from mmbu_async.report.pairs_file import naming, read_pairs
from mmbu_async.report.panel import tied
from mmbu_async.report.plan import Plan, make_plan
from mmbu_async.sources import samples
from mmbu_async.stats.power import ALPHA, POWER
from mmbu_async.store import (
    BatchRecord,
    Lease,
    LeaseOwner,
    Limits,
    Replaced,
    RowDetail,
    RowRecord,
    RunCounts,
    RunRecord,
    RunTotals,
    Store,
    backup,
    merge,
    upkeep,
)
from mmbu_async.store.backup import Copied
from mmbu_async.store.benches import Benches, BenchRecord
from mmbu_async.store.merge import Merged
from mmbu_async.store.upkeep import Finding as StoreFinding
from mmbu_async.store.upkeep import Vacuumed
from mmbu_async.version import VERSION

T = TypeVar("T")

REJUDGE_SETTINGS = frozenset(
    {"judge", "panel", "verdict", "judge_coverage", "max_cost", "synchronous", "batch_poll", *CLUSTER}
)
"""Settings that a rejudge heeds."""

SUBMISSION = ".submission.json"
LEADERBOARD = ".leaderboard.json"
PARQUET = ".parquet"


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
        worker = Worker(
            store=opened,
            run=found,
            config=config,
            rules=rules,
            work=work,
            watch=watch,
            random=Random(),
            read_image=_no_image,
            limits=find_limits(config.endpoint, config.host, config.image_limits),
            kept=found.config,
            host=host,
        )
        return await _finish(worker, check)


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
        worker = Worker(
            store=opened,
            run=found,
            config=config,
            rules=rules_of(config),
            work=Work(kind="cancel", infer=False, call_back=True),
            watch=watch,
            random=Random(),
            read_image=_no_image,
            limits=find_limits(config.endpoint, config.host, config.image_limits),
            kept=found.config,
            host=host,
        )
        return await _finish(worker, check)


def call_back_sync(
    run: str, *, store: Path = Path("mmbu.sqlite"), watch: Watch = silent, check: bool = True
) -> RunResult:
    """`call_back` for callers without an event loop."""
    return run_sync(lambda: call_back(run, store=store, watch=watch, check=check))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBatches:
    """Batches of a run, oldest first."""

    batches: tuple[BatchRecord, ...]
    judges: Mapping[int, str]
    """Number of a judge in the store -> its name."""


def batches(run: str, *, store: Path = Path("mmbu.sqlite")) -> RunBatches:
    """Every batch of a run that was, or was about to be, handed to a provider."""
    with open_existing(store) as opened:
        found = opened.batches(opened.run(run).id)
        return RunBatches(batches=tuple(found), judges=opened.judge_names())


def forget_batches(run: str, *, store: Path = Path("mmbu.sqlite")) -> int:
    """Give the rows of a run's batches that are out back to be asked anew, whatever the provider still does
    and charges with them; returns how many batches that were. For batches that can never be fetched."""
    with open_existing(store) as opened:
        found = opened.run(run)
        with leased(opened, found, LeaseOwner.current()):
            return opened.forget_batches(found.id, now=time.time())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """What a re-score did."""

    rows: int
    changed: tuple[str, ...]
    """Ids of rows whose answer or score is another one now; a row's first score is no change."""
    right_to_wrong: int = 0
    wrong_to_right: int = 0


def rescore(run: str, *, store: Path = Path("mmbu.sqlite")) -> Rescored:
    """Read and score every stored reply anew; buys nothing. Reports then tell which rows changed."""
    with open_existing(store) as opened:
        found = opened.run(run)
        done = _score(opened, found, rules_of(config_of(found, store)), only_stale=False)
        changes = [] if done.rescore is None else list(opened.score_changes(done.rescore))
        moves = [(change.score.correct, change.correct_now) for change in changes]
        return Rescored(
            rows=done.rows,
            changed=tuple(change.row_id for change in changes),
            right_to_wrong=moves.count((True, False)),
            wrong_to_right=moves.count((False, True)),
        )


def report(run: str, *, store: Path = Path("mmbu.sqlite")) -> ReportData:
    """The report of a run as it stands, complete or not; scores are brought up to date first."""
    with open_to_look(store) as opened:
        found = opened.run(run)
        _bring_up_to_date(opened, found, store)
        return build_report(opened, opened.run(run))


def rows(run: str, *, store: Path = Path("mmbu.sqlite")) -> Iterator[RowRecord]:
    """Every selected row with everything known of it, in dataset order, streamed."""
    with open_to_look(store) as opened:
        found = opened.run(run)
        _bring_up_to_date(opened, found, store)
        yield from opened.rows(found.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One row, and the prompts it was or would be sent with."""

    detail: RowDetail
    prompts: Mapping[str, str]


def show(run: str, row_id: str, *, store: Path = Path("mmbu.sqlite")) -> Shown:
    """Everything known of one row, every attempt included. Raises DataError for an unknown row."""
    with open_to_look(store) as opened:
        found = opened.run(run)
        _bring_up_to_date(opened, found, store)
        detail = opened.row(found.id, row_id)
        rules = rules_of(config_of(found, store))
        prompt = rules.benchmark.prompt(detail.record.sample)
        texts = {"system": prompt.system or "", "user": prompt.text}
        if detail.record.answer is not None:
            item = rules.benchmark.judge_item(detail.record.sample, detail.record.answer)
            if item is not None:
                texts["judge"] = rules.fill(item).text
        return Shown(detail=detail, prompts=texts)


def compare(
    runs: Sequence[str], *, store: Path = Path("mmbu.sqlite"), flips: Path | None = None
) -> Comparison:
    """Runs over the same content of one benchmark, row by row; the first is the baseline. Scores are brought
    up to date first. `flips`: a .csv file for every row that a later run gained or lost.

    Raises ConfigError or DataError where the runs cannot be compared, and says what to do instead.
    """
    with open_to_look(store) as opened:
        found = [opened.run(name) for name in runs]
        check_comparable(opened, found)
        current = [_current(opened, run, store) for run in found]
        compared = build_comparison(opened, current)
        if flips is not None:
            write_flips(opened, current, flips)
        return compared


def judges(
    run: str,
    *,
    store: Path = Path("mmbu.sqlite"),
    labels: Path | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    disagreements: Path | None = None,
) -> JudgesReport:
    """The judges of a run beside each other, and beside the labels of people from a CSV file. Scores are
    brought up to date first. `disagreements`: a .csv file for every row on which they differ.

    Raises ConfigError naming line and column of what is wrong with the labels.
    """
    if labels is None and (id_column or label_column):
        raise ConfigError("--id-column and --label-column name columns of --labels: give that file too.")
    given = None if labels is None else read_labels(labels, id_column=id_column, label_column=label_column)
    with open_to_look(store) as opened:
        found = _current(opened, opened.run(run), store)
        page = build_judges(opened, found, given)
        if disagreements is not None:
            write_differing(opened, found, disagreements, given)
        return page


def compare_pairs(file: Path, *, store: Path = Path("mmbu.sqlite")) -> Adaptations:
    """Adapted models beside their base models, from a CSV file with the columns base, adapted (names of runs)
    and training_size: win rates, and the line of win rate over training rows."""
    pairs = read_pairs(file)
    with open_to_look(store) as opened:
        known: dict[str, RunRecord] = {}
        for pair in pairs:
            for name in (pair.base, pair.adapted):
                with naming(file, pair):
                    known[name] = known.get(name) or _current(opened, opened.run(name), store)
        return build_adaptations(
            opened, file, [(pair, known[pair.base], known[pair.adapted]) for pair in pairs]
        )


def plan(
    run: str | None = None,
    *,
    store: Path = Path("mmbu.sqlite"),
    difference: float | None = None,
    rows: int | None = None,
    accuracy: float | None = None,
    disagreement: float | None = None,
    power: float = POWER,
    alpha: float = ALPHA,
) -> Plan:
    """How many rows show a difference of accuracy between two runs, or which difference so many rows show.
    `run` gives its accuracy, and its rows where neither is asked. Raises ConfigError for what cannot be."""
    if run is not None:
        if accuracy is not None:
            raise ConfigError(f"--accuracy {accuracy:g}: run '{run}' has its own; leave one of the two out.")
        with open_to_look(store) as opened:
            found = _current(opened, opened.run(run), store)
            counts = opened.joint_counts(found.id, found.id)
        if not counts.n:
            raise ConfigError(f"run '{run}' has no row with a score, and so no accuracy; give --accuracy.")
        accuracy = counts.right / counts.n
        rows = counts.n if rows is None and difference is None else rows
    return make_plan(
        difference=difference,
        rows=rows,
        accuracy=accuracy,
        disagreement=disagreement,
        power=power,
        alpha=alpha,
        run=run,
    )


def export(run: str, out: Path, *, store: Path = Path("mmbu.sqlite")) -> int:
    """Write every selected row, one row a sample, with everything known of it; returns how many.

    The ending of `out` says the format: .jsonl, .csv or .parquet; a name that ends in .submission.json gets
    one answer a row, for the server of a benchmark whose answers are not public; one in .leaderboard.json
    gets a single flat object with the figures of the run.
    """
    with open_to_look(store) as opened:
        found = opened.run(run)
        _bring_up_to_date(opened, found, store)
        if out.name.endswith(SUBMISSION):
            return write_submission(opened, found, out)
        if out.name.endswith(LEADERBOARD):
            write_leaderboard(build_report(opened, opened.run(run)), out)
            return 1
        return write_export(opened, found, out)


def export_long(
    runs: Sequence[str], out: Path, *, store: Path = Path("mmbu.sqlite"), every_judge: bool = False
) -> int:
    """Write the outcomes of several runs into one Parquet file in long form; returns how many lines.

    A row gives a line for each value that it has of each attribute; see `report.longform`. `every_judge`:
    also as each further judge that gave verdicts would score the rows.
    """
    # pyarrow takes half a second to import, which no other command should pay.
    from mmbu_async.report.longform import write_long

    if out.suffix.lower() != PARQUET:
        raise ConfigError(f"{out}: the long form is written as Parquet; let the name end in {PARQUET}.")
    with open_to_look(store) as opened:
        found = [opened.run(name) for name in dict.fromkeys(runs)]
        for run in found:
            _bring_up_to_date(opened, run, store)
        others = {run.id: rules_of(config_of(run, store)) if every_judge else None for run in found}
        return write_long((take for run in found for take in takes(opened, run, others=others[run.id])), out)


def card(run: str, *, store: Path = Path("mmbu.sqlite"), report: ReportData | None = None) -> str:
    """What a paper's appendix says of a run so that others can repeat it, as Markdown. `report`: the run's,
    where it is at hand already."""
    with open_to_look(store) as opened:
        found = opened.run(run)
        config = config_of(found, store)
        benchmark = rules_of(config).benchmark
        if report is None:
            _bring_up_to_date(opened, found, store)
            report = build_report(opened, opened.run(run))
        return to_card(report, recipe(opened, found, config, benchmark))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """Where a run stands, and what it has taken so far."""

    run: RunRecord
    counts: RunCounts
    totals: RunTotals
    process: Lease | None = None
    """Who works on it at the moment; None: nobody."""
    paused: bool = False
    """Whether that process starts no call for now."""
    tied: int = 0
    """Rows that stay unjudged because all of the panel have voted and no side has won."""
    batches: tuple[BatchRecord, ...] = ()
    """All that were handed to a provider."""


def status(run: str | None = None, *, store: Path = Path("mmbu.sqlite")) -> list[RunStatus]:
    """Where a run stands, or all runs of a store, oldest first."""
    with open_to_look(store) as opened:
        found = opened.runs() if run is None else [opened.run(run)]
        leases = {lease.run_id: lease for lease in opened.leases(time.time()) if lease.alive}
        counts = {one.id: opened.counts(one.id) for one in found}
        return [
            RunStatus(
                run=one,
                counts=counts[one.id],
                totals=opened.totals(one.id),
                process=leases.get(one.id),
                paused=one.id in leases and opened.control(one.id).paused,
                tied=_tied(opened, one, counts[one.id]),
                batches=tuple(opened.batches(one.id)),
            )
            for one in found
        ]


def limit(run: str, *, store: Path = Path("mmbu.sqlite"), limits: Limits | None = None) -> Asked:
    """Change how fast a run may call: of the process at work on it at once, and for later sessions.

    `limits` maps `""` (the model under test), `judge` or a judge's name to any of `concurrency`, `rpm` and
    `tpm` (None: no limit). Without it, says what holds. Raises ConfigError for a limit that cannot be.
    """
    with open_existing(store) as opened:
        return ask_limits(opened, opened.run(run), limits or {})


def pause(run: str, *, store: Path = Path("mmbu.sqlite")) -> Asked:
    """Let the process at work on a run start no further call until `continue_run`; calls under way finish.
    Raises ConfigError where nobody is at work."""
    with open_existing(store) as opened:
        return ask_pause(opened, opened.run(run), paused=True)


def continue_run(run: str, *, store: Path = Path("mmbu.sqlite")) -> Asked:
    """Let a paused run go on. Raises ConfigError where nobody is at work."""
    with open_existing(store) as opened:
        return ask_pause(opened, opened.run(run), paused=False)


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


def store_backup(out: Path, *, store: Path = Path("mmbu.sqlite"), force: bool = False) -> Copied:
    """Copy a store, also one that is being written, to the file `out`; `force` may replace that. See
    `store.backup`."""
    with to_look_at(store) as there:
        return backup.backup(there, out, force=force)


def store_check(*, store: Path = Path("mmbu.sqlite")) -> list[StoreFinding]:
    """Look through the whole store and change nothing; empty where all is well."""
    with to_look_at(store) as there:
        return upkeep.check(there)


def store_vacuum(*, store: Path = Path("mmbu.sqlite")) -> Vacuumed:
    """Give back the space that the file does not need. Raises StoreLockedError while a run is at work."""
    return upkeep.vacuum(store)


def store_export(run: str, out: Path, *, store: Path = Path("mmbu.sqlite"), force: bool = False) -> Copied:
    """Write one run with all that belongs to it into a store of its own."""
    with to_look_at(store) as there:
        return merge.export_run(there, run, out, force=force, now=time.time())


def store_merge(other: Path, *, store: Path = Path("mmbu.sqlite"), rename: bool = False) -> Merged:
    """Take every run of another store into this one; a second time only what has come since.

    Raises RunChangedError where a run of one name is another experiment there, unless `rename`.
    """
    with to_look_at(other) as there:
        return merge.merge(store, there, rename=rename, now=time.time())


async def bench(spec: Spec, *, tell: Tell = quiet) -> BenchEnded:
    """Measure an endpoint, or two in turns, as `spec` says; what was measured is in the store.

    Raises ConfigError, DataError, EndpointError or EndpointDownError where nothing can be measured; what
    ends a bench later (money, interrupt, an endpoint that is down) is noted in the result. `tell` hears of
    each stage in a line.
    """
    return await run_bench(spec, tell=tell)


def bench_report(name: str, *, store: Path = Path("mmbu.sqlite")) -> BenchReport:
    """What a bench measured: every part with figures and verdict, computed from the stored requests."""
    return read_report(name, store)


def bench_compare(
    first: str, second: str | None = None, *, store: Path = Path("mmbu.sqlite")
) -> BenchComparison:
    """Two benches load by load; without `second` the two endpoints that the first measured in turns.

    Raises ConfigError where they have no load in common.
    """
    other = None if second is None else read_report(second, store)
    return compare_benches(read_report(first, store), other)


def benches(*, store: Path = Path("mmbu.sqlite")) -> list[BenchRecord]:
    """Every bench of a store, oldest first."""
    with Benches.open(store, create=False) as opened:
        return opened.all()


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


def bench_sync(spec: Spec, *, tell: Tell = quiet) -> BenchEnded:
    """`bench` for callers without an event loop."""
    return run_sync(lambda: bench(spec, tell=tell))


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
            tied=_tied(worker.store, worker.store.run(worker.run.name), counts),
        )

    return await worker.host.apart(sum_up)


def _tied(store: Store, run: RunRecord, counts: RunCounts) -> int:
    """The votes are read only where rows are open under a verdict."""
    return tied(store, run) if counts.completed > counts.scored else 0


def _no_image(ref: ImageRef) -> bytes:
    raise ImageError("no image is needed to judge")


def _current(store: Store, run: RunRecord, path: Path) -> RunRecord:
    """The run with scores that are up to date."""
    _bring_up_to_date(store, run, path)
    return store.run(run.name)


def _bring_up_to_date(store: Store, run: RunRecord, path: Path) -> None:
    judge_id = run.judge.id if run.judge is not None else None
    if judge_id is not None:
        store.derive_verdicts(run.id, judge_id)
    if store.scores_stale(run.id, judge_id):
        _score(store, run, rules_of(config_of(run, path)), only_stale=True)
    now = store.run(run.name)
    if (now.judge.id if now.judge is not None else None) != judge_id:
        # A rejudge has ended meanwhile: what was scored is not taken.
        _bring_up_to_date(store, now, path)


def _score(store: Store, run: RunRecord, rules: Rules, *, only_stale: bool) -> Replaced:
    return score_run(
        store,
        run,
        rules.benchmark,
        rules.fill,
        judge_id=run.judge.id if run.judge is not None else None,
        only_stale=only_stale,
        package_version=VERSION,
    )


def _first_row(bench: Bench) -> Sample:
    keep = keeper(bench.config.task, bench.config.where)
    for sample, _ in samples(bench.source, bench.rules.benchmark):
        if keep is None or keep(sample):
            return sample
    raise DataError(f"{bench.source.description}: no row matches the selection; loosen --task or --where.")
