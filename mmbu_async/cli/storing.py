"""`mmbu store …`: looking after the file that holds the runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmbu_async.cli.arguments import DEFAULT_STORE, RunName, StoreOption
from mmbu_async.cli.ends import screen
from mmbu_async.errors import StoreError

if TYPE_CHECKING:
    from mmbu_async.store.merge import MergedRun

app = typer.Typer(help="Look after the store: copy, check, shrink, take apart, join.", no_args_is_help=True)

Out = Annotated[Path, typer.Argument(metavar="OUT.sqlite", help="File to write.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")]


@app.command()
def backup(out: Out, store: StoreOption = DEFAULT_STORE, force: Force = False) -> None:
    """Copy the store, also while runs write to it, into one file, which is looked through at the end."""
    from mmbu_async import api

    copied = api.store_backup(out, store=store, force=force)
    _say(f"wrote {out}: {_counted(copied.runs, 'run')}, {_size(copied.size)}, checked")


@app.command()
def check(store: StoreOption = DEFAULT_STORE) -> None:
    """Look through the whole file, whether it is sound and runs hold together; change nothing. Exits with 7
    where it is damaged."""
    from mmbu_async import api
    from mmbu_async.report import plain

    found = api.store_check(store=store)
    damaged = [finding for finding in found if finding.damage]
    for finding in (*damaged, *(finding for finding in found if not finding.damage)):
        _say(f"{'damage' if finding.damage else 'note'}: {plain.line(finding.text)}")
    if damaged:
        _say("The store is damaged: keep this file, and go on with an earlier copy of it.")
        raise typer.Exit(StoreError.exit_code)
    if any(finding.unlooked for finding in found):
        _say(f"{store} has no damage that SQLite knows of.")
    else:
        _say(f"{store} is sound.")


@app.command()
def vacuum(store: StoreOption = DEFAULT_STORE) -> None:
    """Rewrite the file without gaps. Refused while a run is at work."""
    from mmbu_async import api

    done = api.store_vacuum(store=store)
    _say(f"{store}: {_size(done.before)} before, {_size(done.after)} now")


@app.command()
def export(name: RunName, out: Out, store: StoreOption = DEFAULT_STORE, force: Force = False) -> None:
    """Write one run, with dataset, calls, verdicts, judges and scores, into a store file of its own."""
    from mmbu_async import api
    from mmbu_async.report import plain

    copied = api.store_export(name, out, store=store, force=force)
    _say(f"wrote {out}: run {plain.line(name)}, {_size(copied.size)}, checked")


@app.command()
def merge(
    other: Annotated[Path, typer.Argument(metavar="FROM.sqlite", help="Store to take runs from.")],
    store: StoreOption = DEFAULT_STORE,
    rename: Annotated[
        bool,
        typer.Option("--rename", help="Give a run a free name where one of its name is another experiment."),
    ] = False,
) -> None:
    """Take the runs of another store into this one. One run of two machines becomes one: one reply a row,
    every paid call kept. A second time only what has come since is added."""
    from mmbu_async import api

    merged = api.store_merge(other, store=store, rename=rename)
    for run in merged.runs:
        _say(_told(run))
    if not merged.runs:
        _say(f"{other} holds no runs.")


def _told(run: MergedRun) -> str:
    from mmbu_async.report import plain

    name = plain.line(run.name)
    if run.theirs != run.name:
        name = f"{name} ({plain.line(run.theirs)} there)"
    if run.new:
        return f"{name}: new, {_counted(run.rows, 'row')}, {_counted(run.calls, 'call')}"
    if not (run.rows or run.calls or run.verdicts):
        return f"{name}: nothing new"
    parts = [_counted(run.rows, "more row"), _counted(run.calls, "more call")]
    if run.second:
        parts.append(
            f"{_counted(run.second, 'row')} had a reply already: the second is kept as a paid call, not used"
        )
    if run.other_judge:
        parts.append("judged by another judge there, whose verdicts are kept beside")
    return f"{name}: {', '.join(parts[:2])}" + "".join(f"; {part}" for part in parts[2:])


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _say(text: str) -> None:
    screen().print(text, markup=False, highlight=False, soft_wrap=True)
