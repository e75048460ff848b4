"""Whether an endpoint refuses a parameter that every request carries: then no row will escape it.

Vendors share no code for it. OpenAI says `unsupported_parameter` or `unsupported_value`, Anthropic an
`invalid_request_error` like any other, servers of one's own what their validation library says; the name of
the parameter and what is wrong with it stand in the words alone.
"""

from __future__ import annotations

import re

from mmbu_async.config import CallSettings
from mmbu_async.model import Failure, FailureKind

_REFUSED = re.compile(
    r"not (?:be )?(?:supported|permitted|allowed|accepted|available)|(?:does|do)(?: not|n't) support"
    r"|unsupported|deprecated|no longer|unknown|unexpected|(?:un|not )recogni[sz]ed|extra (?:inputs|fields)"
    r"|cannot (?:both )?be (?:used|set|specified|combined|given)|only (?:the default|\S+ is allowed)"
    r"|invalid (?:parameter|argument)",
    re.IGNORECASE,
)
"""What is said of a parameter that has no place. Not: that a value is too large, which can be due to the row
(`max_tokens` beside a long question)."""
_SETTINGS = {
    "prompt_cache_key": "prompt_caching",
    "cache_control": "prompt_caching",
    "detail": "image_detail",
    "mediaResolution": "image_detail",
    "media_resolution": "image_detail",
}
"""Fields of requests, and the settings by which they are sent."""
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")
"""Under which names a token limit is sent."""


def refused_parameter(failure: Failure, settings: CallSettings) -> str | None:
    """The name of the parameter that is refused, as the endpoint calls it, where one of ours is."""
    if failure.kind is not FailureKind.BAD_REQUEST or not _REFUSED.search(failure.message):
        return None
    found = {
        match.start(): name
        for name in _sent(settings)
        if (match := re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", failure.message))
    }
    return found[min(found)] if found else None


def give_up_parameter(name: str, settings: CallSettings) -> str:
    """How a request goes without it."""
    if name in settings.params:
        return f"leave out {settings.flag('params')} {name}"
    if name in _LIMITS:
        flag = settings.flag("max_tokens")
        return (
            f"give {flag} 0, and the limit by the name that this model takes with {settings.flag('params')}"
        )
    if name in _generation(settings):
        return f"leave out {name} in the generationConfig of {settings.flag('params')}"
    if name in _SETTINGS:
        return f"leave out {settings.flag(_SETTINGS[name])}"
    return f"leave out {settings.flag(name.partition('_')[0] if name == 'stream_options' else name)}"


def _generation(settings: CallSettings) -> list[str]:
    """Names within the one parameter that Gemini takes most of them in."""
    inside = settings.params.get("generationConfig") if settings.endpoint == "gemini" else None
    return [name for name, value in inside.items() if value is not None] if isinstance(inside, dict) else []


def _sent(settings: CallSettings) -> list[str]:
    """Names of the parameters of our requests, but for model and messages."""
    names = [name for name, value in settings.params.items() if value is not None]
    if settings.max_tokens:
        names += _LIMITS
    names += [name for name in ("temperature", "seed") if getattr(settings, name) is not None]
    names += _generation(settings)
    names += [name for name, setting in _SETTINGS.items() if getattr(settings, setting)]
    return names + (["stream_options", "stream"] if settings.stream else [])
