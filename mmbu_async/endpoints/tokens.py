"""How many tokens a request may use, before anybody has counted.

Text: four characters a token, the rule of thumb of both makers' documentation. Images: OpenAI's tile rule
for chat models (85 + 170 a tile of 512 pixels, after fitting into 2048 and a short side of 768 pixels;
"Images and vision", platform guide) and Anthropic's width * height / 750 after scaling the long edge down to
1568 pixels (vision guide), Google's 258 a tile of 768 pixels, or a fixed number for each `mediaResolution`
(ai.google.dev, "Understand and count tokens" and "Media resolution"). Other servers differ by model, so an
`Estimator` learns the ratio from the usage that the endpoint reports.
"""

from __future__ import annotations

import math
import re
from typing import Self

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.anthropic import FALLBACK_MAX_TOKENS
from mmbu_async.endpoints.client import Expected
from mmbu_async.model import Completion, PreparedImage, Usage

CHARACTERS_A_TOKEN = 4
FIRST_OUTPUT_GUESS = 200
"""Tokens of a rationale and an answer, until replies have shown what is usual."""
UNLIMITED_OUTPUT = 32_768
"""Output tokens that a call without a limit is taken to use at most, for want of the model's own limit."""
_LIMIT_PARAMS = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_GEMINI_TILE = 258
_GEMINI_2 = {"low": 64, "medium": 256}
"""Tokens of an image by `mediaResolution`; `high` looks at tiles too."""
_GEMINI_3 = {"low": 280, "medium": 560, "high": 1120, "ultra_high": 2240}
_OLDER_GEMINI = re.compile(r"gemini-[12]\b")
_LOW_OPENAI = 85
_MEMORY = 0.02
"""Weight of the newest reply in the running averages."""


def text_tokens(text: str) -> int:
    return math.ceil(len(text) / CHARACTERS_A_TOKEN)


def image_tokens(
    endpoint: str, width: int, height: int, *, model: str = "", detail: str | None = None
) -> int:
    """Input tokens of one image of `width` x `height` pixels, `detail` being the setting `image_detail`."""
    if endpoint == "gemini":
        return _gemini_tokens(width, height, model, detail)
    if endpoint == "anthropic":
        fit = min(1.0, 1568 / max(width, height))
        return math.ceil(width * fit * height * fit / 750)
    if detail == "low":
        return _LOW_OPENAI
    fit = min(1.0, 2048 / max(width, height))
    width_fit, height_fit = width * fit, height * fit
    shrink = min(1.0, 768 / min(width_fit, height_fit))
    tiles = math.ceil(width_fit * shrink / 512) * math.ceil(height_fit * shrink / 512)
    return 85 + 170 * tiles


def _gemini_tokens(width: int, height: int, model: str, detail: str | None) -> int:
    """Up to Gemini 2 by tiles, whose side follows the shorter one of the image; since Gemini 3 fixed."""
    if not _OLDER_GEMINI.search(model):
        return _GEMINI_3[detail or "high"]
    if detail in _GEMINI_2:
        return _GEMINI_2[detail]
    if max(width, height) <= 384:
        return _GEMINI_TILE
    side = min(768, max(256, math.floor(min(width, height) / 1.5)))
    return _GEMINI_TILE * math.ceil(width / side) * math.ceil(height / side)


def most_output_tokens(settings: CallSettings) -> int:
    """The most that one reply can be charged for: by the limit that is really sent, `params` included."""
    if settings.endpoint == "gemini":
        generation = settings.params.get("generationConfig")
        inside = generation if isinstance(generation, dict) else {}
        limit = inside.get("maxOutputTokens", settings.max_tokens)
        return limit if isinstance(limit, int) and limit > 0 else UNLIMITED_OUTPUT
    own = [settings.params.get(name) for name in _LIMIT_PARAMS]
    limits = [value for value in own if isinstance(value, int) and not isinstance(value, bool)]
    if limits:
        return max(limits)
    if settings.endpoint == "anthropic":
        return settings.max_tokens or FALLBACK_MAX_TOKENS
    if any(name in settings.params for name in _LIMIT_PARAMS):
        # Removed by a null, and nothing in its place.
        return UNLIMITED_OUTPUT
    return settings.max_tokens or UNLIMITED_OUTPUT


class Estimator:
    """Expected tokens of the next request, corrected by what replies reported so far."""

    def __init__(
        self, endpoint: str, most_output_tokens: int, *, model: str = "", detail: str | None = None
    ) -> None:
        self._endpoint = endpoint
        self._model = model
        self._detail = detail
        self._most = most_output_tokens
        self._ratio = 1.0
        self._usual = float(min(FIRST_OUTPUT_GUESS, most_output_tokens))
        self._seen = 0

    @classmethod
    def of(cls, settings: CallSettings) -> Self:
        """For calls with these settings."""
        return cls(
            settings.endpoint,
            most_output_tokens(settings),
            model=settings.model,
            detail=settings.image_detail,
        )

    def raw_input(self, texts: tuple[str, ...], images: tuple[PreparedImage, ...]) -> int:
        """Input tokens by the rules alone."""
        return sum(map(text_tokens, texts)) + sum(
            image_tokens(self._endpoint, image.width, image.height, model=self._model, detail=self._detail)
            for image in images
        )

    def expect(self, raw_input: int) -> Expected:
        return Expected(
            input_tokens=math.ceil(raw_input * self._ratio),
            most_output_tokens=self._most,
            usual_output_tokens=math.ceil(self._usual),
        )

    def learn(self, raw_input: int, outcome: Completion) -> None:
        """Take in what one reply reported."""
        usage: Usage = outcome.usage
        if not usage.reported or raw_input <= 0 or usage.input_tokens <= 0:
            return
        self._seen += 1
        weight = max(_MEMORY, 1 / self._seen)
        self._ratio += weight * (usage.input_tokens / raw_input - self._ratio)
        self._usual += weight * (usage.output_tokens - self._usual)
