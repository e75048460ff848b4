"""Work out of nothing: images of stated sizes and formats, prompts and replies of stated lengths."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random

import numpy as np
from PIL import Image

from mmbu_async.bench.pool import Item
from mmbu_async.errors import ConfigError
from mmbu_async.model import ImageSlot, PreparedImage, Prompt

_FORMATS = {"jpeg": "image/jpeg", "jpg": "image/jpeg", "png": "image/png", "webp": "image/webp"}
_SPEC = re.compile(r"(\d{1,5})x(\d{1,5})(?::([a-z]+))?(?::(\d{1,3}))?")
DISTINCT = 16
"""Different images of each kind, at most."""
MOST_PIXELS = 64e6
"""Of all different images of a kind together, which take some 30 ms of CPU a million to draw."""
GRAIN = 4.0
"""Standard deviation of the noise of each pixel: about what a photograph's sensor adds, so that files have
the size of photographs and not of drawings."""
_WORDS = (
    *("the", "cell", "image", "shows", "small", "round", "dark", "part", "near", "left", "edge", "many"),
    *("bright", "points", "middle", "where", "one", "long", "thin", "line", "goes", "from", "top", "other"),
    *("side", "field", "with", "more", "red", "than", "blue"),
)
"""Words that common tokenizers know as one token each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageKind:
    """What one image is like."""

    width: int
    height: int
    media_type: str = "image/jpeg"
    quality: int = 85
    """Of JPEG and WebP."""

    @classmethod
    def parse(cls, text: str) -> ImageKind:
        """Reads `1024x768`, `1024x768:png` or `1024x768:jpeg:90`."""
        found = _SPEC.fullmatch(text.strip().lower())
        if found is not None:
            width, height, form, quality = found.groups()
            kind = _FORMATS.get(form or "jpeg")
            sizes = int(width) * int(height)
            if kind is not None and sizes and 1 <= int(quality or 85) <= 100:
                return cls(width=int(width), height=int(height), media_type=kind, quality=int(quality or 85))
        raise ConfigError(
            f"image '{text}' cannot be read; write WIDTHxHEIGHT, and if you like the format (jpeg, png or "
            "webp) and the quality: 1024x768:jpeg:90."
        )

    @property
    def name(self) -> str:
        form = self.media_type.removeprefix("image/")
        quality = "" if form == "png" else f":{self.quality}"
        return f"{self.width}x{self.height}:{form}{quality}"

    def draw(self, seed: int) -> PreparedImage:
        """Soft shapes and grain; another seed gives another image."""
        random = np.random.default_rng(seed)
        coarse = random.integers(20, 236, (self.height // 64 + 2, self.width // 64 + 2, 3), dtype=np.uint8)
        soft = Image.fromarray(coarse).resize((self.width, self.height), Image.Resampling.BICUBIC)
        grain = random.normal(0.0, GRAIN, (self.height, self.width, 1)).astype(np.float32)
        pixels = np.clip(np.asarray(soft, dtype=np.float32) + grain, 0, 255).astype(np.uint8)
        buffer = io.BytesIO()
        form = self.media_type.removeprefix("image/")
        options = {} if form == "png" else {"quality": self.quality}
        Image.fromarray(pixels).save(buffer, form, **options)
        return PreparedImage(
            data=buffer.getvalue(), media_type=self.media_type, width=self.width, height=self.height
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic:
    """What requests are like."""

    kinds: tuple[ImageKind, ...] = (ImageKind(width=1024, height=768),)
    """Requests take them in turn; empty: text alone."""
    images: int = 1
    """In each request."""
    prompt_tokens: int = 50
    reply_tokens: int = 100
    """Asked for in words and set as the token limit: how long replies really are is in the figures."""

    @property
    def name(self) -> str:
        what = ", ".join(kind.name for kind in self.kinds)
        images = f"{self.images} x {what}" if self.kinds and self.images else "no image"
        return f"{images}; prompt {self.prompt_tokens} tokens, reply {self.reply_tokens}"

    def items(self, seed: int) -> list[Item]:
        """One for each different image."""
        largest = max((kind.width * kind.height for kind in self.kinds), default=1)
        count = max(2, min(DISTINCT, int(MOST_PIXELS / largest))) * max(1, len(self.kinds))
        drawn = self._drawn(seed, count)
        return [
            Item(
                prompt=self._prompt(Random(seed * 1_000_003 + number)),
                images=tuple(islice(drawn, self.images)) if self.kinds else (),
            )
            for number in range(count)
        ]

    def _drawn(self, seed: int, count: int) -> Iterator[PreparedImage]:
        """Each kind in turn; requests with several images share some of them with others."""
        made: Sequence[PreparedImage] = [
            kind.draw(seed + number) for number, kind in zip(range(count), cycle(self.kinds), strict=False)
        ]
        return cycle(made)

    def _prompt(self, random: Random) -> Prompt:
        task = (
            f"Look at the image and write a text of {self.reply_tokens} words about it. Do not stop before."
        )
        filling = max(0, self.prompt_tokens - len(task.split()))
        text = " ".join([*random.choices(_WORDS, k=filling), task])
        slots = tuple(ImageSlot(index=index) for index in range(self.images if self.kinds else 0))
        return Prompt(parts=(*slots, text))
