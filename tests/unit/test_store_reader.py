"""Pages of work: the right rows, in order, quickly beside a writer and in a large store."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from mmbu_async.errors import StoreError
from mmbu_async.model import Usage
from mmbu_async.store import Reader, Store, Writer
from mmbu_async.store.sql import query

if TYPE_CHECKING:
    from tests.conftest import StoreKit


async def test_pending_rows_come_in_pages_without_those_that_have_a_reply(kit: StoreKit) -> None:
    store = kit.open()
    kit.begin(store, 7, name="before")
    run, session = kit.begin(store, 20, limit=18)
    first = next(store.rows(run.id)).key
    async with Writer.open(kit.path) as writer, Reader.open(kit.path) as reader:
        for position in (0, 1, 5, 17):
            await writer.write(kit.reply(run, session, first + position))
        await writer.write(kit.failure(run, session, first + 2))
        pages = []
        after = -1
        while page := await reader.pending(run.id, after, 5):
            pages.append([stored.sample.position for stored in page])
            after = page[-1].sample.position
        assert pages == [[2, 3, 4, 6, 7], [8, 9, 10, 11, 12], [13, 14, 15, 16]]
        (found,) = await reader.pending(run.id, 6, 1)
    row = next(row for row in store.rows(run.id) if row.key == found.key)
    assert (found.sample, found.family) == (row.sample, row.family)


async def test_rows_given_up_lately_can_be_left_out(kit: StoreKit) -> None:
    store = kit.open()
    run, first = kit.begin(store, 4)
    second = kit.session(store, run, now=9.0)
    async with Writer.open(kit.path) as writer, Reader.open(kit.path) as reader:
        await writer.write(
            kit.failure(run, first, 1),
            kit.failure(run, second, 2, final=False),
            kit.failure(run, second, 3),
            kit.failure(run, second, 4, judge_id=1),
        )

        async def positions(since: int | None) -> list[int]:
            page = await reader.pending(run.id, -1, 10, skip_failed_since_session=since)
            return [stored.sample.position for stored in page]

        assert await positions(None) == [0, 1, 2, 3]
        assert await positions(second) == [0, 1, 3]
        assert await positions(first) == [1, 3]


async def test_rows_to_judge_are_those_without_a_usable_verdict_of_this_judge(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 8)
    other = store.judge("local", {"model": "local"}, now=1.0)
    usage = Usage(input_tokens=3, output_tokens=2, reported=False)
    async with Writer.open(kit.path) as writer, Reader.open(kit.path) as reader:
        for key in range(1, 7):
            await writer.write(kit.reply(run, session, key, f"reply {key}", usage=usage))
        await writer.write(
            kit.verdict(run, 1, True, sha=b"a" * 32),
            kit.verdict(run, 2, None),
            kit.verdict(run, 3, False, judge_id=other.id),
        )
        rows = await reader.to_judge(run.id, (1,), -1, 3)
        assert [row.stored.key for row in rows] == [2, 3, 4]
        assert rows[0].completion.text == "reply 2"
        assert rows[0].completion.usage == usage
        assert [row.usable for row in rows] == [{}] * 3
        rows = await reader.to_judge(run.id, (1,), 3, 9)
        assert [row.stored.key for row in rows] == [5, 6]
        rows = await reader.to_judge(run.id, (1,), -1, 9, judged=True)
        assert [(row.stored.key, row.usable) for row in rows][:2] == [(1, {1: b"a" * 32}), (2, {})]
        assert len(rows) == 6
        second = kit.session(store, run, now=9.0)
        await writer.write(kit.reply(run, second, 7))
        rows = await reader.to_judge(run.id, (1,), -1, 9, before_session=second)
        assert [row.stored.key for row in rows] == [2, 3, 4, 5, 6]
        # Of several judges, rows that lack the verdict of one of them.
        await writer.write(kit.verdict(run, 1, False, judge_id=other.id, sha=b"b" * 32))
        await writer.write(kit.verdict(run, 4, True, sha=b"d" * 32))
        both = (1, other.id)
        found = {row.stored.key: row.usable for row in await reader.to_judge(run.id, both, -1, 9)}
        assert found == {2: {}, 3: {2: b"p" * 32}, 4: {1: b"d" * 32}, 5: {}, 6: {}, 7: {}}
        (first, *_) = await reader.to_judge(run.id, both, -1, 9, judged=True)
        assert first.usable == {1: b"a" * 32, 2: b"b" * 32}


async def test_a_judges_replies_are_found_over_all_runs(kit: StoreKit) -> None:
    store = kit.open()
    one, session = kit.begin(store, name="one")
    two, other = kit.begin(store, name="two")
    shas = [bytes([n]) * 32 for n in range(1, 5)]
    async with Writer.open(kit.path) as writer, Reader.open(kit.path) as reader:
        await writer.write(
            kit.reply(one, session, 1, "first", judge_id=1, prompt_sha=shas[0]),
            kit.reply(two, other, 5, "second", judge_id=1, prompt_sha=shas[0]),
            kit.reply(two, other, 6, "nul \0", judge_id=1, prompt_sha=shas[1]),
            kit.failure(two, other, 7, judge_id=1, prompt_sha=shas[2]),
            kit.reply(two, other, 8),
        )
        await writer.write(
            kit.reply(one, session, 2, "local", judge_id=store.judge("l", {}, now=1.0).id, prompt_sha=shas[3])
        )
        many = [n.to_bytes(32, "big") for n in range(1200)]
        assert await reader.judge_replies(1, [*many, *shas]) == {
            shas[0]: ["first", "second"],
            shas[1]: ["nul \0"],
        }
        assert await reader.judge_replies(1, []) == {}


PLANS: dict[str, dict[str, Any]] = {
    "pending": {"run": 1, "after": -1, "n": 100, "since": 1},
    "to_judge": {"run": 1, "judges": "[1, 2]", "after": -1, "n": 100, "judged": False, "before": None},
    "score_page": {"run": 1, "judge": 1, "stale": True, "after": 0, "n": 100},
    "scores_stale": {"run": 1, "judge": 1},
    "outcome_page": {"run": 1, "after": 0, "n": 100},
    "row_page": {"run": 1, "after": 0, "n": 100},
    "calls_of_span": {"run": 1, "first": 1, "last": 100},
    "verdicts_of_span": {"run": 1, "first": 1, "last": 100},
    "dataset_page": {"dataset": 1, "first": 1, "n": 100},
}


HARMLESS = ("SCAN (subquery", "SCAN CONSTANT ROW", "SCAN json_each")
"""Walks over the page itself, which an earlier step has found, or over a few judges."""


@pytest.mark.parametrize("name", PLANS)
def test_pages_are_read_along_an_index_without_a_sort(kit: StoreKit, name: str) -> None:
    """A page of a large run must not cost a walk over the run."""
    kit.open()
    with closing(sqlite3.connect(kit.path)) as connection:
        plan = [
            row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query(name)}", PLANS[name]).fetchall()
        ]
    assert [step for step in plan if "B-TREE" in step] == []
    assert [step for step in plan if step.startswith("SCAN") and not step.startswith(HARMLESS)] == [], plan


async def test_a_reader_reads_beside_a_writer_and_a_long_read_breaks_nothing(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 600)
    with closing(sqlite3.connect(kit.path, isolation_level=None)) as slow:
        # A read that stays open: SQLite keeps for it what the writer changes.
        slow.execute("BEGIN")
        assert slow.execute("SELECT count(*) FROM call").fetchone() == (0,)
        async with Writer.open(kit.path, busy_timeout_s=0.0) as writer, Reader.open(kit.path) as reader:

            async def read() -> int:
                seen = 0
                while len(page := await reader.pending(run.id, -1, 50)) == 50:
                    seen = page[0].sample.position
                return seen

            async def write() -> None:
                for key in range(1, 601):
                    await writer.write(kit.reply(run, session, key, "x" * 5000))

            async with asyncio.TaskGroup() as group:
                reading = group.create_task(read())
                group.create_task(write())
            assert reading.result() > 0
        assert slow.execute("SELECT count(*) FROM call").fetchone() == (0,)
        slow.execute("COMMIT")
        assert slow.execute("SELECT count(*) FROM call").fetchone() == (600,)


async def test_errors_of_reading_are_named(kit: StoreKit) -> None:
    kit.open()
    async with Reader.open(kit.path) as reader:
        with closing(sqlite3.connect(kit.path)) as connection:
            connection.execute("DROP TABLE selection")
        with pytest.raises(StoreError, match=r"store\.sqlite: .*no such table"):
            await reader.pending(1, -1, 5)


async def test_the_reader_makes_no_store(kit: StoreKit) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        async with Reader.open(kit.path):
            pass
    with Store.open(kit.path):
        async with Reader.open(kit.path) as reader:
            assert await reader.pending(1, -1, 5) == []
