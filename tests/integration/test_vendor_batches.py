"""The simulator's batch endpoints against each vendor's own client: a batch from its file to its results."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import anthropic
import openai
import orjson
import pytest

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.batches.calls import Wanted
from mmbu_async.endpoints.batches.client import CLIENTS
from mmbu_async.endpoints.batches.format import End
from mmbu_async.endpoints.batches.transport import BatchAiohttp
from mmbu_async.endpoints.batches.upload import Upload
from mmbu_async.endpoints.client import WIRE_FORMATS
from mmbu_async.endpoints.transport import Timeouts
from mmbu_async.model import Completion, Failure, Prompt
from mmbu_async.simulator import Simulator
from tests.batch_kit import server
from tests.whole_run import ENDPOINTS, KEY

pytestmark = pytest.mark.filterwarnings("ignore")
"""What the vendors' packages warn of is theirs."""
QUESTIONS = ("one?", "two?", "refused?")


async def test_openais_own_client_goes_the_whole_way() -> None:
    lines = [
        orjson.dumps(
            {
                "custom_id": question,
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {"model": "m", "messages": [{"role": "user", "content": question}]},
            }
        )
        for question in QUESTIONS
    ]
    async with (
        server("bad_request=text:refused?") as simulator,
        openai.AsyncOpenAI(
            api_key=KEY, base_url=f"{simulator.url}/v1", _strict_response_validation=True, max_retries=0
        ) as client,
    ):
        file = await client.files.create(file=("a.jsonl", io.BytesIO(b"\n".join(lines))), purpose="batch")
        batch = await client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"mmbu_marker": "x"},
        )
        while (batch := await client.batches.retrieve(batch.id)).status != "completed":  # noqa: ASYNC110 - polling is what is tested
            await asyncio.sleep(0.01)
        assert batch.request_counts is not None
        assert (batch.request_counts.completed, batch.request_counts.failed) == (2, 1)
        assert batch.metadata == {"mmbu_marker": "x"}
        assert [one.id async for one in client.batches.list(limit=1)] == [batch.id]
        assert [one.filename async for one in client.files.list(purpose="batch")] == ["a.jsonl"]
        assert batch.output_file_id is not None
        assert batch.error_file_id is not None
        output = (await client.files.content(batch.output_file_id)).read()
        found = {line["custom_id"]: line for line in map(orjson.loads, output.splitlines())}
        assert found.keys() == {"one?", "two?"}
        reply = found["one?"]["response"]["body"]
        assert openai.types.chat.ChatCompletion.model_validate(reply).choices[0].message.content
        (bad,) = (await client.files.content(batch.error_file_id)).read().splitlines()
        assert orjson.loads(bad)["response"]["status_code"] == 400
        with pytest.raises(openai.ConflictError):
            await client.batches.cancel(batch.id)
        with pytest.raises(openai.NotFoundError):
            await client.batches.retrieve("batch_none")


async def test_anthropics_own_client_goes_the_whole_way() -> None:
    requests: Any = [
        {
            "custom_id": f"r{number}",
            "params": {
                "model": "m",
                "max_tokens": 50,
                "messages": [{"role": "user", "content": question}],
            },
        }
        for number, question in enumerate(QUESTIONS)
    ]
    async with (
        server("bad_request=text:refused?") as simulator,
        anthropic.AsyncAnthropic(
            api_key=KEY, base_url=simulator.url, _strict_response_validation=True, max_retries=0
        ) as client,
    ):
        batch = await client.messages.batches.create(requests=requests)
        while (batch := await client.messages.batches.retrieve(batch.id)).processing_status != "ended":  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
        counts = batch.request_counts
        assert (counts.succeeded, counts.errored, counts.processing) == (2, 1, 0)
        assert [one.id async for one in client.messages.batches.list(limit=1)] == [batch.id]
        found = {
            line.custom_id: line.result async for line in await client.messages.batches.results(batch.id)
        }
        assert {name: result.type for name, result in found.items()} == {
            "r0": "succeeded",
            "r1": "succeeded",
            "r2": "errored",
        }
        assert found["r2"].type == "errored"
        assert found["r2"].error.error.type == "invalid_request_error"
        with pytest.raises(anthropic.BadRequestError):
            await client.messages.batches.cancel(batch.id)


def client_of(simulator: Simulator, endpoint: str, transport: BatchAiohttp) -> tuple[Any, CallSettings]:
    base = simulator.url + ("/v1" if endpoint == "openai" else "")
    settings = CallSettings.model_validate({"model": "m", "endpoint": endpoint, "base_url": base})
    wire = WIRE_FORMATS[endpoint]()
    return CLIENTS[endpoint](settings, wire, transport, key=KEY), settings


@ENDPOINTS
async def test_our_client_goes_the_same_way(endpoint: str) -> None:
    marker = "mmbu" + "0c" * 10
    async with (
        server("bad_request=text:refused?", batch_expire=0.3, seed=2) as simulator,
        BatchAiohttp(Timeouts(total=30, connect=5, idle=5)) as transport,
    ):
        calls, settings = client_of(simulator, endpoint, transport)
        with Upload(calls.form, marker, "/v1/chat/completions", most_requests=9, most_bytes=10**6) as upload:
            for question in (*QUESTIONS, "four?", "five?"):
                upload.add(WIRE_FORMATS[endpoint]().body(settings, Prompt(parts=(question,)), ()))
            batch = await calls.submit(upload)
            wanted = Wanted(marker=marker, requests=5, bytes=upload.size, since=0.0, known=())
        while not (batch := await calls.look(batch.id)).ended:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
        sighting = await calls.find(wanted)
        assert sighting.batch is not None
        assert sighting.batch.id == batch.id
        found = [result async for result in calls.results(batch)]
        assert {result.custom_id for result in found} == {f"{marker}-{number}" for number in range(5)}
        ends = [result.end for result in found]
        assert End.EXPIRED in ends
        outcomes = [result.outcome for result in found]
        assert any(isinstance(outcome, Completion) for outcome in outcomes)
        assert batch.finished == 5
        refused = next((one for one in found if one.custom_id == f"{marker}-2" and one.outcome), None)
        assert refused is None or isinstance(refused.outcome, Failure)
