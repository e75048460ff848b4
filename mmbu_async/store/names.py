"""The names that rows give to their columns and to the attributes of their strata.

SQLite cuts a name at a NUL, so that rows which hold one are read by a reader of JSON. They are few or none.
"""

from __future__ import annotations

import sqlite3

from mmbu_async.store import codec
from mmbu_async.store.sql import query


def columns(connection: sqlite3.Connection, dataset_id: int) -> list[str]:
    """Of the dataset's rows, in the order of the alphabet."""
    return _names(connection, "columns", "columns_with_nul", dataset_id)


def attributes(connection: sqlite3.Connection, run_id: int) -> list[str]:
    """Of the strata of the run's selected rows, in the order of the alphabet."""
    return _names(connection, "attributes", "attributes_with_nul", run_id)


def _names(connection: sqlite3.Connection, plain: str, with_nul: str, number: int) -> list[str]:
    found = {name for (name,) in connection.execute(query(plain), {"of": number})}
    for (text,) in connection.execute(query(with_nul), {"of": number}):
        found.update(codec.load(text))
    return sorted(found)
