"""What a request in a batch costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.prices import Price, Prices, Rate

BATCH_SHARE: Mapping[str, tuple[float, str]] = {
    "openai": (0.5, "https://developers.openai.com/api/docs/guides/batch"),
    "responses": (0.5, "https://developers.openai.com/api/docs/guides/batch"),
    "anthropic": (0.5, "https://platform.claude.com/docs/en/build-with-claude/batch-processing"),
}
"""Wire format -> share of the usual price that a batch costs, input and output alike, and where the vendor
says so."""


def batch_price(settings: CallSettings, prices: Prices | None = None) -> Price | None:
    """The price of `settings.model` in a batch; None where it is unknown.

    Prices that the user gave are taken for those of a batch as they are: whoever names a price means it.
    """
    found = (prices or Prices()).find(settings)
    if found is None:
        return None
    share, _ = BATCH_SHARE[settings.endpoint]

    def less(rate: Rate | None) -> Rate | None:
        if rate is None:
            return None
        tiers = tuple((start, price * share) for start, price in rate.tiers)
        return Rate(base=rate.base * share, tiers=tiers)

    own_input, own_output = settings.input_price is not None, settings.output_price is not None
    if own_input and own_output:
        return found
    return replace(
        found,
        source=f"{found.source}, {share:.0%} in a batch",
        input=found.input if own_input else less(found.input) or found.input,
        cached=less(found.cached),
        cache_write=less(found.cache_write),
        output=found.output if own_output else less(found.output) or found.output,
        reasoning=less(found.reasoning),
    )
