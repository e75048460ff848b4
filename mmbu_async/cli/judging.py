"""`mmbu judges`: a run's judges beside each other and beside people."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mmbu_async.cli.arguments import DEFAULT_STORE, RunName, StoreOption
from mmbu_async.cli.ends import screen


def judges(
    name: RunName,
    store: StoreOption = DEFAULT_STORE,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="CSV file with the labels that people gave: a column of row ids (row_id or id) and one of "
            "labels (label, human or correct): 1 or 0, true or false, yes or no, right or wrong.",
        ),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id-column", help="Column of the row ids in --labels.")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option("--label-column", help="Column of the labels in --labels.")
    ] = None,
    disagreements: Annotated[
        Path | None,
        typer.Option(
            "--disagreements",
            help="CSV file for every row on which judges, or a judge and a person, differ. Its column "
            "`human` can be filled in: the file is then one of --labels.",
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="text, markdown or json (default: by the name of --out)"),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write to a file.")] = None,
) -> None:
    """Set a run's judges beside each other and beside people: agreement, accuracy, rows that differ."""
    from mmbu_async import api
    from mmbu_async.cli.forms import deliver
    from mmbu_async.report.json import to_json
    from mmbu_async.report.judges_forms import judges_to_markdown, print_judges

    found = api.judges(
        name,
        store=store,
        labels=labels,
        id_column=id_column,
        label_column=label_column,
        disagreements=disagreements,
    )
    deliver(
        partial(print_judges, found),
        {"markdown": partial(judges_to_markdown, found), "json": partial(to_json, found)},
        screen(),
        form=form,
        out=out,
    )
    if disagreements is not None:
        said = f"wrote {found.differing:,} rows to {disagreements}"
        typer.echo(said, err=out is None)
