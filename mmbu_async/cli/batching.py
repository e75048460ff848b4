"""`mmbu batches`: what of a run is out at a provider, and calling it back."""

from __future__ import annotations

from typing import Annotated

import typer

from mmbu_async.cli.arguments import DEFAULT_STORE, RunName, StoreOption
from mmbu_async.cli.ends import finish, logged, screen
from mmbu_async.errors import ConfigError


def batches(
    name: RunName,
    cancel: Annotated[
        bool,
        typer.Option(
            "--cancel",
            help="Cancel those that are out, wait for their end, and store what was done (and is charged).",
        ),
    ] = False,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget",
            help="Give the rows of those that are out back to be asked anew, whatever the provider still "
            "does and charges: for batches that can never be fetched.",
        ),
    ] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """List the batches of a run: who is asked, how many requests, and where they stand."""
    from mmbu_async import api
    from mmbu_async.report.batches import print_batches
    from mmbu_async.report.words import counted

    if cancel and forget:
        raise ConfigError("--cancel waits for what --forget gives up: give one of them.")
    if forget:
        count = api.forget_batches(name, store=store)
        said = (
            f"{counted(count, 'batch is', 'batches are')} forgotten; `mmbu resume` asks their rows anew."
            if count
            else "No batch is out: nothing to forget."
        )
        screen().print(said, markup=False)
        return
    if cancel:
        with logged(False, None, None) as watch:
            result = api.call_back_sync(name, store=store, watch=watch, check=False)
        finish(result)
        return
    found = api.batches(name, store=store)
    print_batches(found.batches, found.judges, screen())
