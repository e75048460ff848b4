"""Another set of verdicts becomes the run's in one transaction: judge, settings and all scores, or none."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import pytest

from mmbu_async.errors import StoreError
from mmbu_async.model import Answer, Score, Status
from mmbu_async.store import RunRecord, ScoreInput, Store, Writer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StoreKit

ROWS = 12
OLD = ("claude-sonnet-5", '{"limit":null}', {1}, {"first"}, ROWS)
NEW = ("local", '{"judge":"local"}', {2}, {"second"}, ROWS)
CONFIG = {"judge": "local"}

KILLED = """
import os, signal, sys
from pathlib import Path
from mmbu_async.model import Answer, Score, Status
from mmbu_async.store import Store

steps = int(sys.argv[2])
with Store.open(Path(sys.argv[1])) as store:
    run = store.run("night")

    def scored():
        for one in store.score_inputs(run.id, 2):
            yield one, Answer(text="second", how="tag"), Score(status=Status.SCORED, correct=True, tp=1)
        # From here on SQLite itself is killed, after so many of its own steps.
        seen = []
        def step():
            seen.append(1)
            if len(seen) > steps:
                os.kill(os.getpid(), signal.SIGKILL)
            return 0
        store._connection.set_progress_handler(step, 20)

    store.replace_scores(run.id, 2, scored(), package_version="2", now=8.0, publish={"judge": "local"})
"""


def published(path: Path) -> tuple[Any, ...]:
    """Judge, settings and scores of the run as one statement sees them, over a connection of its own."""
    with closing(sqlite3.connect(path)) as connection:
        name, config, judges, answers, rows = connection.execute(
            "SELECT judge.name, run.config, json_group_array(score.judge_id), json_group_array(answer), "
            "count(*) FROM run JOIN judge ON judge.id = run.judge_id JOIN score ON score.run_id = run.id"
        ).fetchone()
    return name, config, set(json.loads(judges)), set(json.loads(answers)), rows


def scored(store: Store, run: RunRecord, judge: int, text: str) -> Iterator[tuple[ScoreInput, Answer, Score]]:
    for one in store.score_inputs(run.id, judge):
        yield one, Answer(text=text, how="tag"), Score(status=Status.SCORED, correct=True, tp=1)


@pytest.fixture
async def judged(kit: StoreKit) -> tuple[Store, RunRecord]:
    """A run that is scored by its judge, and has all verdicts of another one."""
    store = kit.open()
    run, session = kit.begin(store, ROWS)
    local = store.judge("local", {"model": "local"}, now=1.0).id
    async with Writer.open(kit.path) as writer:
        for key in range(1, ROWS + 1):
            await writer.write(kit.reply(run, session, key), kit.verdict(run, key, True))
            await writer.write(kit.verdict(run, key, False, judge_id=local))
    store.replace_scores(run.id, 1, scored(store, run, 1, "first"), package_version="1", now=7.0)
    assert published(kit.path) == OLD
    return store, run


def test_all_or_nothing_while_it_is_going_on(kit: StoreKit, judged: tuple[Store, RunRecord]) -> None:
    store, run = judged
    seen = []

    def watched() -> Iterator[tuple[ScoreInput, Answer, Score]]:
        for one in scored(store, run, 2, "second"):
            seen.append(published(kit.path))
            yield one
        seen.append(published(kit.path))

    store.replace_scores(run.id, 2, watched(), package_version="2", now=8.0, publish=CONFIG)
    assert seen == [OLD] * (ROWS + 1)
    assert published(kit.path) == NEW
    assert store.run("night").scored_version == "2"


def test_an_exception_while_scoring_leaves_the_old_set(
    kit: StoreKit, judged: tuple[Store, RunRecord]
) -> None:
    store, run = judged

    def broken() -> Iterator[tuple[ScoreInput, Answer, Score]]:
        for number, one in enumerate(scored(store, run, 2, "second")):
            if number == ROWS - 1:
                raise ZeroDivisionError
            yield one

    with pytest.raises(ZeroDivisionError):
        store.replace_scores(run.id, 2, broken(), package_version="2", now=8.0, publish=CONFIG)
    assert published(kit.path) == OLD


def test_an_error_at_any_step_of_sqlite_leaves_the_old_set(
    kit: StoreKit, judged: tuple[Store, RunRecord]
) -> None:
    store, run = judged
    failures = 0
    for steps in range(0, 10_000, 3):
        # A 1 interrupts the statement that is under way: once.
        turns = chain(repeat(0, steps), (1,), repeat(0))

        def interrupted(turns: Iterator[int] = turns) -> Iterator[tuple[ScoreInput, Answer, Score]]:
            yield from scored(store, run, 2, "second")
            store._connection.set_progress_handler(lambda: next(turns), 20)

        try:
            store.replace_scores(run.id, 2, interrupted(), package_version="2", now=8.0, publish=CONFIG)
        except StoreError:
            failures += 1
            assert not store._connection.in_transaction
        finally:
            store._connection.set_progress_handler(None, 0)
        assert published(kit.path) in (OLD, NEW)
        if published(kit.path) == NEW:
            break
    else:
        raise AssertionError("it never got through")
    assert failures > 10, "the transaction is interrupted at many places"


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_process_that_is_killed_leaves_one_set_or_the_other(
    kit: StoreKit, judged: tuple[Store, RunRecord]
) -> None:
    killed = 0
    for steps in (0, 3, 8, 15, 25, 40, 100_000):
        done = subprocess.run([sys.executable, "-c", KILLED, str(kit.path), str(steps)], capture_output=True)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
        killed += done.returncode != 0
        assert published(kit.path) == (OLD if done.returncode else NEW)
    assert killed >= 3


def test_scores_made_for_the_earlier_judge_come_too_late(
    kit: StoreKit, judged: tuple[Store, RunRecord]
) -> None:
    """A report brings scores up to date while a rejudge ends in another process."""
    store, run = judged

    def overtaken() -> Iterator[tuple[ScoreInput, Answer, Score]]:
        yield from scored(store, run, 1, "third")
        with Store.open(kit.path) as other:
            new = scored(other, run, 2, "second")
            other.replace_scores(run.id, 2, new, package_version="2", now=8.0, publish=CONFIG)

    done = store.replace_scores(run.id, 1, overtaken(), package_version="1", now=9.0, while_judge=True)
    assert done.rows == 0
    assert published(kit.path) == NEW
    done = store.replace_scores(
        run.id, 2, scored(store, run, 2, "second"), package_version="1", now=9.0, while_judge=True
    )
    assert done.rows == ROWS
