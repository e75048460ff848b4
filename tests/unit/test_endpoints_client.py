"""One call from body to outcome: what is sent, stored, paid and given back, on every path."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmbu_async.endpoints.gate import Draining
from mmbu_async.endpoints.masking import MASK
from mmbu_async.endpoints.transport import TransportError
from mmbu_async.model import Attempt, Completion, Failure, FailureKind, Finish, Usage
from tests.fake_endpoint import (
    EXPECTED,
    KEY,
    Answer,
    FakePurse,
    FakeTransport,
    answer,
    error,
    reply,
    rig,
    scripted,
    settle_tasks,
)

LOST = TransportError(FailureKind.CONNECTION, "the connection was lost", sent=True)
UNSENT = TransportError(FailureKind.CONNECTION, "no connection", sent=False)
LATE = TransportError(FailureKind.TIMEOUT, "no byte for 3 s", sent=True)


# ---------------------------------------------------------------- the request


@pytest.mark.parametrize(
    ("endpoint", "base_url", "url"),
    [
        ("openai", "http://test.example/v1", "http://test.example/v1/chat/completions"),
        ("openai", "http://test.example/v1/", "http://test.example/v1/chat/completions"),
        (
            "openai",
            "https://x.example/deployments/d?api-version=2024-10-21",
            "https://x.example/deployments/d/chat/completions?api-version=2024-10-21",
        ),
        ("anthropic", "http://test.example", "http://test.example/v1/messages"),
        ("openai", None, "https://api.openai.com/v1/chat/completions"),
        ("anthropic", None, "https://api.anthropic.com/v1/messages"),
        ("responses", None, "https://api.openai.com/v1/responses"),
        (
            "responses",
            "https://mine.openai.azure.com/openai/v1",
            "https://mine.openai.azure.com/openai/v1/responses",
        ),
        (
            "gemini",
            None,
            "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
        ),
        ("azure", "https://a.azure.com", "https://a.azure.com/openai/v1/chat/completions"),
        ("azure", "https://a.azure.com/openai", "https://a.azure.com/openai/v1/chat/completions"),
        ("azure", "https://a.azure.com/openai/v1/", "https://a.azure.com/openai/v1/chat/completions"),
        (
            "azure",
            "https://a.azure.com/?api-version=2024-10-21",
            "https://a.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21",
        ),
        (
            "azure",
            "https://a.azure.com?api-version=preview",
            "https://a.azure.com/openai/v1/chat/completions?api-version=preview",
        ),
        # As the portal shows it.
        (
            "azure",
            "https://a.azure.com/openai/deployments/mine/chat/completions?api-version=2024-10-21",
            "https://a.azure.com/openai/deployments/mine/chat/completions?api-version=2024-10-21",
        ),
    ],
)
async def test_where_it_goes(endpoint: str, base_url: str | None, url: str) -> None:
    async with rig(
        FakeTransport(scripted(reply())), endpoint=endpoint, base_url=base_url, max_attempts=1
    ) as it:
        await it.call(b"the very bytes")
    ((sent_to, headers, body),) = it.transport.sent
    assert sent_to == url
    assert body == b"the very bytes"
    name = {"anthropic": "x-api-key", "gemini": "x-goog-api-key", "azure": "api-key"}.get(
        endpoint, "Authorization"
    )
    assert headers[name].endswith(KEY)
    assert KEY not in sent_to


# ---------------------------------------------------------------- a reply


async def test_a_reply() -> None:
    async with rig(FakeTransport(scripted(reply()))) as it:
        outcome = await it.call()
    assert outcome == Completion(
        text="<answer>4</answer>",
        finish=Finish.STOP,
        finish_raw="stop",
        usage=Usage(input_tokens=100, output_tokens=20),
        model="m-1",
        request_id="c-1",
    )
    ((attempt, final),) = it.book.kept
    assert (attempt.number, attempt.outcome, final) == (1, outcome, True)
    assert attempt.cost_usd == pytest.approx(3.0)
    assert it.purse.held == [pytest.approx(101.0)]
    assert it.purse.spent == [pytest.approx(3.0)]
    assert it.purse.balanced


async def test_a_reply_is_kept_before_its_slot_is_given_back() -> None:
    """So at most `concurrency` paid replies can be lost in a crash."""
    stored = asyncio.Event()
    in_flight: list[int] = []
    async with rig(FakeTransport(scripted(reply())), concurrency=1) as it:

        async def keep(attempt: Attempt, final: bool) -> None:
            in_flight.append(it.in_flight)
            await stored.wait()
            in_flight.append(it.in_flight)

        first = asyncio.create_task(it.client.call(b"1", EXPECTED, keep))
        second = asyncio.create_task(it.client.call(b"2", EXPECTED, keep))
        await settle_tasks()
        assert len(it.transport.sent) == 1
        assert not first.done()
        stored.set()
        await asyncio.gather(first, second)
    assert in_flight[:2] == [1, 1]


# ---------------------------------------------------------------- trouble


async def test_every_attempt_is_told_with_its_number_and_whether_it_is_the_last() -> None:
    script = scripted(error(500), LATE, answer(200, b"<html>"), error(429, retry_after="2"), reply())
    async with rig(FakeTransport(script)) as it:
        assert isinstance(await it.call(), Completion)
    assert it.book.numbers == [1, 2, 3, 4, 5]
    assert it.book.finals == [False, False, False, False, True]
    kinds = [outcome.kind for outcome in it.book.outcomes if isinstance(outcome, Failure)]
    assert kinds == [
        FailureKind.SERVER_ERROR,
        FailureKind.TIMEOUT,
        FailureKind.MALFORMED,
        FailureKind.RATE_LIMIT,
    ]
    assert len(it.waits) == 4
    assert it.purse.balanced


async def test_the_last_failure_stands_and_is_final() -> None:
    async with rig(FakeTransport(scripted(error(503, "down"))), max_attempts=3) as it:
        outcome = await it.call()
    assert isinstance(outcome, Failure)
    assert outcome.message == "down"
    assert it.book.finals == [False, False, True]
    assert len(it.transport.sent) == 3


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 302])
async def test_what_cannot_help_is_asked_once(status: int) -> None:
    async with rig(FakeTransport(scripted(error(status)))) as it:
        assert isinstance(await it.call(), Failure)
    assert it.book.finals == [True]
    assert len(it.transport.sent) == 1
    assert it.waits == []


async def test_a_slot_is_given_back_before_the_wait_for_a_retry() -> None:
    async with rig(FakeTransport(scripted(error(500), reply())), concurrency=1) as it:
        seen: list[int] = []

        async def sleep(seconds: float) -> None:
            seen.append(it.in_flight)

        it.client.gate.sleep = sleep  # type: ignore[method-assign]
        await it.call()
    assert seen == [0]


async def test_a_429_that_says_when_pauses_the_gate_and_only_that() -> None:
    script = scripted(error(429, retry_after="7"), error(503, retry_after="5"), error(429), reply())
    async with rig(FakeTransport(script)) as it:
        await it.call()
    assert it.pauses == [7.0]
    assert 7.0 <= it.waits[0] <= 7.7
    assert 5.0 <= it.waits[1] <= 5.5


@pytest.mark.parametrize(
    ("trouble", "cap"),
    [(error(429), 12), (error(529), 12), (error(500), 16), (LATE, 16), (LOST, 16), (error(400), 16)],
)
async def test_what_the_concurrency_is_told(trouble: Answer, cap: int) -> None:
    async with rig(FakeTransport(scripted(trouble)), max_attempts=1) as it:
        await it.call()
        assert it.client.gate.concurrency.state.cap == cap


# ---------------------------------------------------------------- money and tokens


@pytest.mark.parametrize(
    ("given", "cost"),
    [
        (reply(), 3.0),
        (reply(usage=None), None),
        (error(500), 0.0),
        (error(400), 0.0),
        (UNSENT, 0.0),
        # The endpoint may have made, and charged, a reply that never came.
        (LOST, None),
        (LATE, None),
        (answer(200, b"<html>"), None),
        (answer(200, {"choices": []}), None),
    ],
)
async def test_what_an_attempt_costs(given: Answer, cost: float | None) -> None:
    async with rig(FakeTransport(scripted(given)), max_attempts=1) as it:
        await it.call()
    ((attempt, _),) = it.book.kept
    assert attempt.cost_usd == (None if cost is None else pytest.approx(cost))
    assert it.purse.spent == [attempt.cost_usd]
    assert it.purse.balanced


async def test_an_unknown_price_is_never_zero() -> None:
    async with rig(FakeTransport(scripted(reply())), price=None) as it:
        await it.call()
    assert it.book.kept[0][0].cost_usd is None
    assert it.purse.held == [None]
    assert it.purse.spent == [None]


@pytest.mark.parametrize(
    ("given", "tokens"),
    [
        (reply(), 120),
        (reply(usage={"prompt_tokens": 500, "completion_tokens": 700}), 1200),
        (reply(usage=None), 120),
        (error(429), 0),
        (error(500), 0),
        (LOST, 120),
        (answer(200, b"<html>"), 120),
    ],
)
async def test_what_the_token_budget_is_charged(given: Answer, tokens: int) -> None:
    async with rig(FakeTransport(scripted(given)), tpm=60_000, max_attempts=1) as it:
        await it.call()
        assert it.client.gate._tokens.level == 3000 - tokens


async def test_a_purse_that_refuses_ends_the_call_and_gives_everything_back() -> None:
    async with rig(FakeTransport(scripted(reply())), purse=FakePurse(refuse_after=0), tpm=6000) as it:
        with pytest.raises(Draining):
            await it.call()
        assert it.in_flight == 0
        assert it.client.gate._tokens.level == 300
    assert it.transport.sent == []
    assert it.book.kept == []
    assert it.purse.balanced


# ---------------------------------------------------------------- draining and cancelling


async def test_draining_lets_the_call_under_way_finish_and_starts_no_other() -> None:
    transport = FakeTransport(scripted(reply()), held=True)
    async with rig(transport, concurrency=1) as it:
        running = asyncio.create_task(it.call(b"1"))
        waiting = asyncio.create_task(it.call(b"2"))
        await settle_tasks()
        it.client.gate.close()
        with pytest.raises(Draining):
            await waiting
        transport.open.set()
        assert isinstance(await running, Completion)
        with pytest.raises(Draining):
            await it.call(b"3")
    assert [body for _, _, body in transport.sent] == [b"1"]
    assert it.book.finals == [True]
    assert it.purse.balanced


async def test_draining_in_the_wait_for_a_retry_leaves_the_row_open() -> None:
    async with rig(FakeTransport(scripted(error(500)))) as it:

        async def keep(attempt: Attempt, final: bool) -> None:
            await it.book.keep(attempt, final)
            it.client.gate.close()

        with pytest.raises(Draining):
            await it.client.call(b"", EXPECTED, keep)
    assert it.book.finals == [False]
    assert it.purse.balanced


async def test_a_cancelled_call_counts_its_worst_case_and_frees_its_slot() -> None:
    transport = FakeTransport(scripted(reply()), held=True)
    async with rig(transport) as it:
        task = asyncio.create_task(it.call())
        await settle_tasks()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert it.in_flight == 0
    assert it.purse.spent == [pytest.approx(101.0)]
    assert it.purse.balanced


@pytest.mark.parametrize("given", [reply(), error(500)], ids=["reply", "failure"])
async def test_a_store_that_fails_ends_the_call_with_its_own_error(given: Answer) -> None:
    async def keep(attempt: Attempt, final: bool) -> None:
        raise OSError("disk full")

    async with rig(FakeTransport(scripted(given))) as it:
        with pytest.raises(OSError, match="disk full"):
            await it.client.call(b"", EXPECTED, keep)
        assert it.in_flight == 0
    assert it.purse.balanced
    assert len(it.transport.sent) == 1


async def test_an_unforeseen_error_of_the_transport_comes_through_with_the_books_in_order() -> None:
    async with rig(FakeTransport(scripted(ValueError("bug")))) as it:
        with pytest.raises(ValueError, match="bug"):
            await it.call()
        assert it.in_flight == 0
    assert it.purse.balanced


ANSWERS: list[Any] = [
    reply(),
    reply(usage=None),
    error(429, retry_after="1"),
    error(429),
    error(500),
    error(400),
    error(401),
    answer(200, b"junk"),
    LOST,
    UNSENT,
    LATE,
]


@given(
    answers=st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=12),
    cancels=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 40)), max_size=4),
    close_at=st.none() | st.integers(0, 60),
    concurrency=st.integers(1, 4),
)
async def test_the_books_balance_whatever_happens(
    answers: list[Answer], cancels: list[tuple[int, int]], close_at: int | None, concurrency: int
) -> None:
    transport = FakeTransport(lambda number: answers[number % len(answers)])
    async with rig(transport, concurrency=concurrency, max_attempts=3, max_retry_time=600) as it:
        tasks = [asyncio.create_task(it.call(b"%d" % row)) for row in range(8)]
        for step in range(60):
            if step == close_at:
                it.client.gate.close()
            for which, when in cancels:
                if when == step:
                    tasks[which].cancel()
            await asyncio.sleep(0)
        it.client.gate.close()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert it.in_flight == 0
    assert it.purse.balanced
    assert transport.most_under_way <= concurrency
    for result in results:
        assert isinstance(result, Completion | Failure | Draining | asyncio.CancelledError)
    replies = sum(isinstance(outcome, Completion) for outcome in it.book.outcomes)
    assert replies >= sum(isinstance(result, Completion) for result in results)


# ---------------------------------------------------------------- secrets


@pytest.mark.parametrize(
    "message",
    [
        f"Incorrect API key provided: {KEY}.",
        f"header 'Authorization: Bearer {KEY}' and again {KEY}",
        "x" * 490 + KEY,
        "x" * 480 + KEY,
    ],
)
async def test_the_key_is_masked_even_where_the_words_are_cut(message: str) -> None:
    for got in (error(401, message), answer(200, {"error": message}), answer(500, message.encode())):
        async with rig(FakeTransport(scripted(got)), max_attempts=1) as it:
            outcome = await it.call()
        assert isinstance(outcome, Failure)
        assert MASK in outcome.message
        assert KEY[:6] not in outcome.message
        assert it.book.outcomes == [outcome]


async def test_the_key_is_masked_in_headers_that_are_kept() -> None:
    for got in (error(302, location=f"https://x.example/?key={KEY}"), error(500, x_request_id=f"id-{KEY}")):
        async with rig(FakeTransport(scripted(got)), max_attempts=1) as it:
            outcome = await it.call()
        assert isinstance(outcome, Failure)
        assert KEY not in outcome.message + outcome.request_id


@pytest.mark.parametrize("key", ["", "t", "is"])
async def test_no_key_and_what_stands_in_for_one_mask_nothing(key: str) -> None:
    async with rig(FakeTransport(scripted(error(400, "as it is"))), key=key) as it:
        outcome = await it.call()
    assert isinstance(outcome, Failure)
    assert outcome.message == "as it is"
