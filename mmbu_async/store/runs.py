"""Runs, judges, sessions, and what a run has cost: small reads and writes over one connection."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, cast

from mmbu_async.errors import RunNotFoundError, StoreError
from mmbu_async.model import Json, Sample
from mmbu_async.store import codec
from mmbu_async.store.datasets import dataset_from
from mmbu_async.store.records import (
    CallTotals,
    JudgeRecord,
    RunCounts,
    RunRecord,
    RunTotals,
    SessionRecord,
    SharedVerdicts,
    Unpriced,
)
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import transaction

ROWS_A_PAGE = 1000
NAMES_SHOWN = 5


def create(connection: sqlite3.Connection, path: Path, values: Mapping[str, Any]) -> RunRecord:
    """Insert a run. Raises StoreError where the name is taken."""
    inserted = connection.execute(query("insert_run"), values).rowcount
    if not inserted:
        raise StoreError(
            f"{path}: there is a run '{values['name']}' already; resume it, or give another name with --name."
        )
    return get(connection, path, values["name"])


def get(connection: sqlite3.Connection, path: Path, name: str) -> RunRecord:
    """The run of this name. Raises RunNotFoundError naming those that come close."""
    found = connection.execute(query("runs"), {"name": codec.clean(name)}).fetchone()
    if found is None:
        names = [known for (known,) in connection.execute(query("run_names"))]
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or names[-NAMES_SHOWN:]
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "it has no runs yet."
        raise RunNotFoundError(f"{path}: there is no run '{name}'; {hint}")
    return run_from(found)


def run_from(values: tuple[Any, ...]) -> RunRecord:
    number, name, benchmark, model, endpoint, host, identity, config = values[:8]
    package_version, created_at, scored_at, scored_version = values[8:12]
    return RunRecord(
        id=number,
        name=name,
        benchmark=benchmark,
        dataset=dataset_from(values[12:19]),
        model=model,
        endpoint=endpoint,
        host=host,
        identity=codec.load(identity),
        config=codec.load(config),
        judge=None if values[19] is None else judge_from(values[19:22]),
        package_version=package_version,
        created_at=created_at,
        scored_at=scored_at,
        scored_version=scored_version,
    )


def judge_from(values: tuple[Any, ...]) -> JudgeRecord:
    return JudgeRecord(id=values[0], name=values[1], identity=codec.load(values[2]))


def judge(connection: sqlite3.Connection, name: str, identity: Mapping[str, Json], now: float) -> JudgeRecord:
    """The judge of this identity; a new one gets `name`, or `name-2`, `name-3` where it is taken."""
    with transaction(connection):
        return find_or_make_judge(connection, name, codec.dump(dict(identity)), now)[0]


def find_or_make_judge(
    connection: sqlite3.Connection, name: str, identity: str, now: float
) -> tuple[JudgeRecord, bool]:
    """The same inside an open transaction, and whether it is new; `identity` is canonical JSON."""
    found = connection.execute(query("judge_of_identity"), {"identity": identity}).fetchone()
    if found is not None:
        return judge_from(found), False
    taken = {known for (known,) in connection.execute(query("judge_names"))}
    name = codec.clean(name)
    free = next(one for one in (name if n == 1 else f"{name}-{n}" for n in count(1)) if one not in taken)
    connection.execute(query("insert_judge"), {"name": free, "identity": identity, "now": now})
    found = connection.execute(query("judge_of_identity"), {"identity": identity}).fetchone()
    return judge_from(found), True


def select(
    connection: sqlite3.Connection, run_id: int, keep: Callable[[Sample], bool] | None, limit: int | None
) -> int:
    """Make the first `limit` rows that `keep` accepts part of the run; None: all. Rows are only ever added.
    Returns how many rows the run has now."""
    dataset, first = connection.execute(query("dataset_of_run"), {"run": run_id}).fetchone()
    span = {"run": run_id, "dataset": dataset, "first": first}
    if keep is None:
        connection.execute(query("select_first"), {**span, "limit": -1 if limit is None else limit})
    else:
        with transaction(connection):
            _select_kept(connection, span, keep, limit)
    (selected,) = connection.execute(query("selected"), {"run": run_id}).fetchone()
    return int(selected)


def _select_kept(
    connection: sqlite3.Connection,
    span: dict[str, int],
    keep: Callable[[Sample], bool],
    limit: int | None,
) -> None:
    taken = 0
    while limit is None or taken < limit:
        page = connection.execute(query("dataset_page"), {**span, "n": ROWS_A_PAGE}).fetchall()
        if not page:
            return
        span = {**span, "first": page[-1][0] + 1}
        kept = [(span["run"], values[0]) for values in page if keep(codec.sample_from(values[1:])[0])]
        kept = kept if limit is None else kept[: limit - taken]
        connection.executemany(query("select_one"), kept)
        taken += len(kept)


def begin_session(connection: sqlite3.Connection, values: Mapping[str, Any]) -> int:
    number = connection.execute(query("begin_session"), values).lastrowid
    return cast(int, number)


def session_from(values: tuple[Any, ...]) -> SessionRecord:
    number, run_id, kind, started_at, ended_at, ended, host, pid, package_version, config = values
    return SessionRecord(
        id=number,
        run_id=run_id,
        kind=kind,
        started_at=started_at,
        ended_at=ended_at,
        ended=ended,
        host=host,
        pid=pid,
        package_version=package_version,
        config=codec.load(config),
    )


def sessions(connection: sqlite3.Connection, run_id: int) -> tuple[SessionRecord, ...]:
    return tuple(map(session_from, connection.execute(query("sessions"), {"run": run_id})))


def counts(connection: sqlite3.Connection, run_id: int) -> RunCounts:
    selected, completed, failed, judged, unjudged, scored, ungraded, by_verdict, to_judge = (
        connection.execute(query("counts"), {"run": run_id}).fetchone()
    )
    return RunCounts(
        selected=selected,
        completed=completed,
        failed=failed,
        pending=selected - completed - failed,
        judged=judged,
        unjudged=unjudged,
        scored=scored,
        ungraded=ungraded,
        by_verdict=by_verdict,
        to_judge=to_judge,
    )


def totals(connection: sqlite3.Connection, run_id: int) -> RunTotals:
    made: dict[int | None, CallTotals] = {}
    unpriced = {False: Unpriced(), True: Unpriced()}
    first: list[float] = []
    last: list[float] = []
    for judge_id, *sums, first_at, last_at in connection.execute(query("totals"), {"run": run_id}):
        made[judge_id] = _call_totals(sums[:-4])
        tokens_in, tokens_out, unseen, most_in = sums[-4:]
        before = unpriced[judge_id is not None]
        unpriced[judge_id is not None] = Unpriced(
            input_tokens=before.input_tokens + tokens_in,
            output_tokens=before.output_tokens + tokens_out,
            unseen=before.unseen + unseen,
            most_input_tokens=max(before.most_input_tokens, most_in),
        )
        first.append(first_at)
        last.append(last_at)
    judges = {judge_id: found for judge_id, found in made.items() if judge_id is not None}
    shared = connection.execute(query("shared_verdicts"), {"run": run_id})
    return RunTotals(
        infer=made.get(None, CallTotals()),
        judge=sum(judges.values(), CallTotals()),
        judges=judges,
        unpriced_infer=unpriced[False],
        unpriced_judge=unpriced[True],
        failures=dict(connection.execute(query("failures"), {"run": run_id}).fetchall()),
        shared=tuple(SharedVerdicts(judge=name, verdicts=n, usd_each=usd) for name, n, usd in shared),
        sessions=sessions(connection, run_id),
        first_call_at=min(first, default=None),
        last_reply_at=max(last, default=None),
    )


def _call_totals(sums: list[Any]) -> CallTotals:
    """From the sums in the order of the query `totals`."""
    calls, ok, retries, rate_limited, *tokens, unreported, cost, cost_unknown, seconds = sums
    return CallTotals(
        calls=calls,
        ok=ok,
        retries=retries,
        rate_limited=rate_limited,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        reasoning_tokens=tokens[2],
        cached_tokens=tokens[3],
        cache_write_tokens=tokens[4],
        usage_unreported=unreported,
        cost_usd=cost,
        cost_unknown=cost_unknown,
        seconds=seconds,
    )
