"""Runs from another store: all that was paid for, nothing twice, and nothing of what was here changed."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.errors import (
    RunChangedError,
    RunNotFoundError,
    StoreError,
    StoreLockedError,
    StoreVersionError,
)
from mmbu_async.model import Failure, FailureKind
from mmbu_async.report import build_report, to_json
from mmbu_async.store import LeaseOwner, RunRecord, Store, Writer
from mmbu_async.store import merge as merging
from mmbu_async.store.merge import Merged, export_run, merge
from mmbu_async.store.upkeep import check
from tests.conftest import StoreKit, a_sample
from tests.stored_run import RunMaker

NOW = 5000.0
ROWS: list[dict[str, Any]] = [
    {"reply": "<answer>7</answer>", "judged": True, "failures": ["rate_limit", "timeout"]},
    {"reply": "<answer>3</answer>", "judged": False, "images": ("a.png", "b.png"), "image_scale": 0.5},
    {"reply": "none", "judged": None, "finish": "length", "reasoning": "hm"},
    {"reply": "shared", "judged": True, "shared": True, "strata": {"task": ("a", "b")}},
    {"failures": ["bad_request"]},
    {},
]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Callable[[str], StoreKit]]:
    """A store of another machine, by its name."""
    with ExitStack() as stack:
        yield lambda name: StoreKit(tmp_path / f"{name}.sqlite", stack)


def keep_settings(path: Path, config: dict[str, Any]) -> None:
    with Store.open(path) as store:
        store.settle_run_config(1, lambda _: config)


def dump(path: Path) -> list[str]:
    """Everything in the store, as SQL."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def damage(path: Path) -> list[str]:
    return [finding.text for finding in check(path) if finding.damage]


def work(
    kit: StoreKit,
    keys: Sequence[int],
    *,
    at: float,
    name: str = "night",
    judge: bool = True,
    of: int = 10,
    **more: Any,
) -> RunRecord:
    """A session that got replies to these rows and judged them, of a run that is made where it is missing."""
    with Store.open(kit.path) as store:
        known = {run.name: run for run in store.runs()}
        if name in known:
            run, session = known[name], kit.session(store, known[name], now=at)
        else:
            run, first = kit.begin(store, of, name=name)
            store.end_session(first, "done", now=3.5)
            session = kit.session(store, run, now=at)

        async def write() -> None:
            async with Writer.open(kit.path) as writer:
                for key in keys:
                    records = [kit.failure(run, session, key, final=False, **more)]
                    records.append(kit.reply(run, session, key, attempt=2, **more))
                    if judge:
                        records.append(
                            kit.reply(
                                run, session, key, "[RESULT] 1", judge_id=1, prompt_sha=b"p" * 32, **more
                            )
                        )
                    await writer.write(*records)
                    if judge:
                        await writer.write(kit.verdict(run, key, True))

        asyncio.run(write())
        store.end_session(session, "done", now=at + 1)
    return run


def contents(store: Store, name: str) -> list[Any]:
    """Everything known of each row, but for the keys, which are each store's own."""
    return [
        replace(
            detail,
            record=replace(detail.record, key=0),
            calls=tuple(replace(call, session_id=0) for call in detail.calls),
        )
        for detail in store.details(store.run(name).id)
    ]


# ---------------------------------------------------------------- a run that is new here


def test_a_run_that_is_new_here_comes_whole(make_run: RunMaker, tmp_path: Path) -> None:
    theirs, run = make_run(ROWS)
    with ExitStack() as stack:
        # Other rows before it, so that no key is the same.
        here, _ = RunMaker(tmp_path / "here.sqlite", stack)(
            [{"reply": "x", "judged": True}] * 3, name="o", judge={"model": "other"}
        )
        done = merge(here.path, theirs.path, now=NOW)
        (merged,) = done.runs
        assert (merged.name, merged.new, merged.rows, merged.second) == ("test-run", True, 6, 0)
        assert (done.datasets, done.judges) == (1, 1)
        assert merged.calls == rows(theirs.path, "SELECT count(*) FROM call")[0][0]
        assert contents(here, run.name) == contents(theirs, run.name)
        taken = here.run(run.name)
        assert to_json(build_report(here, taken)) == to_json(build_report(theirs, theirs.run(run.name)))
        assert here.totals(taken.id).cost_usd == theirs.totals(run.id).cost_usd
        assert not here.scores_stale(taken.id, taken.judge.id if taken.judge else None)
    assert damage(tmp_path / "here.sqlite") == []


def test_a_store_that_is_missing_is_made(make_run: RunMaker, tmp_path: Path) -> None:
    make_run(ROWS)
    merge(tmp_path / "new.sqlite", make_run.path, now=NOW)
    assert damage(tmp_path / "new.sqlite") == []


def test_merging_twice_changes_nothing(make_run: RunMaker, tmp_path: Path) -> None:
    make_run(ROWS)
    make_run([{"reply": "7", "correct": True}], judge=None, name="second", benchmark="vqa")
    here = tmp_path / "here.sqlite"
    merge(here, make_run.path, now=NOW)
    before, source = dump(here), dump(make_run.path)
    again = merge(here, make_run.path, now=NOW + 1)
    assert dump(here) == before
    assert dump(make_run.path) == source
    assert (again.datasets, again.judges) == (0, 0)
    assert [(run.new, run.rows, run.calls, run.second, run.verdicts) for run in again.runs] == [
        (False, 0, 0, 0, 0)
    ] * 2
    # Nor is there anything to take back.
    assert [run.calls for run in merge(make_run.path, here, now=NOW).runs] == [0, 0]
    assert dump(make_run.path) == source


def test_a_rescore_comes_with_what_scores_were_before(make_run: RunMaker, tmp_path: Path) -> None:
    theirs, run = make_run(ROWS)
    inputs = list(theirs.score_inputs(run.id, run.judge.id if run.judge else None))
    (first, *_) = theirs.rows(run.id)
    assert first.answer is not None
    assert first.score is not None
    changed = replace(first.answer, text="other"), replace(first.score, correct=False, tp=0, fp=1, fn=1)
    theirs.replace_scores(
        run.id, run.judge.id if run.judge else None, [(inputs[0], *changed)], package_version="2", now=3000.0
    )
    here = tmp_path / "here.sqlite"
    for _ in range(2):
        merge(here, theirs.path, now=NOW)
    with Store.open(here) as store:
        rescore = store.last_rescore(1)
        assert rescore is not None
        (change,) = store.score_changes(rescore.id)
        assert (change.row_id, change.answer.text, change.correct_now) == (
            "row-0",
            "<answer>7</answer>",
            False,
        )


# ---------------------------------------------------------------- one run, two machines


def test_two_machines_at_one_run(machine: Callable[[str], StoreKit]) -> None:
    """Rows 4 and 5 were bought by both."""
    one, two = machine("one"), machine("two")
    work(one, [1, 2, 3, 4, 5], at=10.0, cost=0.01)
    work(two, [4, 5, 6, 7, 8], at=20.0, cost=0.1)
    before = contents(Store.open(one.path), "night")
    (done,) = merge(one.path, two.path, now=NOW).runs
    assert (done.new, done.rows, done.second, done.other_judge) == (False, 0, 2, False)
    assert done.calls == 15
    assert done.verdicts == 3
    with Store.open(one.path) as store:
        counts = store.counts(1)
        assert (counts.completed, counts.judged, counts.pending) == (8, 8, 2)
        assert store.totals(1).cost_usd == pytest.approx(15 * 0.01 + 15 * 0.1)
        assert store.totals(1).failures == {"timeout": 10, "duplicate": 2}
        after = contents(store, "night")
        for old, new in zip(before[:5], after[:5], strict=True):
            assert (old.record.completion, old.record.verdicts) == (
                new.record.completion,
                new.record.verdicts,
            )
        outcomes = [call.attempt.outcome for call in after[3].calls]
        assert [one.kind for one in outcomes if isinstance(one, Failure)].count(FailureKind.DUPLICATE) == 1
    assert damage(one.path) == []
    assert rows(one.path, "SELECT text FROM call WHERE kind = 'duplicate'") == [("<answer>7</answer>",)] * 2


def test_what_comes_later_is_taken_later(machine: Callable[[str], StoreKit]) -> None:
    one, two = machine("one"), machine("two")
    work(one, [1, 2], at=10.0)
    work(two, [2, 3], at=20.0)
    merge(one.path, two.path, now=NOW)
    work(two, [4], at=30.0)
    work(one, [5], at=40.0)
    (done,) = merge(one.path, two.path, now=NOW).runs
    assert (done.calls, done.second, done.verdicts) == (3, 0, 1)
    (back,) = merge(two.path, one.path, now=NOW).runs
    # Rows 1 and 5, and the second reply for row 2.
    assert (back.calls, back.second) == (9, 1)
    for kit in (one, two):
        with Store.open(kit.path) as store:
            assert store.counts(1).completed == 5
            assert store.totals(1).infer.calls + store.totals(1).judge.calls == 18
    again = [merge(a.path, b.path, now=NOW).runs[0] for a, b in ((one, two), (two, one))]
    assert [run.calls for run in again] == [0, 0]


def test_any_order_of_any_machines_keeps_every_call_once(
    machine: Callable[[str], StoreKit], tmp_path: Path
) -> None:
    for seed in range(6):
        draw = random.Random(seed)
        kits = [machine(f"{seed}-{number}") for number in range(3)]
        bought: list[tuple[int, int, int]] = []
        for number, kit in enumerate(kits):
            for session in range(draw.randint(1, 2)):
                keys = draw.sample(range(1, 11), draw.randint(1, 10))
                keys = [key for key in keys if (number, key) not in {(n, k) for n, _, k in bought}]
                work(kit, keys, at=100.0 * number + 10 * session + 10)
                bought += [(number, session, key) for key in keys]
        for _ in range(4):
            a, b = draw.sample(kits, 2)
            merge(a.path, b.path, now=NOW)
            assert damage(a.path) == []
        whole = machine(f"{seed}-all")
        for kit in draw.sample(kits, 3) * 2:
            merge(whole.path, kit.path, now=NOW)
        assert damage(whole.path) == []
        (calls,) = rows(
            whole.path,
            "SELECT count(*), count(DISTINCT session_id || ' ' || sample_id || ' ' || "
            "coalesce(judge_id, '') || ' ' || attempt) FROM call",
        )
        assert calls == (3 * len(bought),) * 2, seed
        (replies,) = rows(
            whole.path, "SELECT count(*), count(DISTINCT sample_id) FROM call WHERE ok AND judge_id IS NULL"
        )
        assert replies == (len({key for *_, key in bought}),) * 2


def test_a_verdict_goes_with_the_reply_that_it_is_about(machine: Callable[[str], StoreKit]) -> None:
    """The other machine's reply is not the row's, so neither is its verdict; the judge's call is kept."""
    one, two = machine("one"), machine("two")
    work(one, [1], at=10.0, judge=False)
    work(two, [1], at=20.0)
    (done,) = merge(one.path, two.path, now=NOW).runs
    assert (done.second, done.verdicts) == (1, 0)
    assert rows(one.path, "SELECT count(*) FROM verdict") == [(0,)]
    assert rows(one.path, "SELECT count(*) FROM call WHERE judge_id = 1 AND ok") == [(1,)]


def test_an_unusable_verdict_is_displaced_by_a_usable_one_and_no_other(
    machine: Callable[[str], StoreKit],
) -> None:
    one, two = machine("one"), machine("two")
    run = work(one, [1, 2], at=10.0, judge=False)
    merge(two.path, one.path, now=NOW)

    async def judge(kit: StoreKit, words: dict[int, bool | None]) -> None:
        async with Writer.open(kit.path) as writer:
            for key, word in words.items():
                call = kit.reply(run, 2, key, judge_id=1, prompt_sha=b"p" * 32, attempt=7)
                await writer.write(call, kit.verdict(run, key, word, reply=kit.path.stem))

    asyncio.run(judge(one, {1: None, 2: False}))
    asyncio.run(judge(two, {1: True, 2: True}))
    merge(one.path, two.path, now=NOW)
    assert rows(one.path, "SELECT sample_id, correct, reply FROM verdict ORDER BY sample_id") == [
        (1, 1, "two"),
        (2, 0, "one"),
    ]


def test_sessions_that_end_later_end_here_too(machine: Callable[[str], StoreKit]) -> None:
    one, two = machine("one"), machine("two")
    work(two, [1], at=20.0)
    with Store.open(two.path) as store:
        session = two.session(store, store.run("night"), now=50.0)
        merge(one.path, two.path, now=NOW)
        assert rows(one.path, "SELECT ended FROM session WHERE started_at = 50") == [(None,)]
        # Who resumes here finds it dead.
        with Store.open(one.path) as here:
            here.acquire_lease(1, LeaseOwner.current(), NOW)
            here.release_lease(1, LeaseOwner.current())
        assert rows(one.path, "SELECT ended FROM session WHERE started_at = 50") == [("died",)]
        store.end_session(session, "budget", now=60.0)
    merge(one.path, two.path, now=NOW)
    assert rows(one.path, "SELECT ended, ended_at FROM session WHERE started_at = 50") == [("budget", 60.0)]
    merge(two.path, one.path, now=NOW)
    assert rows(two.path, "SELECT ended, ended_at FROM session WHERE started_at = 50") == [("budget", 60.0)]


def test_rows_are_the_same_by_their_id_not_by_their_place(machine: Callable[[str], StoreKit]) -> None:
    """A blank line in one table shifts positions and is no change of content."""
    one, two = machine("one"), machine("two")
    for kit, step in ((one, 1), (two, 3)):
        with Store.open(kit.path) as store:
            samples = ((a_sample(n * step, id=f"id-{n}", fields={}, images=()), "f") for n in range(4))
            store.register_dataset("mmbu-public", "a folder", "stamp 4", samples, now=1.0)
    with closing(sqlite3.connect(two.path)) as connection, connection:
        assert connection.execute("SELECT max(id) FROM sample").fetchone() == (10,)
    run = _run_of(one)
    other = _run_of(two)
    assert run.dataset.fingerprint == other.dataset.fingerprint
    asyncio.run(_reply(one, run, 1, at=10.0))
    asyncio.run(_reply(two, other, 10, at=20.0))
    merge(one.path, two.path, now=NOW)
    with Store.open(one.path) as store:
        found = [(row.sample.id, row.completion is not None) for row in store.rows(1)]
    assert found == [("id-0", True), ("id-1", False), ("id-2", False), ("id-3", True)]


def _run_of(kit: StoreKit, **changes: Any) -> RunRecord:
    with Store.open(kit.path) as store:
        dataset = store.find_dataset("mmbu-public", stamp="stamp 4")
        assert dataset is not None
        values: dict[str, Any] = {
            "name": "night",
            "benchmark": "mmbu-public",
            "dataset_id": dataset.id,
            "model": "m",
            "endpoint": "openai",
            "host": "h",
            "identity": {"model": "m"},
            "config": {"name": "night"},
            "package_version": "1",
            "now": 2.0,
        }
        run = store.create_run(**(values | changes))
        store.select(run.id, None, None)
        return run


async def _reply(kit: StoreKit, run: RunRecord, key: int, *, at: float) -> None:
    with Store.open(kit.path) as store:
        session = kit.session(store, run, now=at)
        async with Writer.open(kit.path) as writer:
            await writer.write(kit.reply(run, session, key))
        store.end_session(session, "done", now=at + 1)


# ---------------------------------------------------------------- other experiments


def test_another_run_of_the_same_name_is_refused_or_renamed(machine: Callable[[str], StoreKit]) -> None:
    one, two = machine("one"), machine("two")
    work(one, [1], at=10.0)
    work(two, [2], at=20.0)
    with closing(sqlite3.connect(two.path)) as connection, connection:
        connection.execute("""UPDATE run SET identity = '{"max_tokens":7,"model":"test-vlm"}'""")
    before = dump(one.path)
    with pytest.raises(
        RunChangedError, match=r"its run 'night' is another one .*max_tokens: 2048 here, 7 there"
    ) as caught:
        merge(one.path, two.path, now=NOW)
    assert "--rename" in str(caught.value)
    assert caught.value.changes == ("max_tokens: 2048 here, 7 there",)
    assert dump(one.path) == before
    for calls in (3, 0):
        (done,) = merge(one.path, two.path, rename=True, now=NOW).runs
        assert (done.theirs, done.name, done.calls) == ("night", "night-2", calls)
    with Store.open(one.path) as store:
        assert [run.name for run in store.runs()] == ["night", "night-2"]
        assert store.run("night-2").config["name"] == "night-2"
    assert damage(one.path) == []


def test_a_judge_of_the_same_name_and_another_identity_gets_a_number(
    machine: Callable[[str], StoreKit],
) -> None:
    one, two = machine("one"), machine("two")
    work(one, [1], at=10.0)
    work(two, [2], at=20.0)
    with closing(sqlite3.connect(two.path)) as connection, connection:
        connection.execute("""UPDATE judge SET identity = '{"model":"claude-sonnet-5","max_tokens":9}'""")
    done = merge(one.path, two.path, now=NOW)
    assert done.judges == 1
    assert done.runs[0].other_judge
    with Store.open(one.path) as store:
        run = store.run("night")
        assert run.judge is not None
        assert run.judge.name == "claude-sonnet-5"
        first, second, *_ = store.rows(run.id)
        assert (list(first.verdicts), list(second.verdicts)) == (["claude-sonnet-5"], ["claude-sonnet-5-2"])
        # Row 2 has no word of the run's own judge yet.
        assert (store.counts(run.id).judged, store.counts(run.id).completed) == (1, 2)


@pytest.mark.parametrize(
    ("here", "there", "both"),
    [
        ({"limit": 100}, {"limit": 200}, {"limit": 200}),
        ({"limit": 100}, {"limit": None}, {"limit": None}),
        ({"task": ["a"]}, {"task": ["b", "a"]}, {"task": ["a", "b"]}),
        ({"task": ["a"]}, {"task": []}, {"task": []}),
        (
            {"task": ["a", "b"], "limit": 5},
            {"task": ["b", "a"], "limit": 7},
            {"task": ["a", "b"], "limit": 7},
        ),
        ({"rpm": 5, "where": {"x": "1"}}, {"rpm": 7, "where": {"x": "1"}}, {"rpm": 5, "where": {"x": "1"}}),
        ({"task": ["a"], "limit": 5}, {"task": ["b"], "limit": 5}, None),
        ({"where": {"x": "1"}}, {"where": {"x": "2"}}, None),
        ({"where": {"x": "1"}}, {}, None),
    ],
)
def test_a_run_about_the_rows_of_both_says_so(
    machine: Callable[[str], StoreKit],
    here: dict[str, Any],
    there: dict[str, Any],
    both: dict[str, Any] | None,
) -> None:
    one, two = machine("one"), machine("two")
    for kit, config in ((one, here), (two, there)):
        work(kit, [1], at=10.0 if kit is one else 20.0)
        keep_settings(kit.path, config)
    if both is None:
        with pytest.raises(RunChangedError, match=r"(task|where): .* here, .* there"):
            merge(one.path, two.path, now=NOW)
        return
    merge(one.path, two.path, now=NOW)
    with Store.open(one.path) as store:
        assert dict(store.run("night").config) == both


def test_rows_that_only_the_other_machine_chose_are_taken(machine: Callable[[str], StoreKit]) -> None:
    one, two = machine("one"), machine("two")
    with Store.open(one.path) as store:
        one.begin(store, 10, limit=3)
    with Store.open(two.path) as store:
        two.begin(store, 10, limit=8)
    (done,) = merge(one.path, two.path, now=NOW).runs
    assert done.rows == 5
    with Store.open(one.path) as store:
        assert store.counts(1).selected == 8
        assert store.run("night").config["limit"] == 8


# ---------------------------------------------------------------- what must not be merged


def test_a_run_at_work_here_is_left_alone(machine: Callable[[str], StoreKit]) -> None:
    """It would buy rows that are taken in meanwhile, and its replies would come second."""
    one, two = machine("one"), machine("two")
    work(one, [1], at=10.0)
    work(two, [2], at=20.0)
    owner = LeaseOwner.current()
    with Store.open(one.path) as store:
        store.acquire_lease(1, owner, time.time())
        with pytest.raises(StoreLockedError, match="run 'night' is at work"):
            merge(one.path, two.path, now=time.time())
        # Another run of the store may be.
        work(two, [2], at=20.0, name="other")
        with closing(sqlite3.connect(two.path)) as connection, connection:
            connection.execute("UPDATE run SET name = 'free' WHERE name = 'night'")
        assert {run.name for run in merge(one.path, two.path, now=time.time()).runs} == {"free", "other"}
        store.release_lease(1, owner)


def test_files_that_cannot_be_taken_from_are_refused(
    machine: Callable[[str], StoreKit], tmp_path: Path
) -> None:
    one, two = machine("one"), machine("two")
    work(one, [1], at=10.0)
    work(two, [2], at=20.0)
    (tmp_path / "link").symlink_to(one.path)
    with pytest.raises(StoreError, match="is the store itself"):
        merge(one.path, tmp_path / "link", now=NOW)
    with pytest.raises(StoreError, match="there is no store"):
        merge(one.path, tmp_path / "none", now=NOW)
    with closing(sqlite3.connect(two.path)) as connection, connection:
        connection.execute("UPDATE sample SET question = 'Another?' WHERE id = 1")
    before = dump(one.path)
    with pytest.raises(
        StoreError, match=r"two.sqlite: is damaged .*its rows are not those.*nothing was taken"
    ):
        merge(one.path, two.path, now=NOW)
    with closing(sqlite3.connect(two.path)) as connection, connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreVersionError):
        merge(one.path, two.path, now=NOW)
    assert dump(one.path) == before


@pytest.mark.parametrize(
    "old", sorted((Path(__file__).parents[1] / "migration").glob("store_v*.sql")), ids=lambda f: f.stem
)
def test_an_older_store_is_brought_up_to_date_first(
    tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(theirs)) as connection:
        connection.executescript(old.read_text(encoding="utf-8"))
    # Its fingerprint is no hash of its rows.
    monkeypatch.setattr("mmbu_async.store.datasets.fingerprint", lambda *_: "fingerprint")
    done = merge(tmp_path / "here.sqlite", theirs, now=NOW)
    assert [(run.name, run.calls) for run in done.runs] == [("night", 4)]


def test_a_merge_that_breaks_off_leaves_nothing(
    machine: Callable[[str], StoreKit], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = machine("one"), machine("two")
    work(one, [1], at=10.0)
    work(two, [2], at=20.0, of=12, name="late")
    before = dump(one.path)
    with monkeypatch.context() as patched:
        do = merging._Merge._do

        def broken(self: Any, statement: str, /, **values: Any) -> int:
            if statement == "take_scores":
                raise KeyboardInterrupt
            return do(self, statement, **values)

        patched.setattr(merging._Merge, "_do", broken)
        with pytest.raises(KeyboardInterrupt):
            merge(one.path, two.path, now=NOW)
    assert dump(one.path) == before
    assert merge(one.path, two.path, now=NOW).runs[0].calls == 3


def test_a_killed_merge_can_be_repeated(machine: Callable[[str], StoreKit]) -> None:
    one, two = machine("one"), machine("two")
    work(one, [1], at=10.0)
    work(two, list(range(1, 11)), at=20.0)
    before = dump(one.path)
    child = os.fork() if hasattr(os, "fork") else None
    if child is None:
        pytest.skip("the system cannot fork")
    if child == 0:
        # Dies with the transaction open, as by SIGKILL: nothing is cleaned up.
        merging._Merge._count_duplicates = lambda *_: os._exit(9)  # type: ignore[method-assign]
        merge(one.path, two.path, now=NOW)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert dump(one.path) == before
    assert merge(one.path, two.path, now=NOW).runs[0].calls == 30
    assert damage(one.path) == []


def test_a_store_that_is_written_can_be_taken_from(machine: Callable[[str], StoreKit]) -> None:
    one, two = machine("one"), machine("two")

    async def write() -> list[Merged]:
        with Store.open(two.path) as store:
            run, session = two.begin(store, 400)
            async with Writer.open(two.path) as writer:
                done = []
                for key in range(1, 401):
                    await writer.write(two.reply(run, session, key))
                    if key % 100 == 0:
                        done.append(await asyncio.to_thread(merge, one.path, two.path, now=NOW))
                return done

    assert [done.runs[0].calls for done in asyncio.run(write())] == [100] * 4
    assert damage(one.path) == []


# ---------------------------------------------------------------- one run in a file of its own


def test_one_run_of_many_goes_into_a_file_of_its_own(make_run: RunMaker, tmp_path: Path) -> None:
    theirs, _ = make_run(ROWS)
    make_run(
        [{"reply": "7", "judged": True, "id": "z"}], name="second", benchmark="vqa", judge={"model": "other"}
    )
    out = tmp_path / "one.sqlite"
    assert export_run(theirs.path, "test-run", out, now=NOW).runs == 1
    assert sorted(path.name for path in tmp_path.glob("*one*")) == ["one.sqlite"]
    with Store.open(out, read_only=True) as exported:
        assert [found.name for found in exported.runs()] == ["test-run"]
        assert contents(exported, "test-run") == contents(theirs, "test-run")
        alone, among = (to_json(build_report(store, store.run("test-run"))) for store in (exported, theirs))
        assert alone == among
    assert rows(out, "SELECT name FROM judge") == [("claude-sonnet-5",)]
    assert rows(out, "SELECT benchmark FROM dataset") == [("mmbu-public",)]
    assert damage(out) == []
    # And back again: it is all there.
    before = dump(theirs.path)
    assert merge(theirs.path, out, now=NOW).runs[0].calls == 0
    assert dump(theirs.path) == before


def test_an_export_overwrites_nothing_and_names_near_runs(make_run: RunMaker, tmp_path: Path) -> None:
    theirs, _ = make_run(ROWS)
    out = tmp_path / "one.sqlite"
    out.write_bytes(b"mine")
    with pytest.raises(StoreError, match="is there already"):
        export_run(theirs.path, "test-run", out, now=NOW)
    with pytest.raises(RunNotFoundError, match="did you mean 'test-run'"):
        export_run(theirs.path, "tset-run", tmp_path / "two.sqlite", now=NOW)
    assert out.read_bytes() == b"mine"
    export_run(theirs.path, "test-run", out, force=True, now=NOW)
    assert rows(out, "SELECT count(*) FROM run") == [(1,)]
    assert [path.name for path in tmp_path.iterdir() if ".part" in path.name] == []
