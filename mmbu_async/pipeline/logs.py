"""Structured logs: plain lines or JSON, each with the run's and the row's id where it has one."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path

import orjson
from rich.console import Console

from mmbu_async.errors import ConfigError
from mmbu_async.report.plain import block, line

RUN: ContextVar[str] = ContextVar("run", default="")
"""Name of the run that the current task works on; tasks inherit it."""


def ids_of(record: logging.LogRecord) -> dict[str, str]:
    """Run, row and kind of failure, as far as the record has them."""
    found = {"run": RUN.get(), "row": getattr(record, "row", ""), "kind": getattr(record, "kind", "")}
    return {name: str(value) for name, value in found.items() if value}


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update(ids_of(record))
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        # A file name that is no UTF-8 has surrogates in it; a log line is not lost for that.
        plain = {name: text.encode("utf-8", "backslashreplace").decode() for name, text in entry.items()}
        return orjson.dumps(plain).decode()


class PlainLines(logging.Formatter):
    """Time, level, message, and the ids in brackets: one line, in which neither an endpoint's words nor a
    row's id steer the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        ids = " ".join(f"{name}={value}" for name, value in ids_of(record).items())
        said = line(record.getMessage() + (f" [{ids}]" if ids else ""))
        text = f"{moment} {record.levelname.lower():7} {said}"
        return f"{text}\n{block(self.formatException(record.exc_info))}" if record.exc_info else text


class ThroughConsole(logging.Handler):
    """Prints above a live display instead of through it."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(self.format(record), markup=False, highlight=False, soft_wrap=True)


def configure(
    *,
    json: bool = False,
    file: Path | None = None,
    console: Console | None = None,
    level: int = logging.INFO,
) -> logging.Handler:
    """Send the package's records to `file`, to a console's terminal, or to standard error.

    Returns the handler that does it.
    """
    handler: logging.Handler
    if file is not None:
        try:
            handler = logging.FileHandler(file, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise ConfigError(
                f"the log file {file} cannot be written ({error.strerror}); name another with --log-file."
            ) from None
    elif console is not None and console.is_terminal:
        handler = ThroughConsole(console)
    else:
        handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if json or (file and file.suffix == ".jsonl") else PlainLines())
    logger = logging.getLogger("mmbu_async")
    for old in list(logger.handlers):
        logger.removeHandler(old)
        old.close()
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False
    return handler
