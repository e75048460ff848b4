"""A process that dies at the worst moments of a batch, and the one that comes after it: nothing is bought
twice, and nothing that was paid for is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from mmbu_async import api
from mmbu_async.endpoints.batches.calls import PAGE
from mmbu_async.pipeline import batch_fetch
from tests.batch_kit import DiedError, batched, batches_by_state, bought, dies, server, submissions
from tests.whole_run import ENDPOINTS, KEY, ROWS, calls, complete, stored

pytestmark = pytest.mark.usefixtures("keys", "short_waits")


@ENDPOINTS
async def test_before_anything_was_sent(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    async with server() as simulator:
        undo = dies(monkeypatch, endpoint, "submit", after=False)
        with pytest.raises(DiedError):
            await api.evaluate(batched(simulator, store, data, endpoint))
        assert batches_by_state(store) == {"submitting": 1}
        # Its rows stand in the store, and are nobody else's until it is clear that it never arrived.
        assert stored(store, "SELECT count(*) FROM batch_item WHERE fate IS NULL") == [(15,)]
        assert await submissions(simulator) == []
        undo()
        await complete(await api.resume("r", store=store), store)
        assert batches_by_state(store)["lost"] == 1
        assert set((await bought(simulator)).values()) == {1}


@ENDPOINTS
async def test_after_it_was_taken_and_before_its_name_was_known(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    async with server(batch_listing_lag_s=0.05) as simulator:
        undo = dies(monkeypatch, endpoint, "submit", after=True)
        with pytest.raises(DiedError):
            await api.evaluate(batched(simulator, store, data, endpoint))
        assert batches_by_state(store) == {"submitting": 1}
        (taken,) = await submissions(simulator)
        undo()
        await complete(await api.resume("r", store=store), store)
        assert set(batches_by_state(store)) == {"fetched"}
        assert (taken.batch,) in stored(store, "SELECT remote_id FROM batch")
        assert set((await bought(simulator)).values()) == {1}


async def test_with_the_file_uploaded_and_no_batch_of_it(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server() as simulator:
        undo = dies(monkeypatch, "openai", "begin", after=False)
        with pytest.raises(DiedError):
            await api.evaluate(batched(simulator, store, data, batch_size=ROWS))
        assert await submissions(simulator) == []
        undo()
        await complete(await api.resume("r", store=store), store)
        # The file that was there was used: nothing was sent a second time.
        assert set(batches_by_state(store)) == {"fetched"}
        assert set((await bought(simulator)).values()) == {1}
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session,
            session.get(f"{simulator.url}/v1/files?purpose=batch") as response,
        ):
            files = (await response.json())["data"]
    names = [file["filename"] for file in files]
    assert len(names) == len(set(names)) == len(stored(store, "SELECT id FROM batch"))


@ENDPOINTS
async def test_in_the_middle_of_the_results(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    real = batch_fetch._Taking.take

    async def last(self: Any, results: Any) -> None:
        await real(self, results)
        raise DiedError

    async with server() as simulator:
        with monkeypatch.context() as patch:
            patch.setattr(batch_fetch, "CHUNK", 4)
            patch.setattr(batch_fetch._Taking, "take", last)
            with pytest.raises(DiedError):
                await api.evaluate(batched(simulator, store, data, endpoint))
        ((done,),) = stored(store, "SELECT count(*) FROM batch_item WHERE fate = 'reply'")
        assert done == stored(store, "SELECT count(*) FROM call")[0][0]
        assert 0 < done < ROWS
        await complete(await api.resume("r", store=store), store)
        assert set((await bought(simulator)).values()) == {1}
        asked = await calls(simulator)
        # Results that were stored before were not stored again.
        assert stored(store, "SELECT count(*) FROM call WHERE judge_id IS NULL") == [(len(asked),)]


@ENDPOINTS
async def test_answers_that_are_lost_on_the_way(data: Path, store: Path, endpoint: str) -> None:
    # The first looks come before the list shows anything.
    async with server(batch_lost_answers=0.6, batch_listing_lag_s=0.3, seed=4) as simulator:
        result = await api.evaluate(batched(simulator, store, data, endpoint, batch_poll=0.6))
        await complete(result, store)
        taken = await submissions(simulator)
        assert any(record.status == 0 for record in taken)
        assert {record.batch for record in taken} == {
            name for (name,) in stored(store, "SELECT remote_id FROM batch WHERE state = 'fetched'")
        }
        assert set((await bought(simulator)).values()) == {1}


async def test_a_strangers_batch_of_as_many_requests_is_waited_for(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anthropic does not tell whose an unfinished batch is: handing ours in again could be a second time."""
    stranger = {
        "requests": [
            {
                "custom_id": f"other-{number}",
                "params": {
                    "model": "other",
                    "max_tokens": 5,
                    "messages": [{"role": "user", "content": f"{number}?"}],
                },
            }
            for number in range(15)
        ]
    }
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    async with server(latency_s=1.5) as simulator:
        undo = dies(monkeypatch, "anthropic", "submit", after=False)
        with pytest.raises(DiedError):
            await api.evaluate(batched(simulator, store, data, "anthropic"))
        undo()
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{simulator.url}/v1/messages/batches", json=stranger) as response,
        ):
            assert response.status == 200
        await complete(await api.resume("r", store=store), store)
        theirs = [record for record in simulator.log if record.custom_id.startswith("other-")]
        ((again,),) = stored(
            store,
            "SELECT min(batch.created_at) FROM batch JOIN batch_item ON batch_item.batch_id = batch.id "
            "WHERE fate = 'reply' AND sample_id = (SELECT min(sample_id) FROM batch_item)",
        )
        assert again >= max(record.ended_at for record in theirs)
        assert batches_by_state(store)["lost"] == 1
        ours = [record for record in await submissions(simulator) if not record.custom_id.startswith("other")]
        assert len(ours) == batches_by_state(store)["fetched"]
        mine = {record.content for record in await calls(simulator) if record.model == "m"}
        assert len(mine) == ROWS


async def test_a_batch_is_found_behind_pages_of_others(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmbu_async.endpoints.batches.calls.PAGE", 2)
    assert PAGE == 100
    async with server() as simulator:
        undo = dies(monkeypatch, "openai", "submit", after=True)
        with pytest.raises(DiedError):
            await api.evaluate(batched(simulator, store, data))
        undo()
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:
            async with session.get(f"{simulator.url}/v1/files?purpose=batch") as response:
                file = (await response.json())["data"][0]["id"]
            body = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
            for _ in range(5):
                await (await session.post(f"{simulator.url}/v1/batches", json=body)).read()
        await complete(await api.resume("r", store=store), store)
        assert set(batches_by_state(store)) == {"fetched"}
