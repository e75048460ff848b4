"""Simulator and client against each vendor's own client, so that the two agree with the vendor and not only
with each other: it can parse all that the simulator sends, our client asks what it asks, and both read the
same from the same bytes.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.client import WIRE_FORMATS
from mmbu_async.endpoints.wire import request_url
from mmbu_async.model import Completion, Failure, FailureKind, Finish, ImageSlot, PreparedImage, Prompt
from mmbu_async.simulator import Fault, FaultRule, SimulatorConfig
from tests.sdk_clients import CLIENTS, KEY, MOST, FailedResponseError, Heard, Question
from tests.sdk_kit import Passed, tapped
from tests.simulated import BASES

pytestmark = pytest.mark.filterwarnings("ignore")
"""What the vendors' packages warn of is theirs."""
ENDPOINTS = pytest.mark.parametrize("endpoint", list(CLIENTS))
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
IMAGE = Path(__file__).parents[1] / "data" / "mini_mmbu" / "images" / "cell.png"
REPLIES = (
    None,
    Fault.TRUNCATED,
    Fault.REFUSAL,
    Fault.CONTENT_FILTER,
    Fault.REASONING_FIELD,
    Fault.THINKING_SPENT,
    Fault.EMPTY_TEXT,
    Fault.NO_USAGE,
)
ERRORS = (
    Fault.RATE_LIMIT,
    Fault.QUOTA,
    Fault.CREDIT_BALANCE,
    Fault.UNAUTHORIZED,
    Fault.FORBIDDEN,
    Fault.MODEL_NOT_FOUND,
    Fault.BAD_REQUEST,
    Fault.IMAGE_TOO_LARGE,
    Fault.CONTENT_POLICY,
    Fault.SERVER_ERROR,
    Fault.UNAVAILABLE,
)
CLASSES = {
    FailureKind.RATE_LIMIT: "RateLimitError",
    FailureKind.MODEL_NOT_FOUND: "NotFoundError",
    FailureKind.BAD_REQUEST: "BadRequestError",
    FailureKind.SERVER_ERROR: "InternalServerError ServiceUnavailableError",
    FailureKind.AUTH: "AuthenticationError PermissionDeniedError",
    FailureKind.QUOTA: "RateLimitError BadRequestError",
}
"""Our kind -> what OpenAI's and Anthropic's clients raise."""


def simulator(*faults: Fault | None) -> SimulatorConfig:
    """Each fault where its name stands in the question."""
    rules = tuple(FaultRule(fault=fault, text=f"meet {fault.value}.") for fault in faults if fault)
    return SimulatorConfig(vision=False, faults=rules)


def question(fault: Fault | None, stream: bool, **more: Any) -> Question:
    return Question(text=f"Please meet {fault.value}." if fault else "What is it?", stream=stream, **more)


def refusal_of(passed: Passed) -> str:
    """The words of a refusal in OpenAI's own field, as they lie in the bytes."""
    pieces = []
    for line in passed.body.decode().splitlines():
        text = line.removeprefix("data: ")
        if text.startswith("{"):
            value = json.loads(text)
            said = [
                choice.get("message") or choice.get("delta") or {} for choice in value.get("choices") or ()
            ]
            pieces += [one.get("refusal") or "" for one in said]
            if value.get("type") in (None, "response.completed"):
                for item in (value.get("response") or value).get("output") or ():
                    pieces += [part.get("refusal", "") for part in item.get("content") or ()]
    return "".join(pieces)


@ENDPOINTS
@STREAMS
async def test_what_is_read_is_what_the_vendors_client_reads(endpoint: str, stream: bool) -> None:
    """Plain replies, cut ones, refusals, reasoning, no usage: text, end, tokens, model, identifier."""
    async with tapped(simulator(*REPLIES)) as tap:
        for fault in REPLIES:
            if fault is Fault.NO_USAGE and endpoint == "anthropic" and stream:
                # Their client takes usage for granted, and the API always sends it.
                continue
            heard = await CLIENTS[endpoint](tap.url, question(fault, stream))
            passed = tap.passed[-1]
            reply = passed.ours(endpoint)
            assert isinstance(reply, Completion), (fault, reply)
            assert Heard.ours(reply, refusal_of(passed), heard.id) == heard, fault
            assert (heard.tokens is None) == (fault is Fault.NO_USAGE)
            assert heard.id
            if endpoint == "gemini":
                assert reply.request_id == heard.id
            if fault in (Fault.REFUSAL, Fault.CONTENT_FILTER):
                assert reply.finish is Finish.REFUSAL
            if fault is Fault.REASONING_FIELD:
                assert "decoy" in heard.reasoning


@ENDPOINTS
@STREAMS
async def test_what_is_asked_is_what_the_vendors_client_asks(endpoint: str, stream: bool) -> None:
    """Address, key and body, with a system message and an image."""
    image = IMAGE.read_bytes()
    async with tapped(simulator()) as tap:
        await CLIENTS[endpoint](tap.url, question(None, stream, system="Be brief.", image=image))
        passed = tap.passed[-1]
        base = tap.url + BASES[endpoint] + ("?api-version=2024-10-21" if endpoint == "azure" else "")
        settings = CallSettings.model_validate(
            {"model": "m", "endpoint": endpoint, "base_url": base, "max_tokens": MOST, "stream": stream}
        )
    wire = WIRE_FORMATS[endpoint]()
    prompt = Prompt(parts=(ImageSlot(index=0), "What is it?"), system="Be brief.")
    prepared = PreparedImage(data=image, media_type="image/png", width=1, height=1)
    assert request_url(settings, wire) == tap.url + passed.path
    assert KEY not in passed.path
    if endpoint == "anthropic":
        # Since 2.0 their client sends the key as a bearer token, with a version of the API that has dropped
        # sampling parameters; ours keeps to the header and the version that every gateway knows.
        assert passed.sent["Authorization"] == f"Bearer {KEY}"
        assert wire.headers(KEY) == {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    else:
        for name, value in wire.headers(KEY).items():
            assert passed.sent[name] == value
    ours = json.loads(wire.body(settings, prompt, (prepared,)))
    assert ours == in_our_spelling(endpoint, passed.asked)


def in_our_spelling(endpoint: str, asked: Any) -> Any:
    """Google's client writes one name and base64 in their other spelling, and names a role of the system
    instruction, which has none."""
    if endpoint == "gemini":
        asked["systemInstruction"].pop("role", None)
        data = asked["contents"][0]["parts"][0]["inlineData"]
        data["mimeType"] = data.pop("mime_type")
        data["data"] = base64.b64encode(base64.urlsafe_b64decode(data["data"])).decode()
    return asked


@ENDPOINTS
@STREAMS
async def test_errors_are_the_vendors_errors(endpoint: str, stream: bool) -> None:
    """Its client raises the class of error that belongs to our kind, with the same status and words."""
    async with tapped(simulator(*ERRORS)) as tap:
        for fault in ERRORS:
            if (endpoint, fault) == ("gemini", Fault.CONTENT_POLICY):
                heard = await CLIENTS[endpoint](tap.url, question(fault, stream))
                reply = tap.passed[-1].ours(endpoint)
                assert isinstance(reply, Completion)
                assert (heard.finish, heard.text) == (reply.finish_raw, reply.text)
                assert reply.finish is Finish.REFUSAL
                continue
            with pytest.raises(Exception, match=r".") as raised:
                await CLIENTS[endpoint](tap.url, question(fault, stream))
            failure = tap.passed[-1].ours(endpoint)
            assert isinstance(failure, Failure), fault
            check_error(endpoint, raised.value, failure)
            if (endpoint, fault) == ("azure", Fault.CONTENT_POLICY):
                body: Any = getattr(raised.value, "body", None)
                assert (body["code"], body["innererror"]["code"]) == (
                    "content_filter",
                    "ResponsibleAIPolicyViolation",
                )


def check_error(endpoint: str, error: Any, failure: Failure) -> None:
    if endpoint == "gemini":
        assert (error.code, " ".join(error.message.split())) == (failure.status, failure.message)
        assert type(error).__name__ == (
            "ServerError" if failure.kind is FailureKind.SERVER_ERROR else "ClientError"
        )
        delays = [
            one["retryDelay"] for one in error.details["error"].get("details", ()) if "retryDelay" in one
        ]
        asked = float(delays[0].removesuffix("s")) if delays else None
        assert failure.retry_after_s == asked
        return
    assert {one.__name__ for one in type(error).__mro__} & set(CLASSES[failure.kind].split())
    assert (error.status_code, error.request_id) == (failure.status, failure.request_id)
    assert failure.message in str(error)


@ENDPOINTS
async def test_an_error_in_the_middle_of_a_stream(endpoint: str) -> None:
    async with tapped(simulator(Fault.ERROR_IN_200)) as tap:
        with pytest.raises(Exception, match=r".") as raised:
            await CLIENTS[endpoint](tap.url, question(Fault.ERROR_IN_200, True))
        failure = tap.passed[-1].ours(endpoint)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.SERVER_ERROR
    assert failure.message in str(raised.value)
    expected = FailedResponseError if endpoint == "responses" else Exception
    assert isinstance(raised.value, expected)


@ENDPOINTS
async def test_tokens_of_the_prompt_cache(endpoint: str) -> None:
    """Read twice: the second finds the beginning of the prompt in the cache."""
    system = "Name the finding. " * 400
    async with tapped(simulator()) as tap:
        first = await CLIENTS[endpoint](tap.url, question(None, False, system=system))
        second = await CLIENTS[endpoint](tap.url, question(None, False, system=system))
        mine = [one.ours(endpoint) for one in tap.passed]
    for heard, reply in zip((first, second), mine, strict=True):
        assert isinstance(reply, Completion)
        assert Heard.ours(reply, "", heard.id) == heard
    assert second.tokens is not None
    # Anthropic keeps what is marked, and nothing was.
    assert second.tokens[3] == (0 if endpoint == "anthropic" else 1800)
