"""`mmbu bench`: measure, show, list, compare."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mmbu_async.cli import bench_flags
from mmbu_async.cli.arguments import DEFAULT_STORE, MetricsPort, StoreOption
from mmbu_async.cli.completing import bench_names, benchmark_names
from mmbu_async.cli.ends import complain, screen
from mmbu_async.cli.options import with_settings
from mmbu_async.errors import EXIT_OK, ConfigError

SETTINGS = (
    *("model", "endpoint", "base_url", "api_key_env", "stream", "max_tokens", "temperature", "seed"),
    *("image_detail", "prompt_caching", "params", "data", "limit", "task", "where", "shuffle_options"),
    *("max_cost", "input_price", "output_price", "timeout", "connect_timeout", "idle_timeout", "store"),
    *("synchronous", "image_limits"),
)
"""Settings of a run that a bench has too. It has no retries and no limits but the load."""
FORMS = ("html", "json", "csv")
"""Of a result, beside text."""
LOAD, ENDS, WORK, RESULT = "Load", "Ends", "Work", "Result"
SEARCH, BESIDE = "Search", "Another endpoint"


class DefaultGroup(TyperGroup):
    """`mmbu bench …` is `mmbu bench run …` where no other command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=DefaultGroup, help="Measure what an endpoint can do, and what a run will take.")

BenchName = Annotated[
    str,
    typer.Argument(metavar="BENCH", help="Name of the bench; `mmbu bench list`.", autocompletion=bench_names),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--format", help="text, html, json or csv [default: by the name of --out]", rich_help_panel=RESULT
    ),
]
Out = Annotated[Path | None, typer.Option("--out", help="Write to a file.", rich_help_panel=RESULT)]
Full = Annotated[bool, typer.Option("--all", help="Every time with its percentiles.", rich_help_panel=RESULT)]


def _option(name: str, help_text: str, panel: str, **more: Any) -> Any:
    return typer.Option(name, help=help_text, rich_help_panel=panel, show_default=False, **more)


@app.command(
    epilog="`mmbu bench list`, `mmbu bench show BENCH` and `mmbu bench compare A B` look at what is stored."
)
@with_settings(only=SETTINGS, judge=False)
def run(
    benchmark: Annotated[
        str | None,
        typer.Argument(
            help="Benchmark whose rows are sent; mmbu-public unless --image is given.",
            autocompletion=benchmark_names,
        ),
    ] = None,
    settings: Any = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="TOML file with the same names as the flags; flags win over it."),
    ] = None,
    concurrency: Annotated[
        str | None,
        _option("--concurrency", "Users at once, each with one request after the other: 1,4,16.", LOAD),
    ] = None,
    rate: Annotated[
        str | None,
        _option("--rate", "Requests a second, whatever the endpoint does: 0.5,1,2.", LOAD),
    ] = None,
    arrivals: Annotated[
        str, _option("--arrivals", "Of --rate: constant, poisson or gamma:SHAPE (default poisson).", LOAD)
    ] = "poisson",
    most_in_flight: Annotated[
        int | None,
        _option("--most-in-flight", "Cap for --rate; what waits before it counts as waiting.", LOAD, min=1),
    ] = None,
    ramp: Annotated[
        float, _option("--ramp", "Seconds over which the load rises; they do not count.", LOAD, min=0)
    ] = 0.0,
    requests_per_stage: Annotated[
        int | None,
        _option(
            "--requests-per-stage",
            "Requests of each stage, warm-up included (default 200, or 6 a user).",
            ENDS,
            min=1,
        ),
    ] = None,
    requests_in_all: Annotated[
        int | None,
        _option("--requests-in-all", "Requests of all stages together, in equal parts.", ENDS, min=1),
    ] = None,
    seconds: Annotated[
        float | None, _option("--seconds", "Seconds of each stage (default 120).", ENDS, min=0.1)
    ] = None,
    interval: Annotated[
        float | None,
        _option(
            "--until-interval",
            "End a stage when the 95 % interval of the median is within so many per cent of it.",
            ENDS,
            min=0.1,
        ),
    ] = None,
    warmup: Annotated[
        str | None,
        _option("--warmup", "What of each stage does not count: 20, 10s or 20,10s (default a tenth).", ENDS),
    ] = None,
    drain: Annotated[
        float,
        _option("--drain", "Seconds that requests under way are waited for (default 600).", ENDS, min=0),
    ] = 600.0,
    image: Annotated[
        list[str] | None,
        _option("--image", "Synthetic image instead of rows, in turn: 1024x768:jpeg:90, 512x512:png.", WORK),
    ] = None,
    images: Annotated[
        int, _option("--images", "Synthetic images in each request; 0: text alone.", WORK, min=0)
    ] = 1,
    prompt_tokens: Annotated[
        int | None, _option("--prompt-tokens", "Length of a synthetic prompt (default 50).", WORK, min=1)
    ] = None,
    reply_tokens: Annotated[
        int | None, _option("--reply-tokens", "Length asked of the reply to it (default 100).", WORK, min=1)
    ] = None,
    cache: Annotated[
        str,
        _option(
            "--cache",
            "plain: each row or image in turn; bust: no two requests alike, in text and pixels; same: one "
            "request always (default plain).",
            WORK,
        ),
    ] = "plain",
    score: Annotated[bool, _option("--score", "Score the answers of rows that need no judge.", WORK)] = False,
    objective: Annotated[
        list[str] | None,
        _option(
            "--objective",
            "Look for the highest rate at which this holds: 'p95 <= 20s', 'p99 ttft <= 2s', 'errors <= 1%'.",
            SEARCH,
        ),
    ] = None,
    search: Annotated[
        str, _option("--search", "What is looked for: rate, or users at once (default rate).", SEARCH)
    ] = "rate",
    search_requests: Annotated[
        int, _option("--search-requests", "Requests of a search at most (default 8000).", SEARCH, min=100)
    ] = 8000,
    probe_requests: Annotated[
        int, _option("--probe-requests", "Requests of each probe (default 400).", SEARCH, min=40)
    ] = 400,
    tolerance: Annotated[
        float,
        _option("--tolerance", "How near the answer is wanted, in per cent (default 5).", SEARCH, min=0.5),
    ] = 5.0,
    plan_for: Annotated[
        str | None,
        _option("--plan-for", "Benchmark whose hours and money are told (default that of the rows).", RESULT),
    ] = None,
    good: Annotated[
        list[str] | None,
        _option("--good", "What a reply must keep to count for the goodput: 'ttft <= 2s'.", RESULT),
    ] = None,
    beside_model: Annotated[
        str | None, _option("--beside-model", "Its model (default the same).", BESIDE)
    ] = None,
    beside_base_url: Annotated[str | None, _option("--beside-base-url", "Its address.", BESIDE)] = None,
    beside_endpoint: Annotated[
        str | None, _option("--beside-endpoint", "Its wire format (default the same).", BESIDE)
    ] = None,
    beside_api_key_env: Annotated[
        str | None, _option("--beside-api-key-env", "Variable with its key.", BESIDE)
    ] = None,
    name: Annotated[
        str | None, _option("--name", "Of the bench; made from the model if left out.", RESULT)
    ] = None,
    draw: Annotated[
        int, _option("--draw", "Another number draws other rows, images and arrivals (default 0).", WORK)
    ] = 0,
    form: Form = None,
    out: Out = None,
    full: Full = False,
    metrics_port: MetricsPort = None,
) -> None:
    """Measure an endpoint: `mmbu bench mmbu-public --model gpt-4o-mini --concurrency 1,4,16`."""
    from mmbu_async import api
    from mmbu_async.bench.arrivals import Arrivals
    from mmbu_async.bench.objective import limits_of, parse_limits
    from mmbu_async.bench.plan import Ends, Warmup
    from mmbu_async.bench.pool import Caching
    from mmbu_async.bench.spec import Spec
    from mmbu_async.cli.forms import check_writable, chosen_form
    from mmbu_async.config import load_config
    from mmbu_async.telemetry import observed

    # A slip in a flag of the result must not come to light after the requests are paid for.
    chosen_form(FORMS, form=form, out=out)
    check_writable(out)
    found = settings if benchmark is None else {**settings, "benchmark": benchmark}
    loaded = load_config(found, file=config)
    if cache not in list(Caching):
        raise ConfigError(f"--cache {cache}: is none of {', '.join(Caching)}.")
    spread = Arrivals.parse(arrivals)
    looked = bench_flags.search(objective, search, spread, search_requests, probe_requests, tolerance)
    spec = Spec(
        config=loaded,
        beside=bench_flags.beside(loaded, beside_model, beside_base_url, beside_endpoint, beside_api_key_env),
        name=name,
        synthetic=bench_flags.synthetic(image, images, prompt_tokens, reply_tokens),
        **bench_flags.loads(concurrency, rate, spread, most_in_flight),
        ends=Ends(
            requests=requests_per_stage,
            seconds=seconds,
            interval=None if interval is None else interval / 100,
        ),
        requests_in_all=requests_in_all,
        warmup=None if warmup is None else Warmup.parse(warmup),
        ramp_s=ramp,
        drain_s=drain,
        caching=Caching(cache),
        seed=draw,
        score=score,
        limits=parse_limits(good or ()) if good or looked is None else limits_of(looked.objectives),
        search=looked,
        plan_for=plan_for,
    )
    with observed(metrics_port=metrics_port, tell=complain_softly):
        ended = api.bench_sync(spec, tell=complain_softly)
    _deliver(ended.name, loaded.store, form, out, full)
    if ended.stopped is not None:
        complain(str(ended.stopped))
    raise typer.Exit(ended.stopped.exit_code if ended.stopped is not None else EXIT_OK)


@app.command()
def show(
    name: BenchName,
    store: StoreOption = DEFAULT_STORE,
    form: Form = None,
    out: Out = None,
    full: Full = False,
) -> None:
    """Show what a bench measured."""
    _deliver(name, store, form, out, full)


@app.command(name="list")
def list_benches(store: StoreOption = DEFAULT_STORE) -> None:
    """List what was measured."""
    from mmbu_async import api
    from mmbu_async.bench.text import print_benches

    print_benches(api.benches(store=store), screen())


@app.command()
def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="A [B]",
            help="Two benches, or one that measured two endpoints.",
            autocompletion=bench_names,
        ),
    ],
    store: StoreOption = DEFAULT_STORE,
    form: Annotated[str | None, typer.Option("--format", help="text or json.")] = None,
    out: Out = None,
) -> None:
    """Compare two benches load by load, or the two endpoints of one, with intervals."""
    from mmbu_async import api
    from mmbu_async.bench.compare_text import print_comparison, to_json
    from mmbu_async.cli.forms import deliver

    if len(names) > 2:
        raise ConfigError("`mmbu bench compare` takes two benches, or one that measured two endpoints.")
    found = api.bench_compare(*names, store=store)
    deliver(partial(print_comparison, found), {"json": partial(to_json, found)}, screen(), form=form, out=out)


def complain_softly(text: str) -> None:
    """A line of progress, beside the result and not in it."""
    from rich.console import Console

    from mmbu_async.report import plain

    Console(stderr=True).print(plain.line(text), style="dim", markup=False, highlight=False, soft_wrap=True)


def _deliver(name: str, store: Path, form: str | None, out: Path | None, full: bool) -> None:
    from mmbu_async import api
    from mmbu_async.bench.forms import to_csv, to_json
    from mmbu_async.bench.text import print_report
    from mmbu_async.cli.forms import deliver

    report = api.bench_report(name, store=store)

    def html() -> str:
        # matplotlib takes half a second to import, which no other form should pay.
        from mmbu_async.bench.html import to_html

        return to_html(report)

    writers: tuple[Callable[[], str], ...] = (html, partial(to_json, report), partial(to_csv, report))
    forms = dict(zip(FORMS, writers, strict=True))
    deliver(partial(print_report, report, full=full), forms, screen(), form=form, out=out, width=120)
