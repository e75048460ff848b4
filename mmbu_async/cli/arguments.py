"""Arguments and flags that several commands have alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmbu_async.cli.completing import run_names

DEFAULT_STORE = Path("mmbu.sqlite")
STORE_VARIABLE = "MMBU_STORE"
StoreOption = Annotated[
    Path,
    typer.Option(
        "--store", envvar=STORE_VARIABLE, show_envvar=False, help="The SQLite file that holds the runs."
    ),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="Name of the run; `mmbu status` lists them.", autocompletion=run_names
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        min=0,
        max=65535,
        help="Serve Prometheus metrics at this port of this machine while it works (0: any that is free).",
        rich_help_panel="Output",
        show_default=False,
    ),
]
