"""Which rows a run is about: `--task`, `--where`, `--limit`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence

from mmbu_async.errors import ConfigError
from mmbu_async.model import Json, Sample


def keeper(tasks: Sequence[str], where: Mapping[str, str]) -> Callable[[Sample], bool] | None:
    """A test for one sample; None keeps all.

    A task matches when the row's `task` starts with it or has it as a topic. A column matches when its value
    is the given one, white space at the ends and case left out.
    """
    if not tasks and not where:
        return None
    wanted_tasks = [_plain(task) for task in tasks]
    wanted = {column: _plain(value) for column, value in where.items()}

    def keep(sample: Sample) -> bool:
        task = _plain(sample.fields.get("task"))
        topics = [topic.strip() for topic in task.split("|")]
        if wanted_tasks and not any(task.startswith(w) or w in topics for w in wanted_tasks):
            return False
        return all(_plain(sample.fields.get(column)) == value for column, value in wanted.items())

    return keep


def check_columns(where: Mapping[str, str], columns: Sequence[str]) -> None:
    """Raise ConfigError for a `--where` column that the dataset does not have."""
    for column in where:
        if column not in columns:
            near = difflib.get_close_matches(column, columns, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"columns are: {', '.join(columns)}."
            raise ConfigError(f"--where {column}={where[column]}: the data has no such column; {hint}")


def _plain(value: Json) -> str:
    return "" if value is None else str(value).strip().lower()
