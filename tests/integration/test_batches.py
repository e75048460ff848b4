"""Whole runs in batches: what comes back, what goes back to the queue, and what it costs."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.endpoints.batches.calls import BatchCallError
from mmbu_async.endpoints.batches.client import OpenAIBatches
from mmbu_async.errors import BudgetReachedError, EndpointDownError, EndpointError
from mmbu_async.model import Failure, FailureKind, Status
from tests.batch_kit import batched, batches_by_state, bought, scores, server, submissions, until
from tests.whole_run import ENDPOINTS, ROWS, calls, complete, config, simulated, statuses, stops, stored

pytestmark = pytest.mark.usefixtures("keys", "short_waits")


@ENDPOINTS
async def test_a_run_in_batches_comes_to_the_scores_of_one_without(
    data: Path, store: Path, tmp_path: Path, endpoint: str
) -> None:
    alone = tmp_path / "alone.sqlite"
    async with simulated() as simulator:
        await api.evaluate(config(simulator, alone, data, endpoint))
    faults = ("server_error@model=0.1", "overloaded@judge=0.1", "no_verdict@judge=first:1")
    async with server(*faults, batch_expire=0.1) as simulator:
        result = await api.evaluate(batched(simulator, store, data, endpoint))
        await complete(result, store)
        assert scores(store) == scores(alone)
        assert set((await bought(simulator)).values()) == {1}
        records = await submissions(simulator)
        sizes = Counter(record.batch for record in simulator.log if record.role in ("model", "judge"))
        assert max(sizes.values()) <= 15
        assert sizes.keys() == {record.batch for record in records}
        assert {record.path for record in records} == {
            "/v1/batches" if endpoint == "openai" else "/v1/messages/batches"
        }
        # Nothing was asked one by one, and every exchange is in the store as if it had been.
        asked = [record for record in simulator.log if record.role in ("model", "judge")]
        assert all(record.batch for record in asked)
        assert stored(store, "SELECT count(*) FROM call WHERE kind <> 'image'") == [(len(asked),)]
        fates = dict(stored(store, "SELECT fate, count(*) FROM batch_item GROUP BY fate"))
        assert fates["again"] == len(asked) - fates["reply"] > 0
    assert set(batches_by_state(store)) == {"fetched"}


@ENDPOINTS
async def test_refused_rows_are_kept_with_the_endpoints_words(data: Path, store: Path, endpoint: str) -> None:
    async with server("content_policy@model=text:number 7?") as simulator:
        result = await api.evaluate(batched(simulator, store, data, endpoint))
        assert statuses(result) == {Status.SCORED: ROWS - 1, Status.FAILED: 1}
        assert result.exit_code == 3
        assert len(await calls(simulator)) == ROWS
    ((kind, words, final, cost),) = stored(
        store, "SELECT kind, words, final, cost_usd FROM call WHERE NOT ok"
    )
    assert (kind, final, cost) == ("bad_request", 1, 0.0)
    assert "safety system" in words or "content" in words.lower()


async def test_a_row_that_fails_again_and_again_is_given_up_for_the_session(data: Path, store: Path) -> None:
    async with server("server_error@model=text:number 7?") as simulator:
        result = await api.evaluate(batched(simulator, store, data, max_attempts=3))
        assert statuses(result) == {Status.SCORED: ROWS - 1, Status.FAILED: 1}
    found = stored(store, "SELECT attempt, final FROM call WHERE NOT ok ORDER BY id")
    assert found == [(1, 0), (2, 0), (3, 1)]


@ENDPOINTS
async def test_a_judge_is_asked_twice_and_then_the_row_is_unjudged(
    data: Path, store: Path, endpoint: str
) -> None:
    async with server("no_verdict@judge=text:number 7?") as simulator:
        result = await api.evaluate(batched(simulator, store, data, endpoint))
        assert statuses(result) == {Status.SCORED: ROWS - 1, Status.UNJUDGED: 1}
        assert len(await calls(simulator, "judge")) == ROWS + 1


async def test_a_full_queue_is_waited_for(data: Path, store: Path) -> None:
    async with server(batch_queue=16, latency_s=0.2) as simulator:
        result = await api.evaluate(batched(simulator, store, data))
        await complete(result, store)
        assert set((await bought(simulator)).values()) == {1}
    assert batches_by_state(store)["refused"] > 0


async def test_anthropics_full_queue_is_waited_for(data: Path, store: Path) -> None:
    async with server(batch_queue=16, latency_s=0.2, retry_after_s=0.05) as simulator:
        result = await api.evaluate(batched(simulator, store, data, "anthropic"))
        await complete(result, store)
        assert set((await bought(simulator)).values()) == {1}


@ENDPOINTS
async def test_batches_that_are_too_large_are_halved(data: Path, store: Path, endpoint: str) -> None:
    async with server(batch_max_bytes=400_000) as simulator:
        result = await api.evaluate(batched(simulator, store, data, endpoint, batch_size=None))
        await complete(result, store)
        assert set((await bought(simulator)).values()) == {1}
    assert batches_by_state(store)["refused"] > 0


PRICES: dict[str, Any] = {"input_price": 1000.0, "output_price": 2000.0}


@ENDPOINTS
async def test_no_batch_goes_out_that_could_pass_the_money_cap(
    data: Path, store: Path, endpoint: str
) -> None:
    cap = 6.0
    async with server(latency_s=0.02) as simulator:
        judge = {"max_tokens": 64, **PRICES}
        settings = batched(
            simulator, store, data, endpoint, max_tokens=64, max_cost=cap, judge=judge, **PRICES
        )
        error = await stops(settings, BudgetReachedError, 6)
        assert "money cap" in str(error)
        billed = [record for record in simulator.log if record.charged]
        spent = sum(r.input_tokens * 1000 + r.output_tokens * 2000 for r in billed) / 1e6
        assert cap / 2 < spent <= cap
        # The worst case of each batch was set aside before it went out.
        worst = stored(store, "SELECT sum(worst_usd), max(worst_usd) FROM batch WHERE state = 'fetched'")
        assert worst[0][0] >= spent
        assert worst[0][1] <= cap
        result = await api.resume("r", store=store, changes={"max_cost": 1000.0})
        await complete(result, store)
    assert stored(store, "SELECT count(*) FROM call WHERE ok AND cost_usd IS NULL") == [(0,)]


async def test_the_half_price_is_what_is_stored(data: Path, store: Path, monkeypatch: Any) -> None:
    """The simulator is a private address, of which no price is known: it stands in for the maker's here."""
    monkeypatch.setattr("mmbu_async.endpoints.prices._is_private", lambda host: False)
    async with server() as simulator:
        settings = batched(
            simulator, store, data, model="gpt-4o-mini", judge={"model": "claude-sonnet-4-5"}, limit=5
        )
        await api.evaluate(settings)
    rows = stored(store, "SELECT input_tokens, output_tokens, cost_usd FROM call WHERE judge_id IS NULL")
    for given, made, cost in rows:
        assert cost == pytest.approx((given * 0.15 + made * 0.6) / 1e6 / 2)
    judged = stored(
        store, "SELECT input_tokens, output_tokens, cost_usd FROM call WHERE judge_id IS NOT NULL"
    )
    for given, made, cost in judged:
        assert cost == pytest.approx((given * 3 + made * 15) / 1e6 / 2)


async def test_a_server_without_batches_says_what_to_do(data: Path, store: Path) -> None:
    async with server() as simulator:
        settings = batched(simulator, store, data)
        elsewhere = settings.model_copy(update={"base_url": simulator.url + "/elsewhere"})
        error = await stops(elsewhere, EndpointError, 4)
    assert "has no batch API" in str(error)
    assert "turn --batch off" in str(error)
    assert stored(store, "SELECT count(*) FROM call") == [(0,)]


async def test_a_wrong_key_stops_the_run(data: Path, store: Path) -> None:
    async with server(keys=frozenset({"another"})) as simulator:
        error = await stops(batched(simulator, store, data), EndpointError, 4)
    assert "OPENAI_API_KEY" in str(error)


async def test_a_batch_without_one_useful_answer_stops_the_run(data: Path, store: Path) -> None:
    async with server("bad_request@model=1.0") as simulator:
        error = await stops(batched(simulator, store, data), EndpointDownError, 5)
        assert "nothing useful" in str(error)
        assert len(await calls(simulator)) <= ROWS


@ENDPOINTS
async def test_only_the_judge_in_batches(data: Path, store: Path, endpoint: str) -> None:
    async with server() as simulator:
        result = await api.evaluate(
            batched(simulator, store, data, endpoint, batch=None, judge={"batch": True})
        )
        await complete(result, store)
        assert {bool(record.batch) for record in await calls(simulator)} == {False}
        assert {bool(record.batch) for record in await calls(simulator, "judge")} == {True}


async def test_only_the_model_in_batches(data: Path, store: Path) -> None:
    async with server() as simulator:
        result = await api.evaluate(batched(simulator, store, data, judge={"batch": False}))
        await complete(result, store)
        assert {bool(record.batch) for record in await calls(simulator)} == {True}
        assert {bool(record.batch) for record in await calls(simulator, "judge")} == {False}


async def test_another_judge_in_batches(data: Path, store: Path) -> None:
    async with server() as simulator:
        await complete(await api.evaluate(batched(simulator, store, data)), store)
        judge = {"model": "another"}
        result = await api.rejudge("r", store=store, changes={"judge": judge})
        assert result.complete
        others = [record for record in await calls(simulator, "judge") if record.model == "another"]
        assert len(others) == ROWS
        assert all(record.batch for record in others)


async def test_rows_with_the_same_prompt_are_judged_once(data: Path, store: Path) -> None:
    table = data / "metadata.jsonl"
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    same = [row | {"question": "Which imaging technique made the picture?"} for row in rows]
    table.write_text("\n".join(map(json.dumps, same)))
    async with server() as simulator:
        result = await api.evaluate(batched(simulator, store, data))
        await complete(result, store)
        assert len(await calls(simulator, "judge")) == 1
    assert stored(store, "SELECT count(*), sum(shared) FROM verdict") == [(ROWS, ROWS - 1)]


@ENDPOINTS
async def test_batches_that_are_called_back_keep_what_was_done(
    data: Path, store: Path, endpoint: str
) -> None:
    async with server(latency_s=3.0) as simulator:
        running = asyncio.create_task(api.evaluate(batched(simulator, store, data, endpoint), check=False))
        await until(lambda: batches_by_state(store)["submitted"] == 3 if store.exists() else False)
        await asyncio.sleep(0.7)
        running.cancel()
        await asyncio.wait([running])
        result = await api.call_back("r", store=store)
        done = result.counts.completed
        assert 0 < done < ROWS
        assert result.counts.pending == ROWS - done
        assert sum((await bought(simulator)).values()) == done
        assert len(await submissions(simulator)) == 3
        # What is left is asked one by one, and nothing twice.
        result = await api.resume("r", store=store, changes={"batch": False})
        await complete(result, store)
        assert set((await bought(simulator)).values()) == {1}
        assert len(await submissions(simulator)) == 3


async def test_a_resume_without_batches_calls_them_back_by_itself(data: Path, store: Path) -> None:
    async with server(latency_s=3.0) as simulator:
        running = asyncio.create_task(api.evaluate(batched(simulator, store, data), check=False))
        await until(lambda: batches_by_state(store)["submitted"] == 3 if store.exists() else False)
        running.cancel()
        await asyncio.wait([running])
        result = await api.resume("r", store=store, changes={"batch": False})
        await complete(result, store)
        assert set((await bought(simulator)).values()) == {1}
        assert {record.batch for record in await calls(simulator, "judge")} == {""}


async def test_forgotten_batches_give_their_rows_back(data: Path, store: Path) -> None:
    async with server(latency_s=30.0) as simulator:
        running = asyncio.create_task(api.evaluate(batched(simulator, store, data), check=False))
        await until(lambda: batches_by_state(store)["submitted"] == 3 if store.exists() else False)
        running.cancel()
        await asyncio.wait([running])
        assert [status.batches[0].open for status in api.status("r", store=store)] == [True]
        assert api.forget_batches("r", store=store) == 3
        assert batches_by_state(store) == {"lost": 3}
        result = await api.resume("r", store=store, changes={"batch": False})
        await complete(result, store)


async def test_batches_that_are_out_move_to_another_store(data: Path, store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    async with server(latency_s=1.0) as simulator:
        running = asyncio.create_task(api.evaluate(batched(simulator, store, data), check=False))
        await until(lambda: batches_by_state(store)["submitted"] == 3 if store.exists() else False)
        running.cancel()
        await asyncio.wait([running])
        api.store_merge(store, store=other)
        assert batches_by_state(other) == {"submitted": 3}
        assert stored(other, "SELECT count(*) FROM batch_item WHERE fate IS NULL") == [(ROWS,)]
        await complete(await api.resume("r", store=other), other)
        assert set((await bought(simulator)).values()) == {1}
        # What is further on there is taken back, and nothing is left to do here.
        api.store_merge(other, store=store)
        assert set(batches_by_state(store)) == {"fetched"}
        assert stored(store, "SELECT count(*) FROM batch_item WHERE fate IS NULL") == [(0,)]
        asked = len(simulator.log)
        await api.resume("r", store=store)
        assert len(simulator.log) == asked


async def test_a_provider_that_answers_no_look_for_long_stops_the_run(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(self: Any, batch: str) -> Any:
        raise BatchCallError(Failure(kind=FailureKind.CONNECTION, message="nobody there"), sent=True)

    async with server() as simulator:
        settings = batched(simulator, store, data, max_retry_time=0.4)
        with monkeypatch.context() as patch:
            patch.setattr(OpenAIBatches, "look", silent)
            error = await stops(settings, EndpointDownError, 5)
        assert "cannot be asked about batches (nobody there)" in str(error)
        await complete(await api.resume("r", store=store), store)
        assert set((await bought(simulator)).values()) == {1}


async def test_batches_at_another_address_are_not_asked_for_here(data: Path, store: Path) -> None:
    async with server(latency_s=30.0) as simulator:
        running = asyncio.create_task(api.evaluate(batched(simulator, store, data), check=False))
        await until(lambda: batches_by_state(store)["submitted"] == 3 if store.exists() else False)
        running.cancel()
        await asyncio.wait([running])
        async with server() as other:
            with pytest.raises(EndpointDownError, match="batches of this run are out at"):
                await api.resume("r", store=store, changes={"base_url": f"{other.url}/v1"})
            assert await calls(other) == []


async def test_a_batch_that_the_provider_does_not_know_names_the_way_out(data: Path, store: Path) -> None:
    async with server(latency_s=30.0) as simulator:
        running = asyncio.create_task(api.evaluate(batched(simulator, store, data), check=False))
        await until(lambda: batches_by_state(store)["submitted"] == 3 if store.exists() else False)
        running.cancel()
        await asyncio.wait([running])
        with connect(store) as connection:
            connection.execute("UPDATE batch SET remote_id = 'batch_gone'")
        with pytest.raises(EndpointError, match="mmbu batches RUN --forget"):
            await api.resume("r", store=store)


async def test_responses_go_in_batches_too(data: Path, store: Path) -> None:
    async with server(batch_expire=0.1) as simulator:
        settings = batched(
            simulator, store, data, endpoint="openai", judge={"endpoint": "responses", "model": "j"}
        )
        changes = {"endpoint": "responses"}
        result = await api.evaluate(settings.model_copy(update=changes))
        await complete(result, store)
        assert {record.path for record in await calls(simulator)} == {"/v1/responses"}
        assert {record.path for record in await calls(simulator, "judge")} == {"/v1/responses"}
        assert set((await bought(simulator)).values()) == {1}
