"""`mmbu compare` and `mmbu plan`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmbu_async.cli.arguments import DEFAULT_STORE, StoreOption
from mmbu_async.cli.completing import run_names
from mmbu_async.cli.ends import screen
from mmbu_async.errors import ConfigError

if TYPE_CHECKING:
    from mmbu_async.report.comparison import Comparison

WIDTH = 80
"""Columns of a text that is written to a file."""


def compare(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Names of runs; each later one is compared with the first.",
            autocompletion=run_names,
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    form: Annotated[
        str | None,
        typer.Option("--format", help="text, html, markdown or json (default: by the name of --out)"),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write to a file.")] = None,
    full: Annotated[bool, typer.Option("--all", help="Every stratum, not only the largest.")] = False,
    flips: Annotated[
        Path | None, typer.Option("--flips", help="CSV file for every row that flipped, with both answers.")
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            help="CSV file with the columns base, adapted (names of runs) and training_size (rows): win "
            "rates of adapted models, and their line over the training size.",
        ),
    ] = None,
) -> None:
    """Compare runs row by row: wins, ties, losses, paired intervals, p-values, rows that flipped."""
    if pairs is None:
        _compare(runs or [], store, form=form, out=out, full=full, flips=flips)
        return
    if runs or flips or full:
        what = "runs" if runs else "--flips" if flips else "--all"
        raise ConfigError(f"--pairs {pairs}: names the runs and makes one table; leave out {what}.")
    _compare_pairs(pairs, store, form=form, out=out)


def plan(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="A run whose accuracy to plan with; with it alone, its rows.",
            autocompletion=run_names,
        ),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    difference: Annotated[
        float | None,
        typer.Option(help="Difference of accuracy to be found, as 0.02: how many rows does it need?"),
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Rows at hand: which difference do they show?")] = None,
    accuracy: Annotated[
        float | None, typer.Option(help="About what accuracy the runs have (default 0.5, the most cautious).")
    ] = None,
    disagreement: Annotated[
        float | None,
        typer.Option(help="Share of the rows that one run has right and the other wrong, where known."),
    ] = None,
    power: Annotated[float, typer.Option(help="Probability to find the difference.")] = 0.8,
    alpha: Annotated[
        float, typer.Option(help="Probability to find a difference where there is none.")
    ] = 0.05,
) -> None:
    """Say how many rows show a wanted difference between two runs, or which difference so many rows show."""
    from mmbu_async import api
    from mmbu_async.report.plan_text import print_plan

    found = api.plan(
        run,
        store=store,
        difference=difference,
        rows=rows,
        accuracy=accuracy,
        disagreement=disagreement,
        power=power,
        alpha=alpha,
    )
    print_plan(found, screen())


def _compare(
    runs: list[str], store: Path, *, form: str | None, out: Path | None, full: bool, flips: Path | None
) -> None:
    from mmbu_async import api
    from mmbu_async.cli.forms import deliver, tell_of
    from mmbu_async.report.compare_markdown import comparison_to_markdown
    from mmbu_async.report.compare_text import print_comparison
    from mmbu_async.report.json import to_json
    from mmbu_async.report.text import MOST

    found = api.compare(runs, store=store, flips=flips)
    deliver(
        partial(print_comparison, found, most=None if full else MOST),
        {
            "html": partial(_html, found),
            "markdown": partial(comparison_to_markdown, found),
            "json": partial(to_json, found),
        },
        screen(),
        form=form,
        out=out,
        width=WIDTH,
    )
    if flips is not None:
        tell_of(flips)


def _html(found: Comparison) -> str:
    # matplotlib takes half a second to import, which no other form should pay.
    from mmbu_async.report.html import comparison_to_html

    return comparison_to_html(found)


def _compare_pairs(pairs: Path, store: Path, *, form: str | None, out: Path | None) -> None:
    from mmbu_async import api
    from mmbu_async.cli.forms import deliver
    from mmbu_async.report.adaptations_forms import adaptations_to_markdown, print_adaptations
    from mmbu_async.report.json import to_json

    found = api.compare_pairs(pairs, store=store)

    def html() -> str:
        # matplotlib takes half a second to import, which no other form should pay.
        from mmbu_async.report.html import adaptations_to_html

        return adaptations_to_html(found)

    forms: dict[str, Callable[[], str]] = {
        "html": html,
        "markdown": partial(adaptations_to_markdown, found),
        "json": partial(to_json, found),
    }
    deliver(partial(print_adaptations, found), forms, screen(), form=form, out=out, width=WIDTH)
