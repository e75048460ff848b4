"""What replies have taken so far, as far as an estimate needs it: some of a run's replies, never all."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from mmbu_async.model import Json, Usage
from mmbu_async.store import codec
from mmbu_async.store.sql import query


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord:
    """What the endpoint reported for one reply about a row of this family."""

    family: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPrompt:
    """Hash of what was put to a judge about a row, or would have been, and the verdict."""

    sha: bytes
    correct: bool


def known_judge(connection: sqlite3.Connection, identity: Mapping[str, Json]) -> int | None:
    found = connection.execute(
        query("judge_of_identity"), {"identity": codec.dump(dict(identity))}
    ).fetchone()
    return None if found is None else int(found[0])


def usages(connection: sqlite3.Connection, run_id: int, judge_id: int | None, n: int) -> list[UsageRecord]:
    (replies,) = connection.execute(query("replies_of_run"), {"run": run_id}).fetchone()
    values = {"run": run_id, "judge": judge_id, "n": n, "step": max(1, -(-replies // n))}
    return [
        UsageRecord(
            family=family,
            usage=Usage(
                input_tokens=given,
                output_tokens=made,
                cached_tokens=cached or 0,
                cache_write_tokens=written or 0,
            ),
        )
        for family, given, made, cached, written in connection.execute(query("usages"), values)
    ]


def judged_prompts(
    connection: sqlite3.Connection, run_id: int, judge_id: int, n: int
) -> dict[str, JudgedPrompt]:
    values = {"run": run_id, "judge": judge_id, "n": n}
    found = connection.execute(query("judged_prompts"), values)
    return {row_id: JudgedPrompt(sha=sha, correct=bool(correct)) for row_id, sha, correct in found}
