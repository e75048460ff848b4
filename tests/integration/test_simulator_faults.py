"""Every fault by what arrives at the client."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from mmbu_async.simulator import Fault, FaultRule, Simulator, SimulatorConfig

OPENAI, ANTHROPIC = "/v1/chat/completions", "/v1/messages"
PATHS = pytest.mark.parametrize("path", [OPENAI, ANTHROPIC])
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "authorization": "Bearer k"}
UNDISTURBED = "No image can be seen, so this is a guess.\n<answer>unknown</answer>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a client saw."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.raw)


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        yield session


async def _ask(
    client: aiohttp.ClientSession, sim: Simulator, path: str, text: str = "What is this?", **more: Any
) -> Seen:
    body = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": text}]} | more
    async with client.post(sim.url + path, json=body) as response:
        raw = await response.read()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Seen(status=response.status, headers=headers, raw=raw)


def _config(fault: Fault, **more: Any) -> SimulatorConfig:
    return SimulatorConfig(faults=(FaultRule(fault=fault, rate=1.0),), **more)


def _text(path: str, value: Any) -> str | None:
    if path == OPENAI:
        content: str | None = value["choices"][0]["message"]["content"]
        return content
    texts = [block["text"] for block in value["content"] if block["type"] == "text"]
    return texts[0] if texts else None


_STATUS = {
    Fault.REQUEST_TIMEOUT: (408, "timeout", "timeout_error"),
    Fault.TOO_EARLY: (425, "server_error", "api_error"),
    Fault.RATE_LIMIT: (429, "requests", "rate_limit_error"),
    Fault.SERVER_ERROR: (500, "server_error", "api_error"),
    Fault.BAD_GATEWAY: (502, "server_error", "api_error"),
    Fault.UNAVAILABLE: (503, "service_unavailable", "api_error"),
    Fault.GATEWAY_TIMEOUT: (504, "server_error", "timeout_error"),
    Fault.OVERLOADED: (529, "server_error", "overloaded_error"),
    Fault.UNAUTHORIZED: (401, "invalid_request_error", "authentication_error"),
    Fault.FORBIDDEN: (403, "invalid_request_error", "permission_error"),
    Fault.MODEL_NOT_FOUND: (404, "invalid_request_error", "not_found_error"),
    Fault.PAYMENT_REQUIRED: (402, "insufficient_balance", "billing_error"),
    Fault.QUOTA: (429, "insufficient_quota", "rate_limit_error"),
    Fault.CREDIT_BALANCE: (400, "invalid_request_error", "invalid_request_error"),
    Fault.SPEND_LIMIT: (429, "insufficient_quota", None),
    Fault.BAD_REQUEST: (400, "invalid_request_error", "invalid_request_error"),
    Fault.IMAGE_TOO_LARGE: (400, "invalid_request_error", "invalid_request_error"),
    Fault.CONTENT_POLICY: (400, "invalid_request_error", "invalid_request_error"),
    Fault.UNSUPPORTED_PARAMETER: (400, "invalid_request_error", "invalid_request_error"),
    Fault.BODY_TOO_LARGE: (413, "invalid_request_error", "request_too_large"),
}


@PATHS
@pytest.mark.parametrize("fault", _STATUS)
async def test_error_statuses_in_each_vendors_shape(
    client: aiohttp.ClientSession, path: str, fault: Fault
) -> None:
    status, openai, anthropic = _STATUS[fault]
    if fault is Fault.SPEND_LIMIT and path == ANTHROPIC:
        status, anthropic = 400, "invalid_request_error"
    async with Simulator(_config(fault)) as sim:
        seen = await _ask(client, sim, path)
    assert seen.status == status
    if path == OPENAI:
        assert set(seen.value) == {"error"}
        assert set(seen.value["error"]) == {"message", "type", "param", "code"}
        assert seen.value["error"]["type"] == openai
    else:
        assert seen.value["type"] == "error"
        assert seen.value["request_id"] == seen.headers["request-id"]
        assert set(seen.value["error"]) - {"details"} == {"type", "message"}
        assert seen.value["error"]["type"] == anthropic
    assert seen.value["error"]["message"]
    record = sim.log[0]
    assert (record.status, record.fault, record.error, record.charged) == (status, fault, fault, False)
    says_when = fault in (Fault.RATE_LIMIT, Fault.UNAVAILABLE, Fault.OVERLOADED)
    assert seen.headers.get("retry-after") == ("1" if says_when else None)


async def test_a_used_up_quota_names_its_cause_and_no_time(client: aiohttp.ClientSession) -> None:
    async with Simulator(_config(Fault.QUOTA)) as sim:
        seen = await _ask(client, sim, ANTHROPIC)
    assert seen.value["error"]["details"] == {"error_code": "enforced_spend_limit_reached"}
    assert "retry-after" not in seen.headers


def test_every_fault_is_tested_here() -> None:
    tested = set(_STATUS) | _CONTENT | _TRANSPORT | _JUDGES | {Fault.STALL, Fault.DRIP}
    assert tested == set(Fault)


_JUDGES = {Fault.NO_VERDICT, Fault.OTHER_VERDICT}
_TRANSPORT = {Fault.RESET, Fault.RESET_MID_BODY, Fault.CUT_MID_BODY, Fault.TIMEOUT}


@PATHS
async def test_reset_before_the_reply(client: aiohttp.ClientSession, path: str) -> None:
    async with Simulator(_config(Fault.RESET)) as sim:
        with pytest.raises(aiohttp.ClientOSError, match="reset"):
            await _ask(client, sim, path)
        await sim.until_logged(1)
    assert (sim.log[0].status, sim.log[0].fault, sim.log[0].aborted) == (0, "reset", False)


@PATHS
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault.RESET_MID_BODY, ConnectionResetError), (Fault.CUT_MID_BODY, aiohttp.ClientPayloadError)],
)
async def test_the_connection_ends_in_mid_body(
    client: aiohttp.ClientSession, path: str, stream: bool, fault: Fault, error: type[Exception]
) -> None:
    body = {"model": "m", "max_tokens": 500, "stream": stream, "messages": [{"role": "user", "content": "x"}]}
    async with Simulator(_config(fault)) as sim, client.post(sim.url + path, json=body) as response:
        assert response.status == 200
        got = await response.content.readany()
        assert got
        with pytest.raises((error, aiohttp.ClientPayloadError)):
            while await response.content.readany():
                pass
        await sim.until_logged(1)
    assert sim.log[0].charged


@PATHS
async def test_accepted_and_never_answered(client: aiohttp.ClientSession, path: str) -> None:
    async with Simulator(_config(Fault.TIMEOUT)) as sim:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await _ask(client, sim, path)
        async with asyncio.timeout(10):
            await sim.until_logged(1)
    assert (sim.log[0].status, sim.log[0].fault, sim.log[0].aborted) == (0, "timeout", True)
    assert not sim.log[0].charged


@PATHS
async def test_a_drip_is_the_right_reply_byte_by_byte(client: aiohttp.ClientSession, path: str) -> None:
    body = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "x"}]}
    config = _config(Fault.DRIP, drip_interval_s=0.001)
    async with Simulator(config) as sim, client.post(sim.url + path, json=body) as response:
        pieces = []
        while piece := await response.content.readany():
            pieces.append(piece)
    assert _text(path, json.loads(b"".join(pieces))) == UNDISTURBED
    assert len(pieces) > 50


async def test_a_stall_delays_the_right_reply(client: aiohttp.ClientSession) -> None:
    async with Simulator(_config(Fault.STALL, stall_s=0.3)) as sim:
        seen = await _ask(client, sim, OPENAI)
    assert _text(OPENAI, seen.value) == UNDISTURBED
    assert sim.log[0].ended_at - sim.log[0].arrived_at >= 0.3


_CONTENT = {
    Fault.MALFORMED_JSON,
    Fault.HTML_ERROR,
    Fault.HTML_PAGE,
    Fault.ERROR_IN_200,
    Fault.EMPTY_CHOICES,
    Fault.TRUNCATED,
    Fault.UNTAGGED,
    Fault.EMPTY_TEXT,
    Fault.REFUSAL,
    Fault.CONTENT_FILTER,
    Fault.THINK,
    Fault.REASONING_FIELD,
    Fault.NULL_CONTENT,
    Fault.THINKING_SPENT,
    Fault.NO_USAGE,
}


async def _seen(client: aiohttp.ClientSession, path: str, fault: Fault, **more: Any) -> Seen:
    async with Simulator(_config(fault)) as sim:
        seen = await _ask(client, sim, path, **more)
        await sim.until_logged(1)
        assert sim.log[0].fault == fault
        assert sim.log[0].charged
        return seen


@PATHS
async def test_json_that_breaks_off(client: aiohttp.ClientSession, path: str) -> None:
    seen = await _seen(client, path, Fault.MALFORMED_JSON)
    assert (seen.status, seen.headers["content-type"]) == (200, "application/json")
    with pytest.raises(json.JSONDecodeError):
        json.loads(seen.raw)


@PATHS
@pytest.mark.parametrize(("fault", "status"), [(Fault.HTML_ERROR, 502), (Fault.HTML_PAGE, 200)])
async def test_web_pages(client: aiohttp.ClientSession, path: str, fault: Fault, status: int) -> None:
    seen = await _seen(client, path, fault)
    assert seen.status == status
    assert seen.headers["content-type"].startswith("text/html")
    assert seen.raw.startswith(b"<!DOCTYPE html>")


@PATHS
async def test_an_error_object_under_status_200(client: aiohttp.ClientSession, path: str) -> None:
    seen = await _seen(client, path, Fault.ERROR_IN_200)
    assert seen.status == 200
    assert "error" in seen.value
    assert "choices" not in seen.value and "content" not in seen.value


@PATHS
async def test_no_choice_and_no_block(client: aiohttp.ClientSession, path: str) -> None:
    value = (await _seen(client, path, Fault.EMPTY_CHOICES)).value
    assert value["choices" if path == OPENAI else "content"] == []


@PATHS
async def test_a_truncated_reply(client: aiohttp.ClientSession, path: str) -> None:
    value = (await _seen(client, path, Fault.TRUNCATED)).value
    text = _text(path, value)
    assert text and UNDISTURBED.startswith(text) and len(text) < len(UNDISTURBED)
    end = value["choices"][0]["finish_reason"] if path == OPENAI else value["stop_reason"]
    assert end == ("length" if path == OPENAI else "max_tokens")


@PATHS
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.UNTAGGED, "No image can be seen, so this is a guess.\nunknown"),
        (Fault.EMPTY_TEXT, ""),
        (Fault.NO_USAGE, UNDISTURBED),
        (Fault.REASONING_FIELD, UNDISTURBED),
        (Fault.NULL_CONTENT, None),
        (Fault.THINKING_SPENT, None),
    ],
)
async def test_bent_texts(
    client: aiohttp.ClientSession, path: str, fault: Fault, expected: str | None
) -> None:
    value = (await _seen(client, path, fault)).value
    assert _text(path, value) == expected
    assert ("usage" in value) is (fault is not Fault.NO_USAGE)


@PATHS
@pytest.mark.parametrize("fault", [Fault.REASONING_FIELD, Fault.NULL_CONTENT, Fault.THINKING_SPENT])
async def test_reasoning_comes_in_the_vendors_field(
    client: aiohttp.ClientSession, path: str, fault: Fault
) -> None:
    value = (await _seen(client, path, fault)).value
    if path == OPENAI:
        reasoning, end = (
            value["choices"][0]["message"]["reasoning_content"],
            value["choices"][0]["finish_reason"],
        )
        assert value["usage"]["completion_tokens_details"]["reasoning_tokens"] == -(-len(reasoning) // 4)
    else:
        assert value["content"][0]["type"] == "thinking"
        reasoning, end = value["content"][0]["thinking"], value["stop_reason"]
    assert "<answer>decoy</answer>" in reasoning
    spent = fault is Fault.THINKING_SPENT
    assert end == (
        ("length" if spent else "stop") if path == OPENAI else ("max_tokens" if spent else "end_turn")
    )


@PATHS
async def test_a_think_block_with_a_decoy(client: aiohttp.ClientSession, path: str) -> None:
    text = _text(path, (await _seen(client, path, Fault.THINK)).value)
    assert text is not None
    assert text.startswith("<think>") and "<answer>decoy</answer>" in text.partition("</think>")[0]
    assert text.endswith(UNDISTURBED)


@PATHS
async def test_refusals_in_each_vendors_form(client: aiohttp.ClientSession, path: str) -> None:
    refused = (await _seen(client, path, Fault.REFUSAL)).value
    filtered = (await _seen(client, path, Fault.CONTENT_FILTER)).value
    if path == OPENAI:
        message = refused["choices"][0]["message"]
        assert message["content"] is None and "sorry" in message["refusal"]
        assert refused["choices"][0]["finish_reason"] == "stop"
        assert filtered["choices"][0]["finish_reason"] == "content_filter"
    else:
        assert (refused["stop_reason"], refused["content"]) == ("refusal", [])
        assert refused["stop_details"]["type"] == "refusal"
        assert filtered["stop_reason"] == "refusal"
        assert len(filtered["content"]) == 1


@PATHS
async def test_a_judge_without_a_verdict(client: aiohttp.ClientSession, path: str) -> None:
    rule = FaultRule(fault=Fault.NO_VERDICT, role="judge", first=1)
    text = "You are a conservative biomedical answer-equivalence judge"
    async with Simulator(SimulatorConfig(faults=(rule,))) as sim:
        first, second = [_text(path, (await _ask(client, sim, path, text)).value) for _ in range(2)]
        other = _text(path, (await _ask(client, sim, path)).value)
    assert first == "Rationale: The prompt names no answer to grade."
    assert second == first + " [RESULT] 0"
    assert other == UNDISTURBED


@PATHS
async def test_a_judge_that_sees_it_the_other_way(client: aiohttp.ClientSession, path: str) -> None:
    rule = FaultRule(fault=Fault.OTHER_VERDICT, role="judge", first=1)
    text = "You are a conservative biomedical answer-equivalence judge"
    async with Simulator(SimulatorConfig(faults=(rule,))) as sim:
        first, second = [_text(path, (await _ask(client, sim, path, text)).value) for _ in range(2)]
    assert second == "Rationale: The prompt names no answer to grade. [RESULT] 0"
    assert first == second[:-1] + "1"


async def _stream(client: aiohttp.ClientSession, path: str, fault: Fault) -> list[str]:
    seen = await _seen(client, path, fault, stream=True)
    assert seen.status == 200
    return [line[6:] for line in seen.raw.decode().splitlines() if line.startswith("data: ")]


@PATHS
async def test_an_error_event_in_mid_stream(client: aiohttp.ClientSession, path: str) -> None:
    events = await _stream(client, path, Fault.ERROR_IN_200)
    assert "error" in json.loads(events[-1])
    assert len(events) > 2


@PATHS
async def test_a_malformed_event_in_mid_stream(client: aiohttp.ClientSession, path: str) -> None:
    events = [event for event in await _stream(client, path, Fault.MALFORMED_JSON) if event != "[DONE]"]
    broken = 0
    for event in events:
        try:
            json.loads(event)
        except json.JSONDecodeError:
            broken += 1
    assert broken == 1


@PATHS
@pytest.mark.parametrize(
    ("fault", "openai", "anthropic"),
    [
        (Fault.REFUSAL, "stop", "refusal"),
        (Fault.CONTENT_FILTER, "content_filter", "refusal"),
        (Fault.THINKING_SPENT, "length", "max_tokens"),
        (Fault.REASONING_FIELD, "stop", "end_turn"),
    ],
)
async def test_bent_replies_in_a_stream(
    client: aiohttp.ClientSession, path: str, fault: Fault, openai: str, anthropic: str
) -> None:
    events = [json.loads(event) for event in await _stream(client, path, fault) if event != "[DONE]"]
    if path == OPENAI:
        deltas = [event["choices"][0]["delta"] for event in events]
        assert events[-1]["choices"][0]["finish_reason"] == openai
        reasoned = any("reasoning_content" in delta for delta in deltas)
        assert any("refusal" in delta and delta["refusal"] for delta in deltas) is (fault is Fault.REFUSAL)
    else:
        assert (
            next(event for event in events if event["type"] == "message_delta")["delta"]["stop_reason"]
            == anthropic
        )
        reasoned = any(event.get("delta", {}).get("type") == "thinking_delta" for event in events)
    assert reasoned is (fault in (Fault.THINKING_SPENT, Fault.REASONING_FIELD))


# ---------------------------------------------------------------- when faults strike


async def _faults(client: aiohttp.ClientSession, config: SimulatorConfig, texts: list[str]) -> list[str]:
    async with Simulator(config) as sim:
        for text in texts:
            await _ask(client, sim, OPENAI, text)
        await sim.until_logged(len(texts))
        return [record.fault for record in sorted(sim.log, key=lambda record: record.number)]


async def test_faults_depend_on_content_and_occurrence_and_not_on_order(
    client: aiohttp.ClientSession,
) -> None:
    config = SimulatorConfig(faults=(FaultRule(fault=Fault.SERVER_ERROR, rate=0.4),), seed=11)
    texts = [f"question {index}" for index in range(40)]
    forward = await _faults(client, config, texts)
    backward = await _faults(client, config, texts[::-1])
    assert forward == backward[::-1]
    assert 6 <= forward.count("server_error") <= 26
    other_seed = SimulatorConfig(faults=config.faults, seed=12)
    assert await _faults(client, other_seed, texts) != forward


async def test_a_retry_is_a_new_draw(client: aiohttp.ClientSession) -> None:
    config = SimulatorConfig(faults=(FaultRule(fault=Fault.SERVER_ERROR, rate=0.5),))
    met = Counter(await _faults(client, config, ["the same"] * 60))
    assert 15 <= met["server_error"] <= 45


async def test_a_pinned_row_fails_always_and_no_other(client: aiohttp.ClientSession) -> None:
    config = SimulatorConfig(faults=(FaultRule(fault=Fault.BAD_REQUEST, text="row 7"),))
    assert await _faults(client, config, ["row 6", "row 7", "row 7", "row 8"]) == [
        "",
        "bad_request",
        "bad_request",
        "",
    ]


async def test_a_schedule_strikes_by_number(client: aiohttp.ClientSession) -> None:
    config = SimulatorConfig(faults=FaultRule.parse_schedule("overloaded=requests:2-3"))
    assert await _faults(client, config, ["a", "b", "c", "d"]) == ["", "overloaded", "overloaded", ""]


@pytest.mark.parametrize(
    ("style", "names"),
    [
        ("ms", {"retry-after-ms"}),
        ("both", {"retry-after", "retry-after-ms"}),
        ("date", {"retry-after"}),
        ("reset", {"x-ratelimit-reset-requests", "x-ratelimit-remaining-requests"}),
    ],
)
async def test_how_a_refusal_says_when(client: aiohttp.ClientSession, style: str, names: set[str]) -> None:
    config = _config(Fault.RATE_LIMIT, retry_after_s=2.5, retry_after_style=style)
    async with Simulator(config) as sim:
        seen = await _ask(client, sim, OPENAI)
    assert {name for name in seen.headers if name.startswith(("retry", "x-ratelimit"))} == names


async def test_a_refusal_may_not_say_when(client: aiohttp.ClientSession) -> None:
    async with Simulator(_config(Fault.RATE_LIMIT, retry_after_s=None)) as sim:
        assert "retry-after" not in (await _ask(client, sim, OPENAI)).headers
