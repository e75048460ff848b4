"""Runs, judges, selections, sessions, and where a run stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mmbu_async.errors import RunNotFoundError, StoreError
from mmbu_async.model import Answer, FailureKind, Sample, Score, Status, Usage
from mmbu_async.store import CallTotals, RunCounts, SharedVerdicts, Store, Unpriced, Writer

if TYPE_CHECKING:
    from tests.conftest import StoreKit


def another_run(store: Store, dataset_id: int, name: str, **changes: Any) -> int:
    values: dict[str, Any] = {
        "name": name,
        "benchmark": "mmbu-public",
        "dataset_id": dataset_id,
        "model": "m",
        "endpoint": "anthropic",
        "host": "h",
        "identity": {},
        "config": {},
        "package_version": "0",
        "now": 9.0,
    }
    return store.create_run(**(values | changes)).id


def test_a_run_is_found_by_name_with_everything_about_it(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store, 10)
    found = store.run("night")
    assert found == run
    assert found.identity == {"model": "test-vlm", "max_tokens": 2048}
    assert found.dataset.rows == 10
    assert found.judge is not None
    assert (found.judge.name, found.judge.identity) == ("claude-sonnet-5", {"model": "claude-sonnet-5"})
    another_run(store, run.dataset.id, "second")
    assert [one.name for one in store.runs()] == ["night", "second"]
    assert store.run("second").judge is None


def test_a_name_is_taken_once(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store)
    with pytest.raises(StoreError, match=r"store\.sqlite: there is a run 'night' already; resume it, or"):
        another_run(store, run.dataset.id, "night")
    assert len(store.runs()) == 1


def test_a_wrong_name_is_answered_with_close_ones(kit: StoreKit) -> None:
    store = kit.open()
    with pytest.raises(RunNotFoundError, match=r"no run 'nihgt'; it has no runs yet\."):
        store.run("nihgt")
    kit.begin(store)
    with pytest.raises(RunNotFoundError, match=r"no run 'nihgt'; did you mean 'night'\?"):
        store.run("nihgt")
    with pytest.raises(RunNotFoundError, match=r"no run 'zzz'; did you mean 'night'\?"):
        store.run("zzz")


def test_a_judge_is_its_identity_and_names_stay_apart(kit: StoreKit) -> None:
    store = kit.open()
    first = store.judge("claude", {"model": "c", "max_tokens": 512}, now=1.0)
    assert store.judge("claude", {"max_tokens": 512, "model": "c"}, now=2.0) == first
    assert store.judge("other words", {"max_tokens": 512, "model": "c"}, now=2.0) == first
    assert store.judge("claude", {"model": "c", "max_tokens": 256}, now=2.0).name == "claude-2"
    assert store.judge("claude", {"model": "c", "max_tokens": 128}, now=2.0).name == "claude-3"


def test_a_selection_only_grows(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store, 3000, limit=5)
    assert [row.sample.position for row in store.rows(run.id)] == [0, 1, 2, 3, 4]
    assert store.select(run.id, None, 3) == 5
    assert store.select(run.id, None, 7) == 7
    assert store.select(run.id, None, None) == 3000


def test_a_selection_takes_the_first_rows_that_are_wanted(kit: StoreKit) -> None:
    store = kit.open()
    whole, _ = kit.begin(store, 3000, limit=1)
    run_id = another_run(store, whole.dataset.id, "some")
    assert store.select(run_id, lambda sample: sample.position % 7 == 3, 200) == 200
    wanted = [n for n in range(3000) if n % 7 == 3][:200]
    assert [row.sample.position for row in store.rows(run_id)] == wanted
    assert store.select(run_id, lambda sample: sample.position % 7 == 3, None) == 429


def test_a_selection_stays_in_its_dataset(kit: StoreKit) -> None:
    store = kit.open()
    first, _ = kit.begin(store, 10, name="first")
    second, _ = kit.begin(store, 20, name="second")
    third, _ = kit.begin(store, 10, name="third", limit=4)
    assert (first.dataset.id, second.dataset.id) == (third.dataset.id, first.dataset.id + 1)
    assert [store.counts(run.id).selected for run in (first, second, third)] == [10, 20, 4]
    run_id = another_run(store, first.dataset.id, "kept")
    assert store.select(run_id, lambda _: True, None) == 10
    assert [row.sample.position for row in store.rows(second.id)] == list(range(20))


def test_what_the_next_resume_starts_from_can_change(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store, limit=5)
    store.settle_run_config(run.id, lambda _: {"limit": 9})
    assert store.run("night").config == {"limit": 9}
    assert store.run("night").identity == run.identity
    assert store.sessions(run.id)[0].config == {"rpm": 10}
    store.set_run_judge(run.id, store.judge("local", {"model": "local"}, now=4.0).id)
    judge = store.run("night").judge
    assert judge is not None
    assert judge.name == "local"


def test_one_row_of_each_route_can_be_looked_at(kit: StoreKit) -> None:
    store = kit.open()
    routes = ("single_answer", "multi_label", "single_answer", "object_detection", "multi_label")
    samples = (
        (Sample(id=f"r{n}", position=n, question="q", answer="a", route=route), "f")
        for n, route in enumerate(routes)
    )
    dataset = store.register_dataset("bench", "here", "s", samples, now=1.0)
    run_id = another_run(store, dataset.id, "some")
    store.select(run_id, lambda sample: sample.position != 1, None)
    assert [(one.id, one.route) for one in store.route_samples(run_id)] == [
        ("r0", "single_answer"),
        ("r3", "object_detection"),
        ("r4", "multi_label"),
    ]


def test_sessions_are_noted_with_their_end(kit: StoreKit) -> None:
    store = kit.open()
    run, first = kit.begin(store)
    store.end_session(first, "interrupted", now=63.0)
    kit.session(store, run, now=100.0, kind="resume")
    one, two = store.sessions(run.id)
    assert (one.kind, one.ended, one.wall_s, one.pid, one.config) == (
        "run",
        "interrupted",
        60.0,
        1,
        {"rpm": 10},
    )
    assert (two.kind, two.ended, two.wall_s, two.started_at) == ("resume", None, None, 100.0)
    store.end_session(first, "done", now=99.0)
    assert store.sessions(run.id)[0].ended == "interrupted"


async def test_counts_say_where_the_rows_stand(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store, 12, limit=10)
    async with Writer.open(kit.path) as writer:
        for key in (1, 2, 3, 4, 5):
            await writer.write(kit.failure(run, session, key, final=False), kit.reply(run, session, key))
        await writer.write(kit.failure(run, session, 6))
        await writer.write(kit.failure(run, session, 7, final=False))
        await writer.write(kit.verdict(run, 1, True), kit.verdict(run, 2, False), kit.verdict(run, 3, None))
    assert store.counts(run.id) == RunCounts(
        selected=10,
        completed=5,
        failed=1,
        pending=4,
        judged=2,
        unjudged=1,
        scored=0,
        to_judge=3,
    )
    scores = [
        (one, Answer(text="7", how="tag"), Score(status=Status.SCORED, correct=True, tp=1))
        for one in store.score_inputs(run.id, run.judge.id if run.judge else None)
        if one.key in (1, 2, 5)
    ]
    store.replace_scores(run.id, 1, scores, package_version="0", now=1.0)
    counts = store.counts(run.id)
    assert (counts.scored, counts.to_judge) == (3, 2)
    # Of rows 1 to 5, 1 and 2 have a verdict and a score, 5 a score without one, 3 and 4 neither.
    assert (counts.by_verdict, counts.need_judge, counts.coverage) == (2, 4, 0.5)
    assert store.counts(kit.begin(store, 12, name="empty")[0].id).coverage == 1.0


def test_counts_of_a_run_without_rows(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store)
    counts = store.counts(another_run(store, run.dataset.id, "bare"))
    assert (counts.selected, counts.completed, counts.failed, counts.pending) == (0, 0, 0, 0)


async def test_totals_sum_every_exchange(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store)
    store.end_session(session, "done", now=33.0)
    second = kit.session(store, run, now=100.0, kind="resume")
    store.end_session(second, "done", now=105.0)
    usage = Usage(input_tokens=10, output_tokens=5, cached_tokens=4, cache_write_tokens=3, reasoning_tokens=2)
    judge: dict[str, Any] = {"judge_id": 1, "prompt_sha": b"p" * 32}
    async with Writer.open(kit.path) as writer:
        await writer.write(
            kit.failure(run, session, 1, FailureKind.RATE_LIMIT, status=429, final=False),
            kit.failure(run, session, 1, FailureKind.TIMEOUT, attempt=2, final=False),
            kit.reply(run, session, 1, attempt=3, usage=usage, cost=0.5),
            kit.reply(run, session, 2, usage=usage, cost=None),
            kit.reply(run, session, 3, usage=Usage(reported=False), cost=0.0),
            kit.failure(run, second, 4, FailureKind.RATE_LIMIT, status=429),
            kit.reply(run, second, 1, usage=usage, cost=0.25, **judge),
            kit.failure(run, second, 2, FailureKind.SERVER_ERROR, status=500, **judge),
        )
    totals = store.totals(run.id)
    assert totals.infer == CallTotals(
        calls=6,
        ok=3,
        retries=2,
        rate_limited=2,
        input_tokens=20,
        output_tokens=10,
        reasoning_tokens=4,
        cached_tokens=8,
        cache_write_tokens=6,
        usage_unreported=1,
        cost_usd=0.5,
        cost_unknown=2,
        seconds=9.0,
    )
    assert (totals.judge.calls, totals.judge.ok, totals.judge.cost_usd) == (2, 1, 0.25)
    assert totals.judges == {1: totals.judge}
    assert totals.failures == {"rate_limit": 2, "timeout": 1}
    assert (totals.cost_usd, totals.cost_unknown, totals.wall_s) == (0.75, 2, 35.0)
    # A reply with a count and no price, and a time-out whose reply may have been charged for.
    assert totals.unpriced_infer == Unpriced(input_tokens=10, output_tokens=5, unseen=1, most_input_tokens=10)
    assert totals.unpriced_judge == Unpriced(most_input_tokens=10)
    assert (totals.first_call_at, totals.last_reply_at) == (1001.0, 1005.5)


def test_totals_of_a_run_without_calls(kit: StoreKit) -> None:
    store = kit.open()
    run, _ = kit.begin(store)
    totals = store.totals(run.id)
    assert totals.infer == CallTotals()
    assert (totals.first_call_at, totals.failures, totals.cost_usd) == (None, {}, 0.0)


async def test_totals_of_each_judge_and_what_it_did_not_have_to_be_paid_for(kit: StoreKit) -> None:
    store = kit.open()
    run, session = kit.begin(store)
    other, second = kit.begin(store, name="other")
    free = store.judge("free", {"model": "free"}, now=1.0).id
    async with Writer.open(kit.path) as writer:
        for key, cost in ((1, 0.25), (2, 0.5), (3, 0.25)):
            # Of two replies to one prompt the second is part of what the verdict cost.
            sha = bytes([min(key, 2)]) * 32
            await writer.write(kit.reply(other, second, key, judge_id=1, prompt_sha=sha, cost=cost))
        await writer.write(
            *(kit.verdict(run, key, True, shared=True) for key in (1, 2, 3)),
            kit.verdict(run, 4, True),
            kit.verdict(run, 5, None, shared=True),
            *(kit.verdict(run, key, False, judge_id=free, shared=True) for key in (1, 2)),
        )
        assert store.totals(run.id).shared == (
            SharedVerdicts(judge="claude-sonnet-5", verdicts=3, usd_each=0.5),
            SharedVerdicts(judge="free", verdicts=2, usd_each=None),
        )
        call: dict[str, Any] = {"judge_id": 1, "prompt_sha": b"z" * 32}
        await writer.write(
            kit.reply(run, session, 1, cost=None, **call), kit.reply(run, session, 1, judge_id=free, cost=2.0)
        )
    totals = store.totals(run.id)
    assert totals.shared[0].usd_each is None, "one of unknown cost is among those that were bought"
    assert {judge: found.cost_usd for judge, found in totals.judges.items()} == {1: 0.0, free: 2.0}
    assert (totals.judge.calls, totals.judge.cost_usd, totals.judge.cost_unknown) == (2, 2.0, 1)
    assert totals.unpriced_judge == Unpriced(input_tokens=1000, output_tokens=50, most_input_tokens=1000)
    assert store.totals(other.id).shared == ()
