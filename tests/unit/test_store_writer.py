"""Group commit: acknowledged means committed, one reply a row, and a failure that nobody waits out."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mmbu_async.errors import StoreError, StoreFullError, StoreLockedError
from mmbu_async.model import Attempt, Completion, Failure, FailureKind, Finish, Timing, Usage
from mmbu_async.store import CallRecord, Reader, Writer
from mmbu_async.store.batches import SIZES, Batch

if TYPE_CHECKING:
    from tests.conftest import StoreKit


def count(kit: StoreKit, where: str = "1") -> int:
    """Calls that another connection sees."""
    with closing(sqlite3.connect(kit.path)) as connection:
        (found,) = connection.execute(f"SELECT count(*) FROM call WHERE {where}").fetchone()  # noqa: S608
    return int(found)


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Hold the writer's transactions, on its thread, until the yielded function is called."""
    gate = threading.Event()
    commit = Batch.commit

    def wait(batch: Batch, connection: sqlite3.Connection) -> None:
        assert gate.wait(10)
        commit(batch, connection)

    with monkeypatch.context() as patch:
        patch.setattr(Batch, "commit", wait)
        try:
            yield gate.set
        finally:
            gate.set()


async def test_an_acknowledged_record_is_committed(kit: StoreKit) -> None:
    run, session = kit.begin(kit.open())
    async with Writer.open(kit.path) as writer:
        for key in range(1, 6):
            assert await writer.write(kit.reply(run, session, key))
            assert count(kit, f"sample_id = {key}") == 1


async def test_nothing_is_acknowledged_before_its_commit(
    kit: StoreKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, session = kit.begin(kit.open())
    with held(monkeypatch) as release:
        async with Writer.open(kit.path) as writer:
            future = writer.post(kit.reply(run, session, 1))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not future.done()
            assert count(kit) == 0
            release()
            assert await future
            assert count(kit) == 1


async def test_what_gathers_during_a_transaction_is_the_next_one(
    kit: StoreKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, session = kit.begin(kit.open(), 1500)
    with held(monkeypatch) as release:
        async with Writer.open(kit.path) as writer:
            first = writer.post(kit.reply(run, session, 1))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            rest = [writer.post(kit.reply(run, session, key)) for key in range(2, 1501)]
            release()
            assert all(await asyncio.gather(first, *rest))
            assert (writer.transactions, writer.written) == (2, 1500)
    assert count(kit) == 1500


@pytest.mark.parametrize("size", sorted({*SIZES, *(size + 1 for size in SIZES), 700}))
async def test_batches_of_any_size_arrive_whole(kit: StoreKit, size: int) -> None:
    store = kit.open()
    run, session = kit.begin(store, 800)
    keys = range(1, size + 1)
    async with Writer.open(kit.path) as writer:
        assert await writer.write(*(kit.reply(run, session, key, f"reply {key}") for key in keys))
        assert await writer.write(*(kit.verdict(run, key, key % 2 == 0) for key in keys))
        assert writer.transactions == 2
    rows = [row for row in store.rows(run.id) if row.attempts]
    assert [row.completion.text for row in rows if row.completion] == [f"reply {key}" for key in keys]
    assert [row.verdicts["claude-sonnet-5"].correct for row in rows] == [key % 2 == 0 for key in keys]
    assert count(kit) == size


async def test_a_second_reply_to_a_row_is_dropped_and_said_so(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store)
    async with Writer.open(kit.path) as writer:
        assert await writer.write(kit.reply(run, session, 1, "first"))
        assert not await writer.write(kit.reply(run, session, 1, "late", attempt=2))
        # In one transaction: the first counts; failures and the judge's replies are never duplicates.
        outcomes = await asyncio.gather(
            writer.write(kit.reply(run, session, 2, "first")),
            writer.write(kit.reply(run, session, 2, "late", attempt=2)),
            writer.write(kit.failure(run, session, 2, attempt=3)),
            writer.write(kit.reply(run, session, 2, "judge", judge_id=1, prompt_sha=b"p" * 32)),
            writer.write(kit.reply(run, session, 2, "judge", judge_id=1, prompt_sha=b"p" * 32)),
            writer.write(kit.reply(run, session, 1, "later", attempt=3)),
            writer.write(kit.reply(run, session, 3, "third"), kit.verdict(run, 3, True)),
        )
        assert outcomes == [True, False, True, True, True, False, True]
        assert (writer.dropped, writer.written) == (3, 7)
    texts = [row.completion.text for row in store.rows(run.id) if row.completion]
    assert texts == ["first", "first", "third"]
    assert count(kit, "ok = 1 AND judge_id IS NULL") == 3


async def test_the_same_row_in_another_run_is_another_row(kit: StoreKit) -> None:
    store = kit.open()
    one, session = kit.begin(store, name="one")
    two, other = kit.begin(store, name="two")
    async with Writer.open(kit.path) as writer:
        assert await writer.write(kit.reply(one, session, 1))
        assert await writer.write(kit.reply(two, other, 1))


async def test_a_resumed_session_can_repeat_attempt_numbers(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store)
    second = kit.session(store, run, now=9.0)
    async with Writer.open(kit.path) as writer:
        assert await writer.write(kit.failure(run, session, 1))
        assert await writer.write(kit.reply(run, second, 1, "second session"))
        assert not await writer.write(kit.reply(run, session, 1, "from the dead"))


async def test_everything_of_an_exchange_is_kept(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store)
    attempts = [
        Attempt(
            number=1,
            timing=Timing(started_at=1.25, total_s=0.1 + 0.2),
            outcome=Failure(
                kind=FailureKind.RATE_LIMIT,
                message="slow down",
                status=429,
                request_id="req-1",
                retry_after_s=1 / 3,
                usage=Usage(input_tokens=3),
            ),
            cost_usd=0.1,
        ),
        Attempt(
            number=2,
            timing=Timing(started_at=2.5, total_s=3.5),
            outcome=Failure(kind=FailureKind.CONNECTION, message="reset"),
        ),
        Attempt(
            number=3,
            timing=Timing(started_at=6.5, total_s=7.5, first_token_s=0.7),
            outcome=Completion(
                text="reply",
                finish=Finish.LENGTH,
                finish_raw="max_tokens",
                reasoning="thought",
                usage=Usage(
                    input_tokens=1,
                    output_tokens=2,
                    reasoning_tokens=3,
                    cached_tokens=4,
                    cache_write_tokens=5,
                    reported=False,
                ),
                model="m-1",
                request_id="req-3",
            ),
        ),
    ]
    sha = "0123456789abcdef" * 4
    async with Writer.open(kit.path) as writer:
        for attempt in attempts:
            record = CallRecord(
                run_id=run.id,
                session_id=session,
                sample_key=4,
                attempt=attempt,
                final=attempt.number == 3,
                image_scale=1 / 3,
                image_sha256=sha,
                image_note="scaled",
            )
            await writer.write(record)
    calls = store.row(run.id, "row-3").calls
    assert [call.attempt for call in calls] == attempts
    assert [call.final for call in calls] == [False, False, True]
    assert {(call.image_scale, call.image_sha256, call.image_note) for call in calls} == {
        (1 / 3, sha, "scaled")
    }


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("nul \0 inside", "nul \0 inside"),
        ("lone \udc80 half", "lone \ufffd half"),
        ("pair \ud83d\ude00", "pair \U0001f600"),
        ("\u200f\u202eright to left", "\u200f\u202eright to left"),
        ("x" * 3_000_000, "x" * 3_000_000),
    ],
    ids=["nul", "surrogate", "pair", "rtl", "long"],
)
async def test_any_text_is_stored_as_far_as_it_can_be(kit: StoreKit, given: str, kept: str) -> None:
    """And its neighbours in the same transaction are untouched by it."""
    store = kit.open()
    run, session = kit.begin(store)
    async with Writer.open(kit.path) as writer, Reader.open(kit.path) as reader:
        records = [kit.reply(run, session, key, "neighbour") for key in (1, 3)]
        records.insert(1, kit.reply(run, session, 2, given))
        verdict = kit.verdict(run, 2, None, reply=given)
        assert await writer.write(*records, verdict)
        rows = await reader.to_judge(run.id, (1,), -1, 10)
    assert [row.completion.text for row in rows] == ["neighbour", kept, "neighbour"]
    assert store.row(run.id, "row-1").record.verdicts["claude-sonnet-5"].reply == kept


async def test_absurd_numbers_are_stored_as_far_as_they_can_be(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store)
    async with Writer.open(kit.path) as writer:
        assert await writer.write(kit.reply(run, session, 1, usage=Usage(input_tokens=10**30)))
    assert store.row(run.id, "row-0").record.usage.input_tokens == 2**63 - 1


async def test_a_cancelled_waiter_does_not_lose_its_record(
    kit: StoreKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, session = kit.begin(kit.open())
    with held(monkeypatch) as release:
        async with Writer.open(kit.path) as writer:
            waiter = asyncio.create_task(writer.write(kit.reply(run, session, 1)))
            other = asyncio.create_task(writer.write(kit.reply(run, session, 2)))
            await asyncio.sleep(0)
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter
            release()
            assert await other
    assert count(kit) == 2


async def test_leaving_writes_what_was_posted(kit: StoreKit) -> None:
    run, session = kit.begin(kit.open(), 1000)
    with pytest.raises(ZeroDivisionError):
        async with Writer.open(kit.path) as writer:
            futures = [writer.post(kit.reply(run, session, key)) for key in range(1, 1001)]
            raise ZeroDivisionError
    assert all(future.result() for future in futures)
    assert count(kit) == 1000
    with pytest.raises(StoreError, match="the writer is closed"):
        writer.post(kit.reply(run, session, 1))


async def test_a_cancellation_while_leaving_still_writes(
    kit: StoreKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, session = kit.begin(kit.open())
    leaving = asyncio.Event()

    async def work() -> None:
        async with Writer.open(kit.path) as writer:
            writer.post(kit.reply(run, session, 1))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            # The first is on the writer's thread by now, the second waits for it.
            writer.post(kit.reply(run, session, 2))
            leaving.set()

    with held(monkeypatch) as release:
        task = asyncio.create_task(work())
        await leaving.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        release()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert count(kit) == 2


async def test_verdicts_keep_each_judge_apart_and_the_last_word_of_each(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store)
    other = store.judge("local", {"model": "local"}, now=1.0)
    async with Writer.open(kit.path) as writer:
        await writer.write(kit.reply(run, session, 1))
        await writer.write(kit.verdict(run, 1, None))
        await writer.write(kit.verdict(run, 1, True))
        await writer.write(kit.verdict(run, 1, None))
        await writer.write(kit.verdict(run, 1, False, judge_id=other.id))
        verdicts = store.row(run.id, "row-0").record.verdicts
        assert {name: verdict.correct for name, verdict in verdicts.items()} == {
            "claude-sonnet-5": True,
            "local": False,
        }
        # An unusable verdict on another prompt does displace: the old one answers a question no more asked.
        await writer.write(kit.verdict(run, 1, None, sha=b"q" * 32))
    assert store.row(run.id, "row-0").record.verdicts["claude-sonnet-5"].correct is None
    assert [judge.name for judge in store.judges(run.id)] == ["claude-sonnet-5", "local"]


# ---------------------------------------------------------------- failures


async def test_a_full_store_is_a_named_error_for_all_and_keeps_what_was_acknowledged(kit: StoreKit) -> None:
    run, session = kit.begin(kit.open(), 400)
    acknowledged: list[int] = []
    failed: list[str] = []
    with pytest.raises(StoreFullError, match=r"store\.sqlite: the disk is full or the file may not grow"):
        async with Writer.open(kit.path) as writer:
            await writer._connection.run_in_thread(
                lambda c: c.execute("PRAGMA max_page_count = 60").fetchall()
            )

            async def one(key: int) -> None:
                try:
                    await writer.write(kit.reply(run, session, key, "x" * 3000))
                    acknowledged.append(key)
                except StoreFullError as error:
                    failed.append(str(error))

            for at in range(1, 401, 20):
                await asyncio.gather(*(one(key) for key in range(at, at + 20)))
            assert isinstance(writer.error, StoreFullError)
            with pytest.raises(StoreFullError):
                writer.post(kit.reply(run, session, 1))
    assert acknowledged
    assert failed
    assert len(acknowledged) + len(failed) == 400
    with closing(sqlite3.connect(kit.path)) as connection:
        stored = {key for (key,) in connection.execute("SELECT sample_id FROM call")}
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert stored == set(acknowledged)


async def test_a_store_locked_by_another_process_is_a_named_error(kit: StoreKit) -> None:
    run, session = kit.begin(kit.open())
    with closing(sqlite3.connect(kit.path, isolation_level=None)) as other:
        with pytest.raises(StoreLockedError, match=r"another process holds the store locked"):
            async with Writer.open(kit.path, busy_timeout_s=0.05) as writer:
                other.execute("BEGIN IMMEDIATE")
                with pytest.raises(StoreLockedError):
                    await writer.write(kit.reply(run, session, 1))
        other.execute("ROLLBACK")
    assert count(kit) == 0


async def test_the_writer_waits_for_a_lock_that_is_given_back(kit: StoreKit) -> None:
    run, session = kit.begin(kit.open())
    async with Writer.open(kit.path) as writer:
        with closing(sqlite3.connect(kit.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            future = writer.post(kit.reply(run, session, 1))
            await asyncio.sleep(0.05)
            assert not future.done()
            other.execute("COMMIT")
            assert await future


async def test_a_failure_rolls_back_and_lets_others_in(kit: StoreKit) -> None:
    """A record that breaks a rule of the schema takes its transaction with it, and no lock stays behind."""
    run, session = kit.begin(kit.open())
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        async with Writer.open(kit.path) as writer:
            good = writer.post(kit.reply(run, session, 1), kit.verdict(run, 1, True))
            bad = writer.post(kit.reply(run, session, 999))
            alone = writer.post(kit.reply(run, session, 2))
            for future in (good, bad, alone):
                with pytest.raises(StoreError):
                    await future
            with closing(sqlite3.connect(kit.path, timeout=0.0, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
    assert count(kit) == 0


async def test_those_that_wait_for_the_next_transaction_learn_of_a_failure_too(
    kit: StoreKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, session = kit.begin(kit.open())
    with held(monkeypatch) as release, pytest.raises(StoreError, match="FOREIGN KEY"):
        async with Writer.open(kit.path) as writer:
            first = writer.post(kit.reply(run, session, 999))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            second = writer.post(kit.reply(run, session, 1))
            release()
            done, _ = await asyncio.wait([first, second], timeout=10)
            assert len(done) == 2
            assert {type(future.exception()) for future in done} == {StoreError}
    assert count(kit) == 0


async def test_records_of_one_post_are_stored_together_or_not_at_all(kit: StoreKit) -> None:
    run, session = kit.begin(kit.open())
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        async with Writer.open(kit.path) as writer:
            await writer.write(kit.reply(run, session, 1), kit.verdict(run, 1, True, judge_id=999))
    assert count(kit) == 0


async def test_a_record_that_makes_no_sense_is_its_callers_error_alone(kit: StoreKit) -> None:
    run, session = kit.begin(kit.open())
    async with Writer.open(kit.path) as writer:
        with pytest.raises(ValueError, match="hexadecimal"):
            writer.post(kit.reply(run, session, 1), kit.reply(run, session, 2, image_sha256="no hash"))
        assert await writer.write(kit.reply(run, session, 3))
    assert count(kit) == 1


async def test_an_error_of_the_callers_own_is_not_hidden_by_the_writers(kit: StoreKit) -> None:
    run, session = kit.begin(kit.open())
    with pytest.raises(KeyError):
        async with Writer.open(kit.path) as writer:
            with pytest.raises(StoreError):
                await writer.write(kit.reply(run, session, 999))
            raise KeyError


async def test_whatever_ends_the_writer_nobody_waits_for_ever(
    kit: StoreKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, session = kit.begin(kit.open())

    def broken(batch: Batch, connection: sqlite3.Connection) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Batch, "commit", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        async with Writer.open(kit.path) as writer:
            with pytest.raises(StoreError, match="a bug"):
                await writer.write(kit.reply(run, session, 1))


async def test_a_failed_post_that_nobody_awaits_makes_no_noise(kit: StoreKit) -> None:
    run, session = kit.begin(kit.open())
    noise: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
    with pytest.raises(StoreError):
        async with Writer.open(kit.path) as writer:
            writer.post(kit.reply(run, session, 999))
    gc.collect()
    assert noise == []


async def test_the_writer_makes_no_store(kit: StoreKit) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        async with Writer.open(kit.path):
            pass
    assert not kit.path.exists()


@pytest.mark.parametrize(("synchronous", "level"), [("full", 2), ("normal", 1)])
async def test_durability_is_as_asked(kit: StoreKit, synchronous: Any, level: int) -> None:
    kit.open()

    def settings(connection: sqlite3.Connection) -> tuple[Any, ...]:
        names = ("synchronous", "journal_mode", "foreign_keys")
        return tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)

    async with Writer.open(kit.path, synchronous=synchronous) as writer:
        assert await writer._connection.run_in_thread(settings) == (level, "wal", 1)


async def test_full_is_the_default(kit: StoreKit) -> None:
    kit.open()
    async with Writer.open(kit.path) as writer:
        found = await writer._connection.run_in_thread(lambda c: c.execute("PRAGMA synchronous").fetchone())
    assert found == (2,)
