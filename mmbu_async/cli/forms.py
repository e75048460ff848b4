"""The forms in which a page is given out: printed, or written to a file whose ending says the form."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import typer
from rich.console import Console

from mmbu_async.errors import ConfigError

TEXT = "text"
ENDINGS = {
    ".leaderboard.json": "leaderboard",
    ".card.md": "card",
    ".md": "markdown",
    ".json": "json",
    ".html": "html",
    ".csv": "csv",
    ".txt": TEXT,
}
"""Longer ones first: the first that fits is taken."""


def deliver(
    print_text: Callable[[Console], None],
    forms: Mapping[str, Callable[[], str]],
    console: Console,
    *,
    form: str | None,
    out: Path | None,
    width: int = 100,
) -> None:
    """Print the page, or write it to `out`. `forms` are those beside text, by name; `width` is that of a text
    in a file, in columns. Raises ConfigError for a form that is none of them, or a file that cannot be."""
    chosen = chosen_form(tuple(forms), form=form, out=out)
    if out is None:
        if chosen == TEXT:
            print_text(console)
        else:
            console.out(forms[chosen](), highlight=False, end="")
        return
    with writing(out):
        if chosen == TEXT:
            with out.open("w", encoding="utf-8") as file:
                print_text(Console(file=file, width=width))
        else:
            out.write_text(forms[chosen](), encoding="utf-8")
    tell_of(out)


def chosen_form(forms: Collection[str], *, form: str | None, out: Path | None) -> str:
    """The form that is asked for: text, or one of `forms`. Raises ConfigError for any other."""
    known = (TEXT, *forms)
    chosen = form or (TEXT if out is None else _named(out, known))
    if chosen in known:
        return chosen
    if form:
        raise ConfigError(f"--format {form}: is none of {', '.join(known)}.")
    endings = ", ".join(end for end, name in ENDINGS.items() if name in known)
    raise ConfigError(f"--out {out}: its ending names no form; choose one of {endings}, or say --format.")


def check_writable(out: Path | None) -> None:
    """Before work that costs something: that its result has a folder to go to. Raises ConfigError."""
    if out is not None and not out.parent.is_dir():
        raise ConfigError(f"{out}: there is no folder {out.parent}; make it, or choose another place.")


def tell_of(file: Path) -> None:
    """That a file was written: on standard error, for the file may be standard output."""
    from mmbu_async.report import plain

    typer.echo(plain.line(f"wrote {file}"), err=True)


def _named(out: Path, forms: Collection[str]) -> str:
    """The form that the file's name asks for, among these; '' where it asks for none."""
    name = out.name.lower()
    return next((form for end, form in ENDINGS.items() if name.endswith(end) and form in forms), "")


@contextlib.contextmanager
def writing(file: Path) -> Iterator[None]:
    """What the system says against it is one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"{file}: cannot be written ({reason}); choose another place.") from None
