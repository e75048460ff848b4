"""What a call costs, in US dollars.

The user's own prices win, then genai-prices (the table that is installed; nothing is fetched), else the
price is unknown: None, never 0. The lookup is done once a run; `Price.cost` is arithmetic on floats.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mmbu_async.config import CallSettings
from mmbu_async.model import Usage

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

MILLION = 1_000_000
MAKERS = {"claude": "anthropic", "gpt-": "openai", "gemini": "google", "grok": "x-ai"}
"""First letters of models that only their maker serves, and the maker. Whoever passes them on is billed for
them; an open-weight model at a host that genai-prices does not know may cost anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """US dollars a token. A tier applies to all tokens of a call whose input is larger than its start."""

    base: float
    tiers: tuple[tuple[int, float], ...] = ()
    """(input tokens, US dollars a token), ascending."""

    def at(self, input_tokens: int) -> float:
        price = self.base
        for start, dearer in self.tiers:
            if input_tokens > start:
                price = dearer
        return price


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of one model at one endpoint."""

    source: str
    """Where it is from, for the report: `settings` or e.g. `genai-prices: openai/gpt-4o`."""
    input: Rate
    output: Rate
    cached: Rate | None = None
    """Input read from the provider's cache; None: like other input."""
    cache_write: Rate | None = None
    """Input written to the provider's cache; None: like other input."""
    reasoning: Rate | None = None
    """Output spent on reasoning; None: like other output."""
    request: float = 0.0
    """US dollars a call, whatever its size."""

    def cost(self, usage: Usage) -> float:
        """US dollars for one attempt. Cached and cache-written tokens are part of the input tokens."""
        size = usage.input_tokens
        total = self.request
        plain = size
        if self.cached is not None:
            plain -= usage.cached_tokens
            total += usage.cached_tokens * self.cached.at(size)
        if self.cache_write is not None:
            plain -= usage.cache_write_tokens
            total += usage.cache_write_tokens * self.cache_write.at(size)
        said = usage.output_tokens
        if self.reasoning is not None:
            said -= usage.reasoning_tokens
            total += usage.reasoning_tokens * self.reasoning.at(size)
        # Some gateways report more cached than input tokens; a negative rest would be a discount.
        return total + max(plain, 0) * self.input.at(size) + max(said, 0) * self.output.at(size)


class Prices:
    """Looks prices up. `now` matters where a table knows a date or an hour from which another price holds."""

    def __init__(self, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now

    def find(self, settings: CallSettings) -> Price | None:
        """The price of `settings.model` at its endpoint; None where it is unknown.

        The user's own input price holds for cached input too, since the user named no other: too much
        rather than too little. A half that the user left out is taken from the table, or all is unknown.
        """
        own_input, own_output = _own(settings.input_price), _own(settings.output_price)
        if own_input and own_output:
            return Price(source="settings", input=own_input, output=own_output)
        listed = self._listed(settings)
        if listed is None:
            return None
        source = f"settings, {listed.source}"
        if own_input:
            return replace(listed, source=source, input=own_input, cached=None, cache_write=None)
        if own_output:
            return replace(listed, source=source, output=own_output, reasoning=None)
        return listed

    def _listed(self, settings: CallSettings) -> Price | None:
        # A quarter of a second to import, so only where it is asked.
        from genai_prices import Usage as ListedUsage
        from genai_prices import calc_price

        for model, where in _places(settings):
            try:
                found = calc_price(
                    ListedUsage(input_tokens=0, output_tokens=0),
                    model,
                    genai_request_timestamp=self._now(),
                    **where,
                )
            except LookupError:
                continue
            if (price := _translate(found)) is not None:
                return price
        return None


def _places(settings: CallSettings) -> Iterator[tuple[str, dict[str, Any]]]:
    """Model names and the provider to ask about them, the nearest first."""
    model = settings.model
    if _is_private(settings.host):
        # A server of one's own: the model's name says nothing of what it costs there.
        return
    here = {"provider_api_url": settings.url}
    yield model, here
    name, _, variant = model.partition(":")
    if variant == "free":
        return
    if variant and "/" in model:
        # OpenRouter's routing variants (`:nitro`, `:floor`) are priced like the model itself.
        yield name, here
    bare = name.rpartition("/")[2]
    for first, maker in MAKERS.items():
        # gpt-oss is open-weight: anyone may serve it at any price.
        if bare.startswith(first) and not bare.startswith("gpt-oss"):
            yield bare, {"provider_id": maker}


def _is_private(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".localhost", ".lan"))


def _translate(found: PriceCalculation) -> Price | None:
    """Ours from theirs; None where the table lists the model without a price for input or output."""
    listed = found.model_price
    input_, output = _rate(listed.input_mtok), _rate(listed.output_mtok)
    if input_ is None or output is None:
        return None
    request = _rate(listed.requests_kcount)
    return Price(
        source=f"genai-prices: {found.provider.id}/{found.model.id}",
        input=input_,
        output=output,
        cached=_rate(listed.cache_read_mtok),
        cache_write=_rate(listed.cache_write_mtok),
        reasoning=_rate(listed.output_reasoning_mtok),
        request=request.base * 1000 if request is not None else 0.0,
    )


def _own(dollars: float | None) -> Rate | None:
    """A rate from the user's US dollars a million tokens."""
    return None if dollars is None else Rate(base=dollars / MILLION)


def _rate(value: Any) -> Rate | None:
    """A rate from a decimal, or from a base with tiers, in US dollars a million."""
    if value is None:
        return None
    if hasattr(value, "tiers"):
        tiers = sorted((tier.start, float(tier.price) / MILLION) for tier in value.tiers)
        return Rate(base=float(value.base) / MILLION, tiers=tuple(tiers))
    return Rate(base=float(value) / MILLION)
