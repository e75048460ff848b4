"""Whether two runs, in two stores, are one: the same experiment, about rows that one selection can name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mmbu_async.model import Json
from mmbu_async.store import codec

CUT = 60
"""Characters of a setting that a sentence shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRun:
    """What decides it."""

    key: int
    dataset: int
    """Key in the store that takes the other run in."""
    identity: Mapping[str, Json]
    config: Mapping[str, Json]


def known_run(key: int, dataset: int, identity: str, config: str) -> KnownRun:
    """From the columns of `run`."""
    return KnownRun(key=key, dataset=dataset, identity=codec.load(identity), config=codec.load(config))


def differences(here: KnownRun, there: KnownRun) -> tuple[str, ...]:
    """A line for each thing that makes them two experiments; empty where they are one.

    A setting that an earlier version did not know counts as one that is none.
    """
    lines = _lines(here.identity, there.identity, sorted(here.identity.keys() | there.identity.keys()))
    if lines:
        return lines
    if here.dataset != there.dataset:
        return ("dataset: other rows",)
    if joined_selection(here.config, there.config) is None:
        return _lines(here.config, there.config, ["task", "where", "limit"])
    return ()


def joined_selection(here: Mapping[str, Json], there: Mapping[str, Json]) -> dict[str, Json] | None:
    """The settings by which a run is about the rows of both; None where no settings say that.

    Reports name the selection, and a resume may add rows of it, so it must be told.
    """
    if (here.get("where") or {}) != (there.get("where") or {}):
        return None
    ours, its = here.get("limit"), there.get("limit")
    tasks = [list(config.get("task") or ()) for config in (here, there)]
    if set(tasks[0]) == set(tasks[1]):
        return {"limit": None if ours is None or its is None else max(ours, its)}
    if ours is not None or its is not None:
        return None
    # No task stands for all of them.
    return {"task": [] if [] in tasks else list(dict.fromkeys(tasks[0] + tasks[1]))}


def _lines(here: Mapping[str, Json], there: Mapping[str, Json], names: list[str]) -> tuple[str, ...]:
    return tuple(
        f"{name}: {_shown(here.get(name))} here, {_shown(there.get(name))} there"
        for name in names
        if here.get(name) != there.get(name)
    )


def _shown(value: Json) -> str:
    text = codec.dump(value)
    return text if len(text) <= CUT else text[: CUT - 3] + "..."
