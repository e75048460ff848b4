"""What all commands share before and after their work: log, output, errors, the last words."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from typer.exceptions import TyperException

from mmbu_async.wrong_values import wrong


@contextlib.contextmanager
def logged(json: bool, file: Path | None, metrics_port: int | None) -> Iterator[Any]:
    """Logs to standard error or a file, and the progress display that fits beside them; metrics and spans
    where they are asked for."""
    from mmbu_async.pipeline import logs
    from mmbu_async.pipeline.progress import watcher
    from mmbu_async.telemetry import observed

    console = Console(stderr=True)
    handler = logs.configure(json=json, file=file, console=console)
    try:
        with observed(metrics_port=metrics_port):
            yield watcher(console)
    finally:
        handler.close()


def finish(result: Any, *, rejudged: bool = False) -> None:
    """The report, then why the session ended and how to go on."""
    from mmbu_async.cli import show

    show.report(result.report(), screen())
    show.how_to_go_on(result, screen(), rejudged=rejudged)
    if result.stopped is not None:
        complain(str(result.stopped))
    raise typer.Exit(result.exit_code)


class _Screen(Console):
    def on_broken_pipe(self) -> None:
        """The reader went away (`mmbu report RUN | head`): the rest is for nobody, and that is no failure.
        Rich would exit with 1, which hides the command's own code from a script with `pipefail`."""
        self.quiet = True
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def screen() -> Console:
    return _Screen(soft_wrap=False)


def complain(text: str) -> None:
    """An error, in which the words of others (an endpoint's, a file name's) steer no terminal."""
    from mmbu_async.report import plain

    said = f"error: {plain.block(text)}"
    Console(stderr=True).print(said, style="red", markup=False, highlight=False, soft_wrap=True)


def usage(error: TyperException) -> str:
    """What is wrong with the command line. Typer lets pydantic check values, whose words are not ours."""
    said, cause = error.format_message(), error.__cause__
    if isinstance(cause, ValueError) and callable(errors := getattr(cause, "errors", None)):
        (problem,) = errors()
        said = said.replace(str(problem["msg"]), wrong(problem))
    return said


def let_loops_end_in_silence() -> None:
    """A Ctrl-C in the moment in which an event loop closes leaves its helper thread without a loop. What it
    has to say then, in a traceback of its own, means nothing to anybody; other threads' errors are shown."""
    plain = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        if not (isinstance(args.exc_value, RuntimeError) and str(args.exc_value) == "Event loop is closed"):
            plain(args)

    threading.excepthook = hook


def is_abort(error: BaseException) -> bool:
    """Whether the second Ctrl-C cancelled the run, or broke into an event loop that was being closed (which
    fails of that in its own words). Without a run asyncio is not even loaded."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and isinstance(error, asyncio.CancelledError):
        return True
    cause = error.__context__
    return isinstance(error, RuntimeError) and isinstance(cause, KeyboardInterrupt)
