"""`mmbu serve`: the service, from flags and a settings file."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Annotated

import typer

from mmbu_async.cli.arguments import STORE_VARIABLE
from mmbu_async.cli.ends import logged, screen

_STORE_HELP = "The SQLite file that holds runs and jobs (default mmbu.sqlite)."


def serve(
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Address to listen at. Any but this machine's own needs MMBU_SERVICE_TOKEN."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0: any free one.")] = 8765,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", envvar=STORE_VARIABLE, show_envvar=False, help=_STORE_HELP, show_default=False
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            help="TOML file of the service: store, data, benchmarks, endpoints; flags win over it.",
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data", metavar="NAME=FOLDER", help="A data set that runs may name; any number of times."
        ),
    ] = None,
    max_runs: Annotated[
        int | None,
        typer.Option(
            "--max-runs", min=1, max=64, help="Runs at work at once (default 4).", show_default=False
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A further host name under which the service is reached; any number of times.",
        ),
    ] = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Log lines as JSON.")] = False,
    log_file: Annotated[Path | None, typer.Option("--log-file", help="Write the log to a file.")] = None,
) -> None:
    """Serve the HTTP API and the live page: many runs, one scheduler, the limits of a key shared."""
    from mmbu_async import api
    from mmbu_async.service.auth import token_from
    from mmbu_async.service.server import Place
    from mmbu_async.service.server import serve as serve_until_stopped
    from mmbu_async.service.settings import data_sets, load_service

    flags = {"store": store, "max_runs": max_runs, "data": data_sets(data or []) or None}
    settings = load_service(config, flags)
    place = Place(host=host, port=port, names=tuple(allow_host or ()), token=token_from(os.environ))

    def ready(address: str) -> None:
        guarded = "it asks for the token; " if place.token is not None else ""
        screen().print(
            f"mmbu-async serves {settings.store}: {address} ({guarded}Ctrl-C ends, the next start goes on)",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    # On Windows Ctrl-C comes as an exception; elsewhere the server hears the signal.
    with logged(log_json, log_file, None), contextlib.suppress(KeyboardInterrupt):
        api.run_sync(lambda: serve_until_stopped(settings, place, ready=ready))
