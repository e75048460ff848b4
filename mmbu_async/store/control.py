"""What processes ask of the one that works on a run. The file is the only thing they share.

Each request has a number that rises; the process at work looks about once a second, does what is asked, and
notes the number. Limits are kept with the run's settings too, so that they hold for later sessions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mmbu_async.model import Json
from mmbu_async.store import codec
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import transaction

Limits = Mapping[str, Mapping[str, Json]]
"""Side -> setting -> value. A side is '' (the model under test), `judge`, or a judge's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What is asked of the process at work, since its session began."""

    asked: int
    """Number of the newest request."""
    asked_at: float
    seen: int
    """Number of the newest request that it has done."""
    paused: bool
    limits: Limits


NOTHING = Control(asked=0, asked_at=0.0, seen=0, paused=False, limits={})


def read(connection: sqlite3.Connection, run_id: int) -> Control:
    found = connection.execute(query("control"), {"run": run_id}).fetchone()
    return NOTHING if found is None else control_from((*found[:-1], codec.load(found[-1])))


def control_from(values: Sequence[Any]) -> Control:
    asked, asked_at, seen, paused, limits = values
    return Control(asked=asked, asked_at=asked_at, seen=seen, paused=bool(paused), limits=limits)


def ask(
    connection: sqlite3.Connection,
    run_id: int,
    *,
    paused: bool | None,
    limits: Limits,
    settle: Callable[[Mapping[str, Json]], Mapping[str, Json]],
    now: float,
) -> int:
    """Ask, and let `settle` make the run's new settings of its present ones; returns the request's number.

    In one transaction, so that of two that ask at once neither undoes what the other did.
    """
    with transaction(connection):
        before = read(connection, run_id)
        joined = {side: {**before.limits.get(side, {}), **values} for side, values in limits.items()}
        values = {
            "run": run_id,
            "now": now,
            "paused": before.paused if paused is None else paused,
            "limits": codec.dump({**before.limits, **joined}),
        }
        connection.execute(query("ask"), values)
        if limits:
            (config,) = connection.execute(query("run_config"), {"run": run_id}).fetchone()
            settings = codec.dump(dict(settle(codec.load(config))))
            connection.execute(query("set_run_config"), {"run": run_id, "config": settings})
        return before.asked + 1


def settle(
    connection: sqlite3.Connection, run_id: int, settings: Callable[[Mapping[str, Json]], Mapping[str, Json]]
) -> None:
    """Make a run's settings of those that it has now, in one transaction: see `ask`."""
    with transaction(connection):
        (config,) = connection.execute(query("run_config"), {"run": run_id}).fetchone()
        made = codec.dump(dict(settings(codec.load(config))))
        connection.execute(query("set_run_config"), {"run": run_id, "config": made})
