"""Prices: the user's own, the installed table, or unknown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from genai_prices import Usage as ListedUsage
from genai_prices import calc_price
from genai_prices.types import PriceCalculation

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.prices import Price, Prices, Rate
from mmbu_async.model import Usage

OPENROUTER = "https://openrouter.ai/api/v1"
DAY = datetime(2026, 11, 30, 12, tzinfo=UTC)


def find(model: str, **more: object) -> Price | None:
    return Prices(now=lambda: DAY).find(CallSettings.model_validate({"model": model, **more}))


def listed(usage: ListedUsage, model: str, provider: str) -> float:
    """What genai-prices itself says."""
    return float(calc_price(usage, model, provider_id=provider, genai_request_timestamp=DAY).total_price)


# ---------------------------------------------------------------- whose price


def test_the_users_own_price_wins() -> None:
    price = find("gpt-4o", input_price=1.0, output_price=3.0)
    assert price is not None
    assert price.source == "settings"
    assert price.cost(Usage(input_tokens=2_000_000, output_tokens=1_000_000)) == pytest.approx(5.0)


def test_the_users_own_zero_is_a_price() -> None:
    price = find("my-own-model", input_price=0, output_price=0)
    assert price is not None
    assert price.cost(Usage(input_tokens=1000, output_tokens=1000)) == 0.0


def test_half_of_an_own_price_takes_the_other_half_from_the_table() -> None:
    table = find("gpt-4o")
    price = find("gpt-4o", input_price=1.0)
    assert table is not None
    assert price is not None
    assert price.input == Rate(base=1e-6)
    assert price.output == table.output
    assert price.cached is None  # the user named one input price, so it holds for all input
    other = find("gpt-4o", output_price=1.0)
    assert other is not None
    assert (other.input, other.cached, other.output) == (table.input, table.cached, Rate(base=1e-6))
    assert find("nobody-knows-this", input_price=1.0) is None


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("nobody-knows-this", {}),
        ("qwen2.5-vl-7b-instruct", {"base_url": "http://127.0.0.1:8000/v1"}),
        ("gpt-4o", {"base_url": "http://127.0.0.1:8000/v1"}),
        ("gpt-4o", {"base_url": "http://gpu-node-7:8000/v1"}),
        ("gpt-4o", {"base_url": "http://10.0.0.3:8000/v1"}),
        ("gpt-4o", {"base_url": "http://[::1]:8000/v1"}),
        ("claude-sonnet-5", {"base_url": "http://llm.internal", "endpoint": "anthropic"}),
        ("Qwen/Qwen2.5-VL-7B-Instruct", {"base_url": "https://gateway.example.org/v1"}),
        ("openai/gpt-oss-120b", {"base_url": "https://gateway.example.org/v1"}),
        ("openai/gpt-4o:free", {"base_url": OPENROUTER}),
    ],
)
def test_unknown_is_none_and_never_zero(model: str, more: dict[str, str]) -> None:
    assert find(model, **more) is None


@pytest.mark.parametrize(
    ("model", "more", "source"),
    [
        ("gpt-4o-2024-08-06", {}, "genai-prices: openai/gpt-4o"),
        ("claude-sonnet-5", {"endpoint": "anthropic"}, "genai-prices: anthropic/claude-sonnet-5"),
        (
            "claude-sonnet-4-5-20250929",
            {"endpoint": "anthropic"},
            "genai-prices: anthropic/claude-sonnet-4-5",
        ),
        (
            "anthropic/claude-sonnet-4.5",
            {"base_url": OPENROUTER},
            "genai-prices: openrouter/anthropic/claude-sonnet-4.5",
        ),
        (
            "anthropic/claude-sonnet-4.5:nitro",
            {"base_url": OPENROUTER},
            "genai-prices: openrouter/anthropic/claude-sonnet-4.5",
        ),
        # A maker's own spelling at OpenRouter, and a gateway that nobody knows: the maker's list price.
        (
            "anthropic/claude-sonnet-4-5",
            {"base_url": OPENROUTER},
            "genai-prices: anthropic/claude-sonnet-4-5",
        ),
        ("openai/gpt-4o", {"base_url": "https://gateway.example.org/v1"}, "genai-prices: openai/gpt-4o"),
        (
            "gemini-2.5-flash",
            {"base_url": "https://generativelanguage.googleapis.com/v1beta/openai"},
            "genai-prices: google/gemini-2.5-flash",
        ),
        ("gemini-2.5-flash", {"endpoint": "gemini"}, "genai-prices: google/gemini-2.5-flash"),
        ("gpt-4o", {"endpoint": "responses"}, "genai-prices: openai/gpt-4o"),
        (
            "gpt-4o",
            {"endpoint": "azure", "base_url": "https://mine.openai.azure.com"},
            "genai-prices: azure/gpt-4o",
        ),
    ],
)
def test_the_provider_is_that_of_the_host(model: str, more: dict[str, str], source: str) -> None:
    price = find(model, **more)
    assert price is not None
    assert price.source == source


# ---------------------------------------------------------------- what it costs


@pytest.mark.parametrize(
    ("model", "endpoint", "provider"),
    [
        ("gpt-4o", "openai", "openai"),
        # Of the models that charge for what they write into their cache.
        ("gpt-5.6", "responses", "openai"),
        ("claude-sonnet-4-5", "anthropic", "anthropic"),
        ("gemini-3-pro-preview", "gemini", "google"),
    ],
)
@pytest.mark.parametrize("size", [1_000, 150_000, 250_000])
def test_costs_equal_those_of_genai_prices(model: str, endpoint: str, provider: str, size: int) -> None:
    """Cached and written input, and the dearer tier for long input, as the provider bills them."""
    price = find(model, endpoint=endpoint)
    assert price is not None
    usage = Usage(
        input_tokens=size, output_tokens=700, reasoning_tokens=300, cached_tokens=600, cache_write_tokens=200
    )
    theirs = ListedUsage(input_tokens=size, output_tokens=700, cache_read_tokens=600)
    if price.cache_write is not None:
        theirs = theirs + ListedUsage(cache_write_tokens=200)
    assert price.cost(usage) == pytest.approx(listed(theirs, model, provider), rel=1e-9)


def test_a_tier_begins_beyond_its_start() -> None:
    rate = Rate(base=1.0, tiers=((200, 2.0), (400, 3.0)))
    assert [rate.at(size) for size in (0, 200, 201, 400, 401)] == [1.0, 1.0, 2.0, 2.0, 3.0]


def test_a_price_a_call_and_for_reasoning() -> None:
    price = Price(
        source="test",
        input=Rate(base=1.0),
        output=Rate(base=10.0),
        reasoning=Rate(base=100.0),
        request=1000.0,
    )
    assert (
        price.cost(Usage(input_tokens=2, output_tokens=5, reasoning_tokens=3)) == 1000 + 2 + 2 * 10 + 3 * 100
    )


def test_a_listed_price_a_call() -> None:
    price = find("sonar", base_url="https://api.perplexity.ai")
    assert price is not None
    assert price.request > 0
    theirs = listed(ListedUsage(input_tokens=100, output_tokens=10), "sonar", "perplexity")
    assert price.cost(Usage(input_tokens=100, output_tokens=10)) == pytest.approx(theirs, rel=1e-9)


def test_more_cached_than_input_is_no_discount() -> None:
    price = Price(source="test", input=Rate(base=1.0), output=Rate(base=1.0), cached=Rate(base=0.1))
    assert price.cost(Usage(input_tokens=10, cached_tokens=20)) == pytest.approx(2.0)


def test_the_price_of_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the table knows a day from which another price holds, the day of the run decides."""
    asked: list[object] = []

    def spy(*arguments: Any, **named: Any) -> PriceCalculation:
        asked.append(named["genai_request_timestamp"])
        return calc_price(*arguments, **named)

    monkeypatch.setattr("genai_prices.calc_price", spy)
    find("gpt-4o")
    assert asked == [DAY]
