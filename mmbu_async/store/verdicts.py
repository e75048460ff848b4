"""Verdicts that nobody was asked for: the majority of a panel's.

A majority is a judge of its own, whose identity names those of the panel; so scores, counts and reports need
not know of panels. Its verdicts are derived, can be derived again at any time, and are brought up to date
before anything is scored by them.
"""

from __future__ import annotations

import sqlite3

from mmbu_async.model import Json
from mmbu_async.store import codec
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import transaction


def derive(connection: sqlite3.Connection, run_id: int, judge_id: int) -> int:
    """Bring the verdicts of a majority up to date, all or none; returns how many changed. Of a judge that is
    asked itself nothing is derived."""
    (identity,) = connection.execute(query("judge_identity"), {"judge": judge_id}).fetchone()
    panel: Json = codec.load(identity).get("panel")
    if not panel:
        return 0
    members = codec.dump([codec.dump(member) for member in panel])
    values = {"run": run_id, "judge": judge_id, "panel": members, "size": len(panel)}
    # Looking takes no lock: a report on a finished run must not wait for another run that is writing.
    if connection.execute(query("majority_changes"), values).fetchone() is None:
        return 0
    put = query("put_derived").replace("/* verdicts */", query("majority_changes").rstrip(";"))
    with transaction(connection):
        return connection.execute(put, values).rowcount
