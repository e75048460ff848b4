"""Objectives as a user writes them."""

from __future__ import annotations

import pytest

from mmbu_async.bench.objective import Objective, limits_of, parse, parse_all, parse_limits
from mmbu_async.bench.rates import Limits
from mmbu_async.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "objective"),
    [
        ("p95 <= 20s", Objective(measure="latency", share="p95", limit=20.0)),
        ("p95<20", Objective(measure="latency", share="p95", limit=20.0)),
        ("P99  TTFT <= 800 ms", Objective(measure="first_token", share="p99", limit=0.8)),
        ("p99.9 latency <= 1.5min", Objective(measure="latency", share="p99.9", limit=90.0)),
        ("mean tpot <= 50ms", Objective(measure="token", share="mean", limit=0.05)),
        ("p50 itl <= 50ms", Objective(measure="gap", share="p50", limit=0.05)),
        ("errors <= 0.5%", Objective(measure="errors", limit=0.005)),
        ("errors <= 0.01", Objective(measure="errors", limit=0.01)),
    ],
)
def test_is_read(text: str, objective: Objective) -> None:
    assert parse(text).name == objective.name
    assert parse(text).limit == pytest.approx(objective.limit)
    assert parse(objective.name).name == objective.name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fast",
        "p97 <= 2s",
        "p95 >= 2s",
        "p95 <= s",
        "p95 <= 0s",
        "p95 <= 1.2.3s",
        "p95 <= 2h",
        "errors <= 100%",
        "ttft <= 2s",
        "p95 tokens <= 2s",
    ],
)
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(ConfigError, match="write it like 'p95 <= 20s'"):
        parse(text)


def test_errors_have_a_limit_of_their_own() -> None:
    assert [one.name for one in parse_all(["p95 <= 2s"])] == ["p95 latency <= 2 s", "errors <= 1 %"]
    assert len(parse_all(["errors <= 5%", "p95 <= 2s"])) == 2
    assert parse_all([]) == ()


def test_what_a_single_reply_must_keep() -> None:
    assert parse_limits(["ttft <= 2s", "tpot <= 50ms"]) == Limits(first_token_s=2.0, token_time_s=0.05)
    assert parse_limits([]) == Limits()
    for text in ("p95 <= 2s", "itl <= 2s", "2s", "<= 2s", "errors <= 1%"):
        with pytest.raises(ConfigError, match="one reply must keep"):
            parse_limits([text])


def test_objectives_say_what_a_good_reply_is() -> None:
    found = limits_of(parse_all(["p95 <= 20s", "p50 <= 5s", "p99 ttft <= 2s"]))
    assert found == Limits(latency_s=5.0, first_token_s=2.0)
