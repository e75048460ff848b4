"""The failure table over whole runs: what stops them, what is kept, what a resume buys. Counted outside."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.errors import EndpointDownError, EndpointError
from mmbu_async.model import FailureKind, Finish, Status
from mmbu_async.simulator import Fault
from tests.whole_run import (
    ENDPOINTS,
    ROWS,
    addresses,
    calls,
    complete,
    config,
    replies,
    simulated,
    statuses,
    stops,
    stored,
)

pytestmark = pytest.mark.usefixtures("keys", "short_waits")


# ---------------------------------------------------------------- worth another attempt


@ENDPOINTS
@pytest.mark.parametrize(
    "fault", [Fault.SERVER_ERROR, Fault.RESET, Fault.MALFORMED_JSON, Fault.ERROR_IN_200, Fault.OVERLOADED]
)
async def test_trouble_that_passes_leaves_no_trace_but_its_calls(
    data: Path, store: Path, endpoint: str, fault: Fault
) -> None:
    async with simulated(f"{fault.value}=first:1", retry_after_s=None) as simulator:
        result = await api.evaluate(config(simulator, store, data, endpoint))
        await complete(result, store)
        assert len(await calls(simulator)) == 2 * ROWS
        judged = await calls(simulator, "judge")
        assert len(judged) == 2 * len({record.content for record in judged})
        attempts = stored(store, "SELECT count(*) FROM call")
        assert attempts == [(len(simulator.log),)], "every attempt is stored"


async def test_waits_that_are_asked_for_use_up_no_attempt(data: Path, store: Path) -> None:
    rules = ("rate_limit@model=first:4",)
    async with simulated(*rules, retry_after_s=0.1, retry_after_style="ms") as simulator:
        settings = config(simulator, store, data, max_attempts=1, limit=4)
        await complete(await api.evaluate(settings), store, 4)
        statuses_seen = Counter(record.status for record in await calls(simulator))
        assert statuses_seen == {429: 16, 200: 4}


# ---------------------------------------------------------------- no other row will escape

FATAL = [
    Fault.UNAUTHORIZED,
    Fault.FORBIDDEN,
    Fault.MODEL_NOT_FOUND,
    Fault.PAYMENT_REQUIRED,
    Fault.QUOTA,
    Fault.CREDIT_BALANCE,
    Fault.SPEND_LIMIT,
]


@ENDPOINTS
@pytest.mark.parametrize("fault", FATAL)
async def test_what_no_row_escapes_stops_the_run_at_once(
    data: Path, store: Path, endpoint: str, fault: Fault
) -> None:
    async with simulated(f"{fault.value}@model=requests:11-100000") as simulator:
        await stops(config(simulator, store, data, endpoint, concurrency=4), EndpointError, 4)
        asked = await calls(simulator)
        assert len([record for record in asked if record.fault]) <= 4, "only those that were under way"
        kept = len(replies(store))
        assert kept == sum(record.status == 200 for record in asked)
        assert 0 < kept < ROWS
    async with simulated() as simulator:
        result = await api.resume("r", store=store, changes=addresses(simulator, endpoint))
        await complete(result, store)
        assert len(await calls(simulator)) == ROWS - kept, "nothing is bought twice"


@pytest.mark.parametrize("fault", FATAL)
async def test_a_preflight_finds_it_with_one_call(data: Path, store: Path, fault: Fault) -> None:
    async with simulated(f"{fault.value}=1.0") as simulator:
        await stops(config(simulator, store, data, preflight=True), EndpointError, 4)
        await simulator.settled()
        assert len(simulator.log) == 1


# ---------------------------------------------------------------- this row only


@ENDPOINTS
async def test_a_refused_row_is_recorded_with_the_endpoints_words_and_asked_once_a_session(
    data: Path, store: Path, endpoint: str
) -> None:
    rules = ("content_policy@model=text:number 7?", "image_too_large@model=text:number 21?")
    async with simulated(*rules) as simulator:
        result = await api.evaluate(config(simulator, store, data, endpoint))
        assert result.exit_code == 3
        assert result.stopped is None
        assert statuses(result) == {Status.SCORED: ROWS - 2, Status.FAILED: 2}
        refused = [record for record in await calls(simulator) if record.fault]
        assert Counter(record.occurrence for record in refused) == {1: 2}
        words = {row.sample.id: row.failure for row in result if row.status is Status.FAILED}
        assert words.keys() == {"row-7", "row-21"}
        for failure in words.values():
            assert failure is not None
            assert failure.kind is FailureKind.BAD_REQUEST
            assert len(failure.message.split()) > 2
        # A resume asks those two again, and only those; being refused again is no reason to stop.
        again = await api.resume("r", store=store)
        assert again.exit_code == 3
        assert len(await calls(simulator)) == ROWS + 2
    async with simulated() as simulator:
        healed = await api.resume("r", store=store, changes=addresses(simulator, endpoint))
        await complete(healed, store)
        assert len(await calls(simulator)) == 2


# ---------------------------------------------------------------- a dead endpoint


async def test_the_breaker_pauses_and_then_stops(data: Path, store: Path) -> None:
    async with simulated("bad_gateway@model=requests:9-100000") as simulator:
        settings = config(simulator, store, data, concurrency=4, max_attempts=2)
        error = await stops(settings, EndpointDownError, 5)
        assert "fails alike" in str(error)
        asked = await calls(simulator)
        kept = len(replies(store))
        assert kept == sum(record.status == 200 for record in asked) > 0
        # Ten rows, a pause, three more; what was under way beside them; two attempts each.
        assert len(asked) - kept <= 2 * (10 + 3 + 3 * 12)
        assert len(asked) < 2 * ROWS
    async with simulated() as simulator:
        result = await api.resume("r", store=store, changes=addresses(simulator))
        await complete(result, store)
        assert len(await calls(simulator)) == ROWS - kept


async def test_the_breaker_survives_an_outage_shorter_than_its_pause(data: Path, store: Path) -> None:
    async with simulated("unavailable@model=requests:9-40", retry_after_s=None) as simulator:
        settings = config(simulator, store, data, concurrency=4, max_attempts=2)
        result = await api.evaluate(settings)
        assert result.exit_code in (0, 3)
        result = await api.resume("r", store=store)
        await complete(result, store)


async def test_a_dead_endpoint_is_found_by_the_preflight(data: Path, store: Path) -> None:
    async with simulated("bad_gateway=1.0") as simulator:
        settings = config(simulator, store, data, preflight=True, max_attempts=2)
        await stops(settings, EndpointDownError, 5)
        assert len(await calls(simulator)) <= 3 * 2


# ---------------------------------------------------------------- replies all the same


@ENDPOINTS
@pytest.mark.parametrize(
    ("fault", "finish"),
    [
        (Fault.TRUNCATED, Finish.LENGTH),
        (Fault.REFUSAL, Finish.REFUSAL),
        (Fault.CONTENT_FILTER, Finish.REFUSAL),
        (Fault.EMPTY_TEXT, Finish.STOP),
        (Fault.NULL_CONTENT, Finish.STOP),
        (Fault.THINKING_SPENT, Finish.LENGTH),
    ],
)
async def test_a_poor_reply_is_stored_scored_counted_and_not_bought_again(
    data: Path, store: Path, endpoint: str, fault: Fault, finish: Finish
) -> None:
    async with simulated(f"{fault.value}@model=text:number 7?") as simulator:
        result = await api.evaluate(config(simulator, store, data, endpoint))
        await complete(result, store)
        (row,) = [row for row in result if row.sample.id == "row-7"]
        assert row.completion is not None
        assert row.completion.finish is finish
        assert row.score is not None
        if fault in (Fault.EMPTY_TEXT, Fault.NULL_CONTENT, Fault.THINKING_SPENT):
            assert (row.completion.text, row.score.correct) == ("", False)
            assert (row.score.tp, row.score.fp, row.score.fn) == (0, 0, 1), (
                "unanswered is a miss, not an answer"
            )
        before = len(await calls(simulator))
        await api.resume("r", store=store)
        assert len(await calls(simulator)) == before == ROWS


@ENDPOINTS
@pytest.mark.parametrize("side", ["model", "judge"])
async def test_a_parameter_that_the_model_refuses_stops_the_run_with_its_name(
    data: Path, store: Path, endpoint: str, side: str
) -> None:
    own = {"temperature": 0.5}
    names: dict[str, Any] = own if side == "model" else {"judge": own}
    async with simulated(unsupported_parameters=frozenset({"temperature"})) as simulator:
        settings = config(simulator, store, data, endpoint, preflight=True, **names)
        error = await stops(settings, EndpointError, 4)
        assert "the parameter 'temperature'" in str(error)
        assert f"leave out --{'judge-' if side == 'judge' else ''}temperature;" in str(error)
        await simulator.settled()
        assert len(simulator.log) == (1 if side == "model" else 2)
    if side == "judge":
        return
    async with simulated(unsupported_parameters=frozenset({"temperature"})) as simulator:
        settings = config(simulator, store, data, endpoint)
        result = await api.evaluate(settings, new_run=True)
        await complete(result, store)
