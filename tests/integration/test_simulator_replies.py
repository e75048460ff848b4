"""The simulator over real sockets: what a well-behaved endpoint answers, and what it records."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from multidict import CIMultiDictProxy
from PIL import Image

from mmbu_async.errors import ConfigError
from mmbu_async.simulator import Latency, Simulator, SimulatorConfig, paint

OPENAI, ANTHROPIC = "/v1/chat/completions", "/v1/messages"
HEADERS = {"x-api-key": "sk-canary", "anthropic-version": "2023-06-01", "authorization": "Bearer sk-canary"}
QUESTION = "How many nuclei?\n\nOutput format: x"


def _png(seed: int = 1, count: int = 9) -> bytes:
    file = io.BytesIO()
    Image.fromarray(paint.fluorescence(np.random.default_rng(seed), count).pixels).save(file, "PNG")
    return file.getvalue()


PNG = _png()


def _body(path: str, image: bytes | None = PNG, text: str = QUESTION, **more: Any) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if image is not None:
        data = base64.b64encode(image).decode()
        if path == OPENAI:
            parts.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}})
        else:
            source = {"type": "base64", "media_type": "image/png", "data": data}
            parts.append({"type": "image", "source": source})
    return {"model": "m-1", "max_tokens": 300, "messages": [{"role": "user", "content": parts}]} | more


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        yield session


async def _post(
    client: aiohttp.ClientSession, sim: Simulator, path: str, **more: Any
) -> tuple[int, Any, CIMultiDictProxy[str]]:
    async with client.post(sim.url + path, json=_body(path, **more)) as response:
        return response.status, json.loads(await response.read()), response.headers


async def test_openai_reply(client: aiohttp.ClientSession) -> None:
    async with Simulator() as sim:
        status, value, headers = await _post(client, sim, OPENAI)
    assert status == 200
    choice = value["choices"][0]
    assert value["object"] == "chat.completion"
    assert value["id"].startswith("chatcmpl-")
    assert value["model"] == "m-1"
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["content"].endswith("<answer>9</answer>")
    usage = value["usage"]
    assert usage["prompt_tokens"] == -(-len(QUESTION) // 4) + -(-160 * 160 // 750)
    assert usage["completion_tokens"] == -(-len(choice["message"]["content"]) // 4)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert headers["x-request-id"].startswith("req_")


async def test_anthropic_reply(client: aiohttp.ClientSession) -> None:
    async with Simulator() as sim:
        status, value, headers = await _post(client, sim, ANTHROPIC)
    assert status == 200
    assert (value["type"], value["role"], value["stop_reason"]) == ("message", "assistant", "end_turn")
    assert value["content"][0]["type"] == "text"
    assert value["content"][0]["text"].endswith("<answer>9</answer>")
    assert value["usage"]["input_tokens"] == -(-len(QUESTION) // 4) + -(-160 * 160 // 750)
    assert headers["request-id"].startswith("req_")


async def _events(
    client: aiohttp.ClientSession, sim: Simulator, path: str, **more: Any
) -> list[dict[str, Any]]:
    async with client.post(sim.url + path, json=_body(path, stream=True, **more)) as response:
        assert response.content_type == "text/event-stream"
        text = (await response.read()).decode()
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    assert text.endswith("\n\n")
    if path == OPENAI:
        assert data.pop() == "[DONE]"
    return [json.loads(line) for line in data]


async def test_openai_stream_says_the_same_as_the_body(client: aiohttp.ClientSession) -> None:
    async with Simulator() as sim:
        _, whole, _ = await _post(client, sim, OPENAI)
        bare = await _events(client, sim, OPENAI)
        full = await _events(client, sim, OPENAI, stream_options={"include_usage": True})
    text = "".join(event["choices"][0]["delta"].get("content", "") for event in bare)
    assert text == whole["choices"][0]["message"]["content"]
    assert bare[-1]["choices"][0]["finish_reason"] == "stop"
    assert all("usage" not in event for event in bare)
    assert full[-1]["choices"] == []
    assert full[-1]["usage"] == whole["usage"]
    assert all(event["usage"] is None for event in full[:-1])


async def test_anthropic_stream_says_the_same_as_the_body(client: aiohttp.ClientSession) -> None:
    async with Simulator() as sim:
        _, whole, _ = await _post(client, sim, ANTHROPIC)
        events = await _events(client, sim, ANTHROPIC)
    kinds = [event["type"] for event in events]
    assert kinds[:3] == ["message_start", "content_block_start", "ping"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    text = "".join(event["delta"]["text"] for event in events if event["type"] == "content_block_delta")
    assert text == whole["content"][0]["text"]
    assert events[0]["message"]["usage"]["input_tokens"] == whole["usage"]["input_tokens"]
    assert events[-2]["delta"]["stop_reason"] == "end_turn"
    assert events[-2]["usage"]["output_tokens"] == whole["usage"]["output_tokens"]


@pytest.mark.parametrize("path", [OPENAI, ANTHROPIC])
async def test_the_token_limit_cuts_the_reply(client: aiohttp.ClientSession, path: str) -> None:
    async with Simulator() as sim:
        _, value, _ = await _post(client, sim, path, max_tokens=3)
    if path == OPENAI:
        assert value["choices"][0]["finish_reason"] == "length"
        assert len(value["choices"][0]["message"]["content"]) == 12
        assert value["usage"]["completion_tokens"] == 3
    else:
        assert value["stop_reason"] == "max_tokens"
        assert value["usage"]["output_tokens"] == 3


async def test_keys_and_models_that_are_configured(client: aiohttp.ClientSession) -> None:
    config = SimulatorConfig(keys=frozenset({"sk-good"}), models=frozenset({"m-2"}))
    good = {"authorization": "Bearer sk-good", "x-api-key": "sk-good"}
    async with Simulator(config) as sim:
        status, value, _ = await _post(client, sim, OPENAI)
        assert (status, value["error"]["code"]) == (401, "invalid_api_key")
        assert "sk-canary" not in json.dumps(value)
        status, value, _ = await _post(client, sim, ANTHROPIC)
        assert (status, value["type"], value["error"]["type"]) == (401, "error", "authentication_error")
        async with client.post(sim.url + OPENAI, json=_body(OPENAI), headers=good) as response:
            assert response.status == 404
            assert (await response.json())["error"]["code"] == "model_not_found"
        async with client.post(sim.url + ANTHROPIC, json=_body(ANTHROPIC), headers=good) as response:
            assert response.status == 404
            assert (await response.json())["error"] == {"type": "not_found_error", "message": "model: m-1"}
        async with client.post(
            sim.url + OPENAI, json=_body(OPENAI) | {"model": "m-2"}, headers=good
        ) as response:
            assert response.status == 200
        async with client.get(sim.url + "/v1/models") as response:
            listed = await response.json()
        assert [model["id"] for model in listed["data"]] == ["m-2"]


async def test_anthropic_wants_its_headers() -> None:
    async with Simulator() as sim, aiohttp.ClientSession() as plain:
        async with plain.post(sim.url + ANTHROPIC, json=_body(ANTHROPIC)) as response:
            assert response.status == 401
        async with plain.post(
            sim.url + ANTHROPIC, json=_body(ANTHROPIC), headers={"x-api-key": "k"}
        ) as response:
            assert response.status == 400
            assert "anthropic-version" in (await response.json())["error"]["message"]
        async with plain.post(sim.url + OPENAI, json=_body(OPENAI)) as response:
            assert response.status == 200
        bearer = {"authorization": "Bearer k", "anthropic-version": "2026-10-21"}
        async with plain.post(sim.url + ANTHROPIC, json=_body(ANTHROPIC), headers=bearer) as response:
            assert response.status == 200
    assert sim.log[-1].auth == hashlib.sha256(b"k").hexdigest()[:12]


@pytest.mark.parametrize(
    ("version", "change", "words"),
    [
        ("2023-06-01", {"temperature": 1}, ""),
        ("2026-10-21", {"temperature": 1}, "temperature: Extra inputs are not permitted"),
        ("2026-10-21", {"top_k": 5}, "top_k: Extra inputs are not permitted"),
        ("2020-01-01", {}, "not a valid version"),
    ],
)
async def test_versions_of_anthropics_api(
    client: aiohttp.ClientSession, version: str, change: dict[str, Any], words: str
) -> None:
    headers = {"anthropic-version": version}
    async with (
        Simulator() as sim,
        client.post(sim.url + ANTHROPIC, json=_body(ANTHROPIC) | change, headers=headers) as response,
    ):
        value = await response.json()
    assert response.status == (400 if words else 200)
    assert words in value.get("error", {"message": ""})["message"]


@pytest.mark.parametrize(
    ("path", "change", "words"),
    [
        (OPENAI, {"messages": []}, "messages"),
        (OPENAI, {"model": ""}, "model"),
        (OPENAI, {"temperature": 0}, "temperature"),
        (ANTHROPIC, {"max_tokens": None}, "max_tokens"),
        (ANTHROPIC, {"messages": [{"role": "system", "content": "x"}]}, "role"),
        (ANTHROPIC, {"temperature": 0}, "temperature"),
    ],
)
async def test_what_is_wrong_with_a_request_is_said(
    client: aiohttp.ClientSession, path: str, change: dict[str, Any], words: str
) -> None:
    body = {key: value for key, value in (_body(path) | change).items() if value is not None}
    config = SimulatorConfig(unsupported_parameters=frozenset({"temperature"}))
    async with Simulator(config) as sim, client.post(sim.url + path, json=body) as response:
        value = await response.json()
    assert response.status == 400
    assert value["error"]["type"] == "invalid_request_error"
    assert words in value["error"]["message"]


@pytest.mark.parametrize("path", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize(
    "limit", [{"max_image_base64": 4000}, {"max_image_edge": 150}, {"max_image_pixels": 20_000}]
)
async def test_images_over_a_limit_are_refused(
    client: aiohttp.ClientSession, path: str, limit: dict[str, int]
) -> None:
    async with Simulator(SimulatorConfig(**limit)) as sim:  # type: ignore[arg-type]
        status, value, _ = await _post(client, sim, path)
    assert (status, value["error"]["type"]) == (400, "invalid_request_error")
    assert sim.log[0].error == "image_too_large"
    if path == ANTHROPIC and "max_image_edge" in limit:
        assert value["error"]["details"] == {
            "error_code": "image_dimensions_too_large",
            "max_side_length_pixels": 150,
            "paths": ["messages.0.content.1"],
        }
    assert not sim.log[0].charged


@pytest.mark.parametrize("path", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("image", [b"II*\0no", PNG[:70]], ids=["kind", "truncated"])
async def test_images_that_cannot_be_read_are_refused(
    client: aiohttp.ClientSession, path: str, image: bytes
) -> None:
    async with Simulator() as sim:
        status, _, _ = await _post(client, sim, path, image=image)
    assert status == 400
    assert sim.log[0].error == "image_parse"


async def test_a_wrong_media_type_is_refused_by_anthropic(client: aiohttp.ClientSession) -> None:
    body = _body(ANTHROPIC)
    body["messages"][0]["content"][1]["source"]["media_type"] = "image/jpeg"
    async with Simulator() as sim, client.post(sim.url + ANTHROPIC, json=body) as response:
        message = (await response.json())["error"]["message"]
    assert response.status == 400
    assert "appears to be a image/png image" in message


@pytest.mark.parametrize("path", [OPENAI, ANTHROPIC])
async def test_a_body_over_the_limit_is_refused(client: aiohttp.ClientSession, path: str) -> None:
    async with Simulator(SimulatorConfig(max_body_bytes=2000)) as sim:
        status, _, _ = await _post(client, sim, path)
    assert status == 413


@pytest.mark.parametrize("path", [OPENAI, ANTHROPIC])
async def test_the_same_request_gets_the_same_reply_from_any_simulator(
    client: aiohttp.ClientSession, path: str
) -> None:
    values = []
    for _ in range(2):
        async with Simulator(SimulatorConfig(seed=3)) as sim:
            values.append((await _post(client, sim, path))[1] | {"created": 0})
    assert values[0] == values[1]


@pytest.mark.parametrize("path", [OPENAI, ANTHROPIC])
async def test_the_log_says_what_was_sent_and_never_the_key(
    client: aiohttp.ClientSession, path: str, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    async with Simulator(SimulatorConfig(log=log)) as sim:
        await _post(client, sim, path)
        await _events(client, sim, path)
        await _post(client, sim, path, text="Other?")
        await sim.until_logged(3)
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [line["number"] for line in lines] == [1, 2, 3]
    assert [line["occurrence"] for line in lines] == [1, 2, 1]
    assert lines[0]["content"] == lines[1]["content"] != lines[2]["content"]
    record = lines[0]
    assert record["kind"] == ("openai" if path == OPENAI else "anthropic")
    assert (record["role"], record["status"], record["fault"], record["aborted"]) == ("model", 200, "", False)
    assert record["charged"] and record["input_tokens"] > 0 and record["output_tokens"] > 0
    assert record["pictures"] == [
        {
            "sha256": hashlib.sha256(PNG).hexdigest(),
            "media_type": "image/png",
            "width": 160,
            "height": 160,
            "bytes": len(PNG),
        }
    ]
    assert record["auth"] == hashlib.sha256(b"sk-canary").hexdigest()[:12]
    assert "canary" not in log.read_text("utf-8")
    assert record["ended_at"] >= record["arrived_at"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_away_is_logged(client: aiohttp.ClientSession, stream: bool) -> None:
    config = SimulatorConfig(latency=Latency("fixed", 0 if stream else 60), tokens_per_second=1)
    async with Simulator(config) as sim:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await _post(client, sim, OPENAI, stream=stream)
        async with asyncio.timeout(10):
            await sim.until_logged(1)
        assert sim.log[0].aborted
        assert sim.log[0].charged
        assert sim.log[0].status == (200 if stream else 0)


async def test_a_request_in_flight_at_shutdown_is_logged_as_such(client: aiohttp.ClientSession) -> None:
    async with Simulator(SimulatorConfig(latency=Latency("fixed", 60))) as sim:
        task = asyncio.create_task(_post(client, sim, OPENAI))
        async with asyncio.timeout(10):
            await sim.until_arrived(1)
    with pytest.raises(aiohttp.ClientError):
        await task
    assert [(record.shutdown, record.aborted) for record in sim.log] == [(True, False)]


async def test_judge_requests_are_known_and_judged(client: aiohttp.ClientSession) -> None:
    text = (
        "You are a conservative biomedical answer-equivalence judge for open-ended VQA.\n\nValid labels are "
        "the paired closed-VQA options for this same question:\n- a\n- b\n\nOutput rules:\nx\n\n"
        "Question/context:\nq\n\nTRUE ANSWER:\na\n\nMODEL ANSWER:\nA"
        "\n\nNow output exactly one line:\nRationale: "
    )
    config = SimulatorConfig(judge_latency=Latency("fixed", 0.2))
    async with Simulator(config) as sim:
        _, value, _ = await _post(client, sim, ANTHROPIC, image=None, text=text)
    assert value["content"][0]["text"].endswith("[RESULT] 1")
    assert sim.log[0].role == "judge"
    assert sim.log[0].ended_at - sim.log[0].arrived_at >= 0.2


async def test_places_are_filled_in_order_and_waiting_is_recorded(client: aiohttp.ClientSession) -> None:
    config = SimulatorConfig(latency=Latency("fixed", 0.1), max_concurrent=2, vision=False)
    async with Simulator(config) as sim:
        await asyncio.gather(*(_post(client, sim, OPENAI, text=f"question {index}") for index in range(6)))
    assert [record.number for record in sorted(sim.log, key=lambda record: record.ended_at)] == [
        1,
        2,
        3,
        4,
        5,
        6,
    ]
    waits = [record.queued_s for record in sorted(sim.log, key=lambda record: record.number)]
    assert waits[0] < 0.05 and waits[1] < 0.05
    assert waits[4] >= 0.18 and waits[5] >= 0.18


async def test_a_full_queue_is_overloaded(client: aiohttp.ClientSession) -> None:
    config = SimulatorConfig(latency=Latency("fixed", 0.3), max_concurrent=1, max_queue=1, vision=False)
    async with Simulator(config) as sim:
        replies = await asyncio.gather(
            *(_post(client, sim, ANTHROPIC, text=f"q {index}") for index in range(4))
        )
    assert sorted(status for status, _, _ in replies) == [200, 200, 529, 529]


@pytest.mark.parametrize("path", [OPENAI, ANTHROPIC])
async def test_a_rate_limit_tells_the_true_time(client: aiohttp.ClientSession, path: str) -> None:
    now = [1000.0]
    config = SimulatorConfig(rpm=60, limit_burst_s=2, vision=False)
    async with Simulator(config, clock=lambda: now[0]) as sim:
        statuses = [(await _post(client, sim, path))[0] for _ in range(3)]
        assert statuses == [200, 200, 429]
        status, value, headers = await _post(client, sim, path)
        assert headers["Retry-After"] == "1"
        assert value["error"]["type"] == ("requests" if path == OPENAI else "rate_limit_error")
        now[0] += 0.9
        assert (await _post(client, sim, path))[0] == 429
        now[0] += 0.1
        status, _, headers = await _post(client, sim, path)
        assert status == 200
        prefix = (
            "x-ratelimit-remaining-requests" if path == OPENAI else "anthropic-ratelimit-requests-remaining"
        )
        assert headers[prefix] == "0"
        # Another model of the same account has a limit of its own.
        assert (await _post(client, sim, path, model="m-2"))[0] == 200


async def test_a_token_limit_counts_input_and_output(client: aiohttp.ClientSession) -> None:
    now = [0.0]
    async with Simulator(SimulatorConfig(tpm=200, vision=False), clock=lambda: now[0]) as sim:
        _, first, _ = await _post(client, sim, OPENAI)
        used = first["usage"]["total_tokens"]
        _, _, headers = await _post(client, sim, OPENAI)
        assert int(headers["x-ratelimit-remaining-tokens"]) == 200 - 2 * used
        statuses = [(await _post(client, sim, OPENAI))[0] for _ in range(4)]
        assert statuses[-1] == 429
        assert (await _post(client, sim, OPENAI, text="x" * 1000))[1]["error"]["message"].startswith(
            "Request too large"
        )


async def test_tokens_come_at_the_set_speed(client: aiohttp.ClientSession) -> None:
    config = SimulatorConfig(latency=Latency("fixed", 0.1), tokens_per_second=100, vision=False)
    loop = asyncio.get_running_loop()
    async with Simulator(config) as sim:
        began = loop.time()
        async with client.post(sim.url + OPENAI, json=_body(OPENAI, stream=True)) as response:
            first = await response.content.readany()
            first_s = loop.time() - began
            rest = await response.content.read()
            total_s = loop.time() - began
    tokens = (first + rest).count(b'"content":"') - 1
    assert first_s >= 0.1
    assert total_s >= 0.1 + (tokens - 1) / 100
    assert total_s < 0.1 + (tokens - 1) / 100 + 2


async def test_other_paths_and_a_taken_port(client: aiohttp.ClientSession) -> None:
    async with Simulator() as sim:
        async with client.get(sim.url + OPENAI) as response:
            assert response.status == 404
        async with client.post(sim.url + "/v2/else") as response:
            assert (await response.json())["error"]["type"] == "not_found_error"
        port = int(sim.url.rpartition(":")[2])
        with pytest.raises(ConfigError, match=str(port)):
            async with Simulator(SimulatorConfig(port=port)):
                pass


async def test_a_log_that_cannot_be_opened_is_a_named_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="request log"):
        async with Simulator(SimulatorConfig(log=tmp_path / "no" / "log.jsonl")):
            pass
