"""Looking through the rows of a run: a filter, what it leaves, pages of it, and what stands next to a row.

A `Browser` holds what is filtered by as it was at one moment, in temporary tables of its own connection, so
that a filter reads some bytes a row and not the run's texts; rows themselves are read from the store when
they are shown. The connection only reads: it never holds up a run that is writing, however long it is open.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mmbu_async.store import codec, rows
from mmbu_async.store.connect import connect, named_errors
from mmbu_async.store.listed import Choices, ListedRow, Place, RowFilter, RowVerdict
from mmbu_async.store.records import RunRecord
from mmbu_async.store.rows import RowDetail
from mmbu_async.store.sql import query
from mmbu_async.store.traits import Traits
from mmbu_async.store.transactions import transaction

SLOTS = 16
"""Filters whose rows are remembered: the present one, its wider one, and some to go back to."""
CACHE_KIB = 32 * 1024


@dataclass(slots=True, kw_only=True)
class _Chosen:
    slot: int
    tally: Counter[tuple[str, str | None]]
    """(outcome, flip) -> rows."""


class Browser:
    """The rows of one run, and how they came out in one beside it. For use by several threads."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        run: RunRecord,
        beside: RunRecord | None,
        earlier: Browser | None,
        clock: Callable[[], float],
    ) -> None:
        self.run = run
        self.beside = beside
        self.made_at = clock()
        """Unix seconds of the moment whose outcomes it shows."""
        self._connection = connection
        self._path = path
        self._lock = threading.Lock()
        self._slots: dict[RowFilter, _Chosen] = {}
        self._last_slot = 0
        self._version, self._traits = _fill(connection, run, beside, earlier)
        self.choices, self._odd_rows = _choices(connection, self._traits)
        self._chosen(connection, RowFilter())
        self.took_s = clock() - self.made_at
        """Seconds that it took to make."""

    @classmethod
    def open(
        cls,
        path: Path,
        run: RunRecord,
        beside: RunRecord | None = None,
        *,
        earlier: Browser | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Read how all rows stand now. `earlier`: one over the same run; its strata are not read again."""
        connection = connect(path, create=False, read_only=True)
        try:
            with named_errors(path):
                return cls(connection, path, run, beside, earlier, clock)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        with self._reading():
            self._connection.close()

    @property
    def behind(self) -> bool:
        """Whether anything was written to the store since."""
        with self._reading() as connection:
            return _version(connection) != self._version

    def tally(self, wanted: RowFilter) -> Counter[tuple[str, str | None]]:
        """(outcome, flip) -> rows that the filter leaves."""
        with self._reading() as connection:
            return self._chosen(connection, wanted).tally

    def page(
        self, wanted: RowFilter, n: int, *, after: int = 0, before: int | None = None
    ) -> list[ListedRow]:
        """The `n` rows of the filter after a key, or the last `n` before one; in order of position."""
        with self._reading() as connection:
            slot = self._chosen(connection, wanted).slot
            name, key = ("keys_after", after) if before is None else ("keys_before", before)
            keys = [key for (key,) in connection.execute(query(name), {"slot": slot, "key": key, "n": n})]
            values = {"keys": codec.dump(keys), "run": self.run.id, "beside": _id(self.beside)}
            return list(map(_listed, connection.execute(query("listed_rows"), values)))

    def key_at(self, wanted: RowFilter, number: int) -> int | None:
        """Key of the row that so many rows of the filter come before."""
        with self._reading() as connection:
            slot = self._chosen(connection, wanted).slot
            found = connection.execute(query("key_at"), {"slot": slot, "number": number}).fetchone()
        return None if found is None else int(found[0])

    def place(self, wanted: RowFilter, key: int) -> Place:
        with self._reading() as connection:
            slot = self._chosen(connection, wanted).slot
            inside, before, previous, following = connection.execute(
                query("place_of_row"), {"slot": slot, "key": key}
            ).fetchone()
        return Place(inside=bool(inside), before=before, previous=previous, next=following)

    def row(self, key: int) -> RowDetail | None:
        """Everything known of a row as it is now; None where the run has none of this key."""
        with self._reading() as connection:
            return rows.by_key(connection, self.run.id, key)

    def beside_row(self, key: int) -> RowDetail | None:
        """The same row in the run beside this one."""
        if self.beside is None:
            return None
        with self._reading() as connection:
            found = connection.execute(query("beside_key"), {"key": key}).fetchone()
            if found is None or found[0] is None:
                return None
            return rows.by_key(connection, self.beside.id, found[0])

    def verdicts(self, run: RunRecord, key: int) -> list[RowVerdict]:
        """Every judge's last word on a row; `key` is that of the run's own dataset."""
        with self._reading() as connection:
            found = connection.execute(query("row_verdicts"), {"run": run.id, "key": key}).fetchall()
        return [
            RowVerdict(
                judge=name,
                identity=codec.load(identity),
                correct=None if correct is None else bool(correct),
                reply=reply,
                prompt_sha256=(sha or "").lower(),
                shared=bool(shared),
            )
            for name, identity, correct, reply, sha, shared in found
        ]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, named_errors(self._path):
            yield self._connection

    def _chosen(self, connection: sqlite3.Connection, wanted: RowFilter) -> _Chosen:
        """The slot of a filter: found again, or made out of a wider one's."""
        chosen = self._slots.pop(wanted, None) or self._choose(connection, wanted)
        # Last in: the last used one is the last to be forgotten.
        self._slots[wanted] = chosen
        if len(self._slots) > SLOTS:
            forgotten = self._slots.pop(next(iter(self._slots)))
            connection.execute(query("forget_chosen"), {"slot": forgotten.slot})
        return chosen

    def _choose(self, connection: sqlite3.Connection, wanted: RowFilter) -> _Chosen:
        values: dict[str, Any] = {"run": self.run.id}
        if wanted == RowFilter():
            statement = "choose_all"
        elif wanted != wanted.wider:
            statement = "choose_by_outcome"
            values |= {"from": self._chosen(connection, wanted.wider).slot}
            values |= {"outcome": wanted.outcome, "flip": wanted.flip}
        elif wanted.text:
            statement = "choose_by_text"
            values |= {"from": self._chosen(connection, wanted.plain).slot}
            values |= {"text": _pattern(wanted.text), "plain": wanted.text}
        else:
            statement = "choose_by_kind"
            values |= {"family": wanted.family, "how": wanted.how, "finish": wanted.finish}
            values |= {"disputed": wanted.disputed, "traits": self._traits.pattern(wanted.strata)}
        self._last_slot += 1
        slot = self._last_slot
        values = {name: codec.clean(each) if isinstance(each, str) else each for name, each in values.items()}
        connection.execute(query(statement), values | {"slot": slot})
        if statement == "choose_by_text" and self._odd_rows:
            connection.execute(query("choose_odd_by_text"), values | {"slot": slot})
        counts = connection.execute(query("tally"), {"slot": slot})
        return _Chosen(slot=slot, tally=Counter({(outcome, flip): count for outcome, flip, count in counts}))


def _fill(
    connection: sqlite3.Connection, run: RunRecord, beside: RunRecord | None, earlier: Browser | None
) -> tuple[int, Traits]:
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    for table in ("new_standing", "new_traits", "new_listing", "new_texts", "new_chosen"):
        connection.execute(query(table))
    # One transaction: both runs as they are at the same moment.
    with transaction(connection, "DEFERRED"):
        version = _version(connection)
        for each in {run.id, run.id if beside is None else beside.id}:
            connection.execute(query("fill_standing"), {"run": each})
        (selected,) = connection.execute(query("selected"), {"run": run.id}).fetchone()
        # Rows are only ever added to a run: as many are the same.
        known = earlier._traits if earlier is not None and earlier.run.id == run.id else None
        if known is None or len(known.rows) != selected:
            known = Traits.read(connection, run.id)
        connection.executemany(query("put_traits"), known.rows)
        places = {
            "run": run.id,
            "beside": _id(beside),
            "beside_dataset": None if beside is None else beside.dataset.id,
        }
        connection.execute(query("fill_listing"), places)
        connection.execute(query("fill_texts"))
    connection.execute(query("drop_standing"))
    connection.execute(query("drop_traits"))
    return version, known


def _choices(connection: sqlite3.Connection, traits: Traits) -> tuple[Choices, int]:
    values = {name: _values(connection, name) for name in ("family", "how", "finish")}
    disputed, odd = connection.execute(query("listed_marks")).fetchone()
    choices = Choices(
        families=values["family"],
        hows=values["how"],
        finishes=values["finish"],
        disputed=disputed,
        strata=traits.counts,
    )
    return choices, odd


def _version(connection: sqlite3.Connection) -> int:
    """Another number whenever another connection has committed."""
    (number,) = connection.execute("PRAGMA data_version").fetchone()
    return int(number)


def _values(connection: sqlite3.Connection, column: str) -> Mapping[str, int]:
    found = connection.execute(query("listed_values"), {"column": column})
    return {value: count for _, value, count in found if value is not None}


def _id(run: RunRecord | None) -> int | None:
    return None if run is None else run.id


def _pattern(text: str) -> str:
    """For LIKE with `\\` as its escape: the text anywhere."""
    escaped = text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    return f"%{escaped}%"


def _listed(values: tuple[Any, ...]) -> ListedRow:
    key, position, row_id, family, question, truth, images, outcome, how, finish = values[:10]
    disputed, flip, answer, beside_outcome, beside_answer = values[10:]
    return ListedRow(
        key=key,
        position=position,
        row_id=row_id,
        family=family,
        question=question,
        truth=truth,
        images=len(codec.load(images)),
        outcome=outcome,
        how=how,
        finish=finish,
        disputed=bool(disputed),
        flip=flip,
        answer=answer,
        beside_outcome=beside_outcome,
        beside_answer=beside_answer,
    )
