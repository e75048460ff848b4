"""`mmbu export`: rows of runs for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmbu_async.cli.arguments import DEFAULT_STORE, StoreOption
from mmbu_async.cli.completing import run_names
from mmbu_async.cli.ends import screen
from mmbu_async.errors import ConfigError

RunNames = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        help="Name of the run; several go into one file with --long.",
        autocompletion=run_names,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        help="File to write; its ending says the format: .jsonl, .csv, .parquet; .leaderboard.json for one "
        "flat object with the figures; .submission.json for the answers alone.",
    ),
]
Long = Annotated[
    bool,
    typer.Option(
        "--long",
        help="Long form for pandas, polars and R, as .parquet: a line for each value that a row has of each "
        "attribute, so that groupby(['run', 'attribute', 'value']) gives every table at once. Attribute "
        "'(all)' has each row once.",
    ),
]
EveryJudge = Annotated[
    bool,
    typer.Option(
        "--every-judge",
        help="With --long: also the rows as each further judge that was asked would score them; group by "
        "'judge' too.",
    ),
]


def export(
    names: RunNames,
    out: Out,
    store: StoreOption = DEFAULT_STORE,
    long: Long = False,
    every_judge: EveryJudge = False,
) -> None:
    """Write one row a sample with everything known of it, or the outcomes of several runs in long form."""
    from mmbu_async import api

    if long:
        lines = api.export_long(names, out, store=store, every_judge=every_judge)
        screen().print(f"wrote {lines:,} lines to {out}", markup=False)
        return
    if len(names) > 1:
        raise ConfigError("several runs go into one file in long form alone: add --long, or export each.")
    if every_judge:
        raise ConfigError("--every-judge is for the long form: add --long; other formats have all verdicts.")
    count = api.export(names[0], out, store=store)
    screen().print(f"wrote {count:,} {'row' if count == 1 else 'rows'} to {out}", markup=False)
