"""The commands. Each parses, calls `api`, and prints."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from mmbu_async.cli import batching, benching, comparing, exporting, judging, serving, steering, storing
from mmbu_async.cli.arguments import DEFAULT_STORE, STORE_VARIABLE, MetricsPort, RunName, StoreOption
from mmbu_async.cli.completing import benchmark_names, run_names
from mmbu_async.cli.ends import complain, finish, is_abort, let_loops_end_in_silence, logged, screen, usage
from mmbu_async.cli.options import with_settings
from mmbu_async.config import CLUSTER
from mmbu_async.errors import EXIT_OK, DataError, MmbuError

app = typer.Typer(
    name="mmbu",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

BenchmarkName = Annotated[
    str | None,
    typer.Argument(help="Benchmark [default: mmbu-public].", autocompletion=benchmark_names),
]
LogJson = Annotated[bool, typer.Option("--log-json", help="Log lines as JSON.", rich_help_panel="Output")]
LogFile = Annotated[
    Path | None, typer.Option("--log-file", help="Write the log to a file.", rich_help_panel="Output")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="TOML file with the same names as the flags; flags win over it."),
]


def main() -> None:
    """Entry point: errors of users are one sentence on standard error, and an exit code of their own."""
    let_loops_end_in_silence()
    try:
        code = app(standalone_mode=False)
    except MmbuError as error:
        complain(str(error))
        code = error.exit_code
    except TyperException as error:
        # Usage errors: an unknown flag, a missing argument, a value of the wrong kind.
        if message := usage(error).rstrip("."):
            complain(f"{message}; `mmbu COMMAND --help` lists the flags.")
        code = error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        complain("aborted.")
        code = 130
    except BrokenPipeError:
        # The reader of our output went away (`mmbu report | head`).
        sys.stderr.close()
        code = EXIT_OK
    except BaseException as error:
        if not is_abort(error):
            raise
        complain("aborted; calls under way are lost, the rest is kept: the same command again goes on.")
        code = 130
    sys.exit(code if isinstance(code, int) else EXIT_OK)


def _print_version(wanted: bool) -> None:
    if wanted:
        from mmbu_async.version import VERSION

        screen().print(f"mmbu-async {VERSION}", highlight=False)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Evaluate vision-language models on biomedical benchmarks: streamed, judged, checkpointed, resumable."""


@app.command()
@with_settings()
def run(
    benchmark: BenchmarkName = None,
    settings: Any = None,
    config: ConfigFile = None,
    write_config: Annotated[
        Path | None, typer.Option("--write-config", help="Write these settings to a TOML file and exit.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Validate rows and images, estimate cost; make no call.")
    ] = False,
    new_run: Annotated[bool, typer.Option("--new-run", help="Start another run under a fresh name.")] = False,
    log_json: LogJson = False,
    log_file: LogFile = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Evaluate a model on a benchmark; the same command again goes on where it stopped."""
    from mmbu_async import api
    from mmbu_async.cli import show
    from mmbu_async.cli.forms import writing
    from mmbu_async.config import load_config, to_toml

    loaded = load_config(_with_benchmark(settings, benchmark), file=config)
    if write_config is not None:
        with writing(write_config):
            write_config.write_text(to_toml(loaded), encoding="utf-8")
        screen().print(f"wrote {write_config}: run it with `mmbu run --config {write_config}`", markup=False)
        return
    if dry_run:
        found = api.dry_run(loaded)
        show.dry_run(found, screen())
        raise typer.Exit(DataError.exit_code if found.problem_count else EXIT_OK)
    with logged(log_json, log_file, metrics_port) as watch:
        result = api.evaluate_sync(loaded, new_run=new_run, watch=watch, check=False)
    finish(result)


@app.command()
@with_settings()
def resume(
    name: RunName,
    settings: Any = None,
    log_json: LogJson = False,
    log_file: LogFile = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Go on with a run. Flags may change limits, concurrency, budget, addresses; not what changes answers."""
    from mmbu_async import api

    store = _store_of(settings)
    with logged(log_json, log_file, metrics_port) as watch:
        result = api.resume_sync(name, store=store, changes=settings, watch=watch, check=False)
    finish(result)


@app.command()
@with_settings(
    only=("store", "max_cost", "synchronous", "panel", "verdict", "judge_coverage", "batch_poll", *CLUSTER)
)
def rejudge(
    name: RunName,
    settings: Any = None,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed",
            help="Ask the run's judge again, only about rows of which it gave no usable verdict. Without it "
            "rows whose reply this version reads differently are asked about as well.",
        ),
    ] = False,
    log_json: LogJson = False,
    log_file: LogFile = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Buy verdicts only: of another judge (--judge-model …), or for rows that have none yet (--failed)."""
    from mmbu_async import api

    store = _store_of(settings)
    with logged(log_json, log_file, metrics_port) as watch:
        result = api.rejudge_sync(
            name, store=store, changes=settings, failed=failed, watch=watch, check=False
        )
    finish(result, rejudged=True)


@app.command()
def rescore(name: RunName, store: StoreOption = DEFAULT_STORE) -> None:
    """Read and score every stored reply anew. Buys nothing."""
    from mmbu_async import api
    from mmbu_async.cli import show

    show.rescored(api.rescore(name, store=store), screen())


@app.command()
def status(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="One run; without it, all.", autocompletion=run_names),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """List the runs of a store and where they stand."""
    from mmbu_async import api
    from mmbu_async.cli import show

    show.status(api.status(name, store=store), screen(), one=name is not None, store=store)


app.command()(batching.batches)
app.command()(steering.limit)
app.command()(steering.pause)
app.command(name="continue")(steering.continue_)


@app.command()
def report(
    name: RunName,
    store: StoreOption = DEFAULT_STORE,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="text, html (a page with figures), markdown, json, leaderboard (one flat JSON object) or "
            "card (Markdown for a paper's appendix, with all that is needed to repeat the run) [default: by "
            "the name of --out]",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write to a file.")] = None,
    full: Annotated[bool, typer.Option("--all", help="Every stratum, not only the largest.")] = False,
) -> None:
    """Print the report of a run, complete or not."""
    from mmbu_async import api
    from mmbu_async.cli import show

    found = api.report(name, store=store)

    def card() -> str:
        return api.card(name, store=store, report=found)

    show.report(found, screen(), form=form, out=out, full=full, more={"card": card})


app.command()(comparing.compare)
app.command()(comparing.plan)
app.command()(judging.judges)


app.command()(exporting.export)


@app.command()
def show(
    name: RunName,
    row: Annotated[str, typer.Argument(metavar="ROW", help="Id of the row.")],
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Show everything known of one row: prompts, reply, answer, verdicts, score, attempts."""
    from mmbu_async import api
    from mmbu_async.cli import show as printing

    printing.row(api.show(name, row, store=store), screen())


@app.command()
def view(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN [RUN2 …]",
            help="Runs to look at; the second stands beside the first.",
            autocompletion=run_names,
        ),
    ],
    store: StoreOption = DEFAULT_STORE,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on this machine; 0: any free one.")
    ] = 0,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Only print the address, open no browser.")
    ] = False,
) -> None:
    """Look through the rows of a run in a browser: images and boxes, prompts, replies, verdicts, flips."""
    from mmbu_async.cli import viewing

    viewing.view(names, store=store, port=port, show=not no_open, console=screen())


app.command()(serving.serve)


@app.command()
@with_settings()
def doctor(
    benchmark: BenchmarkName = None,
    settings: Any = None,
    config: ConfigFile = None,
) -> None:
    """Send one row to model and judge and say in plain words what is wrong."""
    from mmbu_async import api
    from mmbu_async.cli import show
    from mmbu_async.config import load_config

    loaded = load_config(_with_benchmark(settings, benchmark), file=config)
    findings = api.run_sync(lambda: api.doctor(loaded))
    show.findings(findings, screen())
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def simulate(context: typer.Context) -> None:
    """Serve an endpoint that behaves like the real ones, faults included."""
    from mmbu_async.simulator.command import main as serve

    raise typer.Exit(serve(context.args))


@app.command(name="list")
def list_benchmarks() -> None:
    """List every benchmark: rows, routes, metric, where the data come from, licence and citation."""
    from mmbu_async import api
    from mmbu_async.cli import show

    broken: list[str] = []
    show.benchmarks(api.benchmarks(broken=broken.append), screen())
    for sentence in broken:
        complain(sentence)


app.add_typer(storing.app, name="store")
app.add_typer(benching.app, name="bench")


data_app = typer.Typer(help="Look at a benchmark's data.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@data_app.command()
def check(
    benchmark: Annotated[
        str, typer.Argument(help="Benchmark; `mmbu list` has them all.", autocompletion=benchmark_names)
    ],
    data: Annotated[
        str | None, typer.Option("--data", help="A local folder, or a hub id (default the benchmark's own).")
    ] = None,
) -> None:
    """Read every row and image of a benchmark's data and say what is wrong. Makes no call."""
    from mmbu_async import api
    from mmbu_async.cli import show

    found = api.check_data(benchmark, data)
    show.data_check(found, screen())
    raise typer.Exit(DataError.exit_code if found.rows.problem_count else EXIT_OK)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where data, store and report go.")] = Path("demo"),
    rows: Annotated[int, typer.Option("--rows", min=5, help="Rows to draw.")] = 60,
    seed: Annotated[int, typer.Option("--seed", help="Another seed draws another split.")] = 0,
) -> None:
    """Draw a small split, simulate model and judge, run the whole way, and show what it looks like."""
    from mmbu_async.cli.demo import run_demo

    run_demo(folder, rows=rows, seed=seed, console=screen())


def _with_benchmark(settings: dict[str, Any], given: str | None) -> dict[str, Any]:
    """Left out, the benchmark is that of the file or the environment."""
    return settings if given is None else {**settings, "benchmark": given}


def _store_of(settings: dict[str, Any]) -> Path:
    """Taken out of the settings: where a run lies is none of its own."""
    return settings.pop("store", None) or Path(os.environ.get(STORE_VARIABLE) or DEFAULT_STORE)
