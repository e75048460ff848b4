"""The failure table, one endpoint's side of it, against the simulator. Calls are counted in its log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.client import EndpointClient
from mmbu_async.endpoints.exchange import HttpExchange
from mmbu_async.endpoints.prices import Price, Rate
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.model import (
    FATAL_KINDS,
    Attempt,
    Completion,
    Failure,
    FailureKind,
    Finish,
    Prompt,
)
from mmbu_async.simulator import Fault, FaultRule, Latency, Record, Simulator, SimulatorConfig
from tests.fake_endpoint import Book, FakePurse
from tests.simulated import BASES

ENDPOINTS = pytest.mark.parametrize("endpoint", list(BASES))
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
KEY = "sk-canary-0123456789"
PRICE = Price(source="settings", input=Rate(base=1e-3), output=Rate(base=1e-2))
UNDISTURBED = "No image can be seen, so this is a guess.\n<answer>unknown</answer>"


@dataclass
class Caller:
    """A client of the simulator. Waits for retries are noted, not slept, so that no test waits for luck."""

    client: EndpointClient
    simulator: Simulator
    purse: FakePurse
    book: Book = field(default_factory=Book)
    waits: list[float] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    async def ask(self, question: str = "What is this?", system: str | None = None) -> Completion | Failure:
        prompt = Prompt(parts=(question,), system=system)
        body = self.client.wire.body(self.client.settings, prompt, ())
        expected = Estimator.of(self.client.settings).expect(10)
        return await self.client.call(body, expected, self.book.keep)

    @property
    def log(self) -> Sequence[Record]:
        return sorted(self.simulator.log, key=lambda record: record.number)


@asynccontextmanager
async def caller(
    endpoint: str,
    stream: bool = False,
    fault: Fault | None = None,
    *,
    first: int | None = None,
    simulator: dict[str, Any] | None = None,
    start_concurrency: int = 16,
    price: Price = PRICE,
    **changes: Any,
) -> AsyncIterator[Caller]:
    """With a fault, the simulator has it always, or the `first` so many times. Ends with the log complete."""
    options: dict[str, Any] = {"keys": frozenset({KEY})} | (simulator or {})
    if fault is not None:
        rate = 1.0 if first is None else None
        options["faults"] = (FaultRule(fault=fault, first=first, rate=rate),)
    config = SimulatorConfig(**options)
    async with Simulator(config) as served:
        settings = CallSettings.model_validate(
            {
                "model": "m",
                "endpoint": endpoint,
                "stream": stream,
                "base_url": served.url + BASES[endpoint],
                "max_attempts": 3,
            }
            | changes
        )
        purse = FakePurse()
        async with EndpointClient(
            settings,
            key=KEY,
            purse=purse,
            price=price,
            random=Random(1),
            start_concurrency=start_concurrency,
        ) as client:
            made = Caller(client=client, simulator=served, purse=purse)

            async def sleep(seconds: float) -> None:
                made.waits.append(seconds)

            client.gate.sleep = sleep  # type: ignore[method-assign]
            client.gate.pause = made.pauses.append  # type: ignore[method-assign, assignment]
            yield made
            assert client.gate.concurrency.state.in_flight == 0
    assert purse.balanced


# ---------------------------------------------------------------- worth another attempt

SLOW = {"idle_timeout": 0.3, "timeout": 1.0}
"""For the faults that keep silent or drip: their limits are what ends them."""
TRANSIENT: dict[Fault, tuple[FailureKind, int | None]] = {
    Fault.REQUEST_TIMEOUT: (FailureKind.TIMEOUT, 408),
    Fault.TOO_EARLY: (FailureKind.SERVER_ERROR, 425),
    Fault.RATE_LIMIT: (FailureKind.RATE_LIMIT, 429),
    Fault.SERVER_ERROR: (FailureKind.SERVER_ERROR, 500),
    Fault.BAD_GATEWAY: (FailureKind.SERVER_ERROR, 502),
    Fault.UNAVAILABLE: (FailureKind.SERVER_ERROR, 503),
    Fault.GATEWAY_TIMEOUT: (FailureKind.SERVER_ERROR, 504),
    Fault.OVERLOADED: (FailureKind.SERVER_ERROR, 529),
    Fault.RESET: (FailureKind.CONNECTION, None),
    Fault.RESET_MID_BODY: (FailureKind.CONNECTION, None),
    Fault.CUT_MID_BODY: (FailureKind.CONNECTION, None),
    Fault.TIMEOUT: (FailureKind.TIMEOUT, None),
    Fault.DRIP: (FailureKind.TIMEOUT, None),
    Fault.MALFORMED_JSON: (FailureKind.MALFORMED, 200),
    Fault.HTML_ERROR: (FailureKind.SERVER_ERROR, 502),
    Fault.HTML_PAGE: (FailureKind.MALFORMED, 200),
    Fault.ERROR_IN_200: (FailureKind.SERVER_ERROR, 200),
    Fault.EMPTY_CHOICES: (FailureKind.MALFORMED, 200),
}


def slow(fault: Fault) -> dict[str, Any]:
    return SLOW if fault in (Fault.TIMEOUT, Fault.DRIP) else {}


def real(endpoint: str, fault: Fault) -> bool:
    """Anthropic has no choices to be empty: a reply without blocks, but with a reason, is an empty reply.
    Faults that take time and know no format are met in two of them."""
    if (endpoint, fault) == ("anthropic", Fault.EMPTY_CHOICES):
        return False
    return fault not in (Fault.TIMEOUT, Fault.DRIP) or endpoint in ("openai", "anthropic")


@ENDPOINTS
@STREAMS
@pytest.mark.parametrize("fault", TRANSIENT)
async def test_trouble_that_passes_costs_one_more_call(endpoint: str, stream: bool, fault: Fault) -> None:
    if not real(endpoint, fault):
        return
    kind, status = TRANSIENT[fault]
    simulator = {"drip_interval_s": 0.1}
    async with caller(endpoint, stream, fault, first=1, simulator=simulator, **slow(fault)) as it:
        outcome = await it.ask()
    assert isinstance(outcome, Completion)
    assert outcome.text == UNDISTURBED
    assert [record.fault for record in it.log] == [fault.value, ""]
    assert it.book.finals == [False, True]
    failure = it.book.outcomes[0]
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.status) == (kind, status)
    assert failure.message
    assert len(it.waits) == 1


@ENDPOINTS
@STREAMS
@pytest.mark.parametrize("fault", sorted(TRANSIENT.keys() - {Fault.RATE_LIMIT}))
async def test_trouble_that_stays_costs_as_many_calls_as_are_allowed(
    endpoint: str, stream: bool, fault: Fault
) -> None:
    if not real(endpoint, fault):
        return
    simulator = {"drip_interval_s": 0.1}
    async with caller(endpoint, stream, fault, simulator=simulator, max_attempts=2, **slow(fault)) as it:
        outcome = await it.ask()
    assert isinstance(outcome, Failure)
    assert outcome.kind is TRANSIENT[fault][0]
    assert len(it.log) == 2
    assert it.book.finals == [False, True]
    assert len(it.waits) == 1


@ENDPOINTS
@pytest.mark.parametrize(
    ("style", "least", "most"),
    # The date is in whole seconds, of the server's clock and of the header.
    [("seconds", 3.0, 3.3), ("ms", 2.5, 2.75), ("both", 2.5, 2.75), ("date", 2.0, 4.4), ("reset", 2.0, 4.4)],
)
async def test_retry_after_is_kept_to_in_every_style_and_uses_up_no_attempt(
    endpoint: str, style: str, least: float, most: float
) -> None:
    simulator = {"retry_after_s": 2.5, "retry_after_style": style}
    async with caller(endpoint, False, Fault.RATE_LIMIT, first=5, simulator=simulator, max_attempts=1) as it:
        outcome = await it.ask()
    assert isinstance(outcome, Completion)
    assert [record.status for record in it.log] == [429] * 5 + [200]
    assert len(it.waits) == len(it.pauses) == 5
    for wait, pause in zip(it.waits, it.pauses, strict=True):
        assert least <= wait <= most
        assert pause <= wait


@ENDPOINTS
async def test_a_429_that_does_not_say_when_backs_off(endpoint: str) -> None:
    async with caller(endpoint, False, Fault.RATE_LIMIT, simulator={"retry_after_s": None}) as it:
        outcome = await it.ask()
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.RATE_LIMIT
    assert len(it.log) == 3
    assert it.pauses == []


@ENDPOINTS
async def test_the_time_limit_ends_a_row_that_is_only_told_to_wait(endpoint: str) -> None:
    simulator = {"retry_after_s": 3600.0}
    async with caller(endpoint, False, Fault.RATE_LIMIT, simulator=simulator, max_retry_time=60) as it:
        outcome = await it.ask()
    assert isinstance(outcome, Failure)
    assert len(it.log) == 1
    assert it.waits == []


# ---------------------------------------------------------------- no other row will escape

FATAL = {
    Fault.UNAUTHORIZED: FailureKind.AUTH,
    Fault.FORBIDDEN: FailureKind.AUTH,
    Fault.MODEL_NOT_FOUND: FailureKind.MODEL_NOT_FOUND,
    Fault.PAYMENT_REQUIRED: FailureKind.QUOTA,
    Fault.QUOTA: FailureKind.QUOTA,
    Fault.CREDIT_BALANCE: FailureKind.QUOTA,
    Fault.SPEND_LIMIT: FailureKind.QUOTA,
}


@ENDPOINTS
@STREAMS
@pytest.mark.parametrize("fault", FATAL)
async def test_what_no_row_escapes_is_asked_once(endpoint: str, stream: bool, fault: Fault) -> None:
    # Who takes it for a limit that passes waits no longer than this, and fails.
    async with caller(endpoint, stream, fault, max_retry_time=1) as it:
        outcome = await it.ask()
    assert isinstance(outcome, Failure)
    assert outcome.kind is FATAL[fault]
    assert outcome.kind in FATAL_KINDS
    assert len(it.log) == 1
    assert it.book.finals == [True]
    assert KEY not in outcome.message


@ENDPOINTS
async def test_a_wrong_key_and_an_unknown_model(endpoint: str) -> None:
    async with caller(endpoint, simulator={"models": frozenset({"other"})}) as it:
        unknown = await it.ask()
        exchange = it.client._exchange
        assert isinstance(exchange, HttpExchange)
        exchange._headers = it.client.wire.headers("wrong")
        refused = await it.ask()
    assert isinstance(unknown, Failure)
    assert isinstance(refused, Failure)
    assert (unknown.kind, refused.kind) == (FailureKind.MODEL_NOT_FOUND, FailureKind.AUTH)
    assert len(it.log) == 2


# ---------------------------------------------------------------- this row only


@ENDPOINTS
@STREAMS
@pytest.mark.parametrize(
    "fault",
    [
        Fault.BAD_REQUEST,
        Fault.IMAGE_TOO_LARGE,
        Fault.CONTENT_POLICY,
        Fault.UNSUPPORTED_PARAMETER,
        Fault.BODY_TOO_LARGE,
    ],
)
async def test_a_row_that_is_refused_is_asked_once_and_keeps_the_endpoints_words(
    endpoint: str, stream: bool, fault: Fault
) -> None:
    async with caller(endpoint, stream, fault) as it:
        outcome = await it.ask()
    if (endpoint, fault) == ("gemini", Fault.CONTENT_POLICY):
        # Google says it in the place of a reply, and charges the prompt.
        assert isinstance(outcome, Completion)
        assert (outcome.finish, outcome.finish_raw) == (Finish.REFUSAL, "PROHIBITED_CONTENT")
        assert (outcome.text, outcome.usage.input_tokens, len(it.log)) == ("", 1, 1)
        return
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.BAD_REQUEST
    assert outcome.status in (400, 413)
    assert len(outcome.message.split()) > 1
    # Google's errors have none.
    assert outcome.request_id == ("" if endpoint == "gemini" else it.log[0].request_id)
    assert len(it.log) == 1
    assert it.purse.spent == [0.0]


# ---------------------------------------------------------------- replies all the same

REPLIES: dict[Fault, tuple[Finish, str | None]] = {
    Fault.TRUNCATED: (Finish.LENGTH, UNDISTURBED[: len(UNDISTURBED) // 2]),
    Fault.UNTAGGED: (Finish.STOP, UNDISTURBED.replace("<answer>", "").replace("</answer>", "")),
    Fault.EMPTY_TEXT: (Finish.STOP, ""),
    Fault.REFUSAL: (Finish.REFUSAL, None),
    Fault.CONTENT_FILTER: (Finish.REFUSAL, None),
    Fault.THINK: (Finish.STOP, None),
    Fault.REASONING_FIELD: (Finish.STOP, UNDISTURBED),
    Fault.NULL_CONTENT: (Finish.STOP, ""),
    Fault.THINKING_SPENT: (Finish.LENGTH, ""),
    Fault.NO_USAGE: (Finish.STOP, UNDISTURBED),
    Fault.STALL: (Finish.STOP, UNDISTURBED),
}
REASONING = {Fault.REASONING_FIELD, Fault.NULL_CONTENT, Fault.THINKING_SPENT}


@ENDPOINTS
@STREAMS
@pytest.mark.parametrize("fault", REPLIES)
async def test_a_poor_reply_is_a_reply_and_is_not_bought_again(
    endpoint: str, stream: bool, fault: Fault
) -> None:
    finish, text = REPLIES[fault]
    async with caller(endpoint, stream, fault, simulator={"stall_s": 0.2}) as it:
        outcome = await it.ask()
    assert isinstance(outcome, Completion)
    assert outcome.finish is finish
    if text is not None:
        assert outcome.text == text
    assert ("decoy" in outcome.reasoning) == (fault in REASONING)
    assert "decoy" not in outcome.text or fault is Fault.THINK
    (record,) = it.log
    assert record.charged
    assert outcome.request_id == record.request_id
    assert it.book.finals == [True]
    assert outcome.usage.reported == (fault is not Fault.NO_USAGE)
    if outcome.usage.reported:
        used = (outcome.usage.input_tokens, outcome.usage.output_tokens)
        assert used == (record.input_tokens, record.output_tokens)


def test_every_fault_of_the_simulator_is_tested_here() -> None:
    elsewhere = {Fault.NO_VERDICT, Fault.OTHER_VERDICT}
    here = TRANSIENT.keys() | FATAL.keys() | REPLIES.keys()
    row = {f for f in Fault if f.value in _ROW}
    assert set(Fault) == here | row | elsewhere


_ROW = {"bad_request", "image_too_large", "content_policy", "unsupported_parameter", "body_too_large"}


# ---------------------------------------------------------------- accounts


@ENDPOINTS
@STREAMS
async def test_tokens_and_money_are_those_of_the_log(endpoint: str, stream: bool) -> None:
    """Over a mix of everything: what the simulator charged and we saw is what we booked."""
    faults = (Fault.SERVER_ERROR, Fault.RATE_LIMIT, Fault.CUT_MID_BODY, Fault.MALFORMED_JSON, Fault.TRUNCATED)
    rules = tuple(FaultRule(fault=fault, rate=0.12) for fault in faults)
    async with caller(endpoint, stream, simulator={"faults": rules, "seed": 5}, max_attempts=8) as it:
        outcomes = await asyncio.gather(*(it.ask(f"What is number {row}?") for row in range(60)))
    replies = [outcome for outcome in outcomes if isinstance(outcome, Completion)]
    assert len(replies) == 60
    delivered = [record for record in it.log if record.fault in ("", Fault.TRUNCATED.value)]
    assert len(it.log) == len(it.book.kept)
    assert len(delivered) == 60
    assert sum(reply.usage.input_tokens for reply in replies) == sum(r.input_tokens for r in delivered)
    assert sum(reply.usage.output_tokens for reply in replies) == sum(r.output_tokens for r in delivered)
    unseen = [record for record in it.log if record.charged and record not in delivered]
    unknown = [attempt for attempt, _ in it.book.kept if attempt.cost_usd is None]
    assert len(unknown) == len(unseen)
    known = sum(attempt.cost_usd or 0.0 for attempt, _ in it.book.kept)
    charged = sum(1e-3 * record.input_tokens + 1e-2 * record.output_tokens for record in delivered)
    assert known == pytest.approx(charged)


@ENDPOINTS
@STREAMS
async def test_what_the_prompt_cache_holds_has_a_price_of_its_own(endpoint: str, stream: bool) -> None:
    """The second question finds what the first has put there; Google says nothing of writing."""
    price = replace(PRICE, cached=Rate(base=1e-4), cache_write=Rate(base=1.25e-3))
    system = "Name the finding. " * 400
    async with caller(endpoint, stream, price=price, prompt_caching=True) as it:
        replies = [await it.ask(f"What is number {row}?", system) for row in range(2)]
    usages = [reply.usage for reply in replies if isinstance(reply, Completion)]
    written = 0 if endpoint == "gemini" else 1800
    counts = [(usage.cached_tokens, usage.cache_write_tokens) for usage in usages]
    assert counts == [(0, written), (1800, 0)]
    rates = [1.25e-3 if written else 1e-3, 1e-4]
    charged = [
        1800 * rate + (usage.input_tokens - 1800) * 1e-3 + usage.output_tokens * 1e-2
        for usage, rate in zip(usages, rates, strict=True)
    ]
    assert it.purse.spent == pytest.approx(charged)


@pytest.mark.parametrize("endpoint", ["openai", "anthropic"])
async def test_more_than_a_hundred_calls_are_in_flight_at_once(endpoint: str) -> None:
    """Two layers could stop at a hundred: the connector of a client library, and our own cap."""
    simulator = {"latency": Latency("fixed", 2.0)}
    async with caller(endpoint, simulator=simulator, concurrency=200, start_concurrency=200) as it:
        await asyncio.gather(*(it.ask(f"What is number {row}?") for row in range(200)))
    moments = [(record.arrived_at, 1) for record in it.log] + [(record.ended_at, -1) for record in it.log]
    at_once = most = 0
    for _, change in sorted(moments):
        at_once += change
        most = max(most, at_once)
    assert len(it.log) == 200
    assert most > 150


async def test_a_book_entry_is_complete() -> None:
    async with caller("openai", True) as it:
        await it.ask()
    attempt: Attempt = it.book.kept[0][0]
    assert attempt.number == 1
    assert attempt.timing.first_token_s is not None
    assert it.log[0].arrived_at - 1 < attempt.timing.started_at <= it.log[0].arrived_at + 1
    assert isinstance(attempt.outcome, Completion)
    assert attempt.outcome.model == "m"
    assert attempt.outcome.request_id == it.log[0].request_id
