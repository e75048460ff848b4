"""SQL stands in `.sql` files. Here they are read, once a process and at first use."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

FILES = (
    *("queries.sql", "comparing.sql", "exporting.sql", "browsing.sql", "judging.sql", "upkeep.sql"),
    *("merging.sql", "control.sql", "benching.sql", "learning.sql", "batch_jobs.sql", "jobs.sql"),
)
"""Files of named statements; no two statements have one name."""


@cache
def schema() -> str:
    """The newest schema, as one script."""
    return _text("schema.sql")


def query(name: str) -> str:
    """The statement that stands under `-- name: NAME` in one of FILES."""
    return _queries()[name]


@cache
def _queries() -> dict[str, str]:
    parts = [""]
    for file in FILES:
        parts += re.split(r"^-- name: (\w+)$", _text(file), flags=re.MULTILINE)[1:]
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _text(file: str) -> str:
    return resources.files("mmbu_async.store").joinpath(file).read_text(encoding="utf-8")
