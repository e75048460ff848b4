"""Every form in which a run is told of, by the command that gives it: what tests of all forms go through."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

import pyarrow.parquet as pq
from typer.testing import CliRunner

from mmbu_async.cli.main import app

Kind = Literal["text", "markdown", "json", "html"]

OTHER = "other run"
"""Name of the second run, with which the first is compared."""


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A command that prints."""

    kind: Kind
    command: Sequence[str]
    """RUN stands for the run's name, OTHER for the other run's."""

    def said(self, run: str, store: Path) -> str:
        places = {"RUN": run, "OTHER": OTHER}
        return invoked([places.get(word, word) for word in self.command], store)


PRINTED: Mapping[str, Printed] = {
    "report": Printed(kind="text", command=("report", "RUN")),
    "report, all strata": Printed(kind="text", command=("report", "RUN", "--all")),
    "report, markdown": Printed(kind="markdown", command=("report", "RUN", "--format", "markdown")),
    "report, json": Printed(kind="json", command=("report", "RUN", "--format", "json")),
    "report, leaderboard": Printed(kind="json", command=("report", "RUN", "--format", "leaderboard")),
    "report, card": Printed(kind="markdown", command=("report", "RUN", "--format", "card")),
    "report, html": Printed(kind="html", command=("report", "RUN", "--format", "html")),
    "status": Printed(kind="text", command=("status",)),
    "status of one": Printed(kind="text", command=("status", "RUN")),
    "plan": Printed(kind="text", command=("plan", "RUN")),
    "compare": Printed(kind="text", command=("compare", "RUN", "OTHER")),
    "compare, all strata": Printed(kind="text", command=("compare", "RUN", "OTHER", "--all")),
    "compare, markdown": Printed(
        kind="markdown", command=("compare", "RUN", "OTHER", "--format", "markdown")
    ),
    "compare, html": Printed(kind="html", command=("compare", "RUN", "OTHER", "--format", "html")),
    "compare, json": Printed(kind="json", command=("compare", "RUN", "OTHER", "--format", "json")),
}


def invoked(command: Sequence[str], store: Path) -> str:
    """What the command printed. Its errors are raised."""
    name, *rest = command
    result = CliRunner().invoke(app, [name, "--store", str(store), *rest], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


# ---------------------------------------------------------------- files

Rows = list[dict[str, Any]]


def read_jsonl(path: Path) -> Rows:
    # By whatever Python takes for the end of a line, as careless readers do.
    return [strict_json(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_csv(path: Path) -> Rows:
    csv.field_size_limit(10**8)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def read_parquet(path: Path) -> Rows:
    return list(pq.read_table(path).to_pylist())


def read_object(path: Path) -> Rows:
    return [strict_json(path.read_text(encoding="utf-8"))]


@dataclass(frozen=True, kw_only=True)
class Written:
    """An export."""

    ending: str
    flags: Sequence[str] = ()
    read: Callable[[Path], Rows]

    def rows(self, run: str, store: Path, folder: Path) -> Rows:
        path = folder / f"rows{self.ending}"
        invoked(["export", run, "--out", str(path), *self.flags], store)
        return self.read(path)


WRITTEN: Mapping[str, Written] = {
    "jsonl": Written(ending=".jsonl", read=read_jsonl),
    "csv": Written(ending=".csv", read=read_csv),
    "parquet": Written(ending=".parquet", read=read_parquet),
    "long": Written(ending=".parquet", flags=("--long", "--every-judge"), read=read_parquet),
    "leaderboard": Written(ending=".leaderboard.json", read=read_object),
    "submission": Written(ending=".submission.json", read=read_object),
}


def strict_json(text: str) -> Any:
    """JSON as its standard has it: without NaN and infinity."""
    return json.loads(text, parse_constant=_not_json)


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")
