"""Requests out of a pool that was made before: nothing is read, decoded or drawn while a stage runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from mmbu_async.bench.altering import Variants, variants
from mmbu_async.bench.ask import Ask
from mmbu_async.config import CallSettings
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.endpoints.wire import WireFormat
from mmbu_async.model import PreparedImage, Prompt
from mmbu_async.store import StoredSample

MOST_BYTES = 256 * 2**20
"""Of request bodies that are kept; beyond, they are put together anew each time, a tenth of a millisecond."""


class Caching(StrEnum):
    """How kind requests are to caches on the way, of prompts and of images."""

    PLAIN = "plain"
    """Each row or image as it is, in turn; when all were sent they come again."""
    BUST = "bust"
    """No two requests alike: a number before everything else, and a few pixels of each image."""
    SAME = "same"
    """One and the same request, always: the most that caches can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A question with its images, ready to become requests."""

    prompt: Prompt
    images: tuple[PreparedImage, ...]
    row: StoredSample | None = None


class Pool:
    """Gives requests to one endpoint, without end. Made anew with the same seed it gives the same ones."""

    def __init__(
        self,
        items: Sequence[Item],
        *,
        wire: WireFormat,
        settings: CallSettings,
        caching: Caching,
        seed: int,
    ) -> None:
        self.distinct = 1 if caching is Caching.SAME else len(items)
        """Different requests before one comes again; busting caches there is no such number."""
        self.given = 0
        self._items = list(items[:1]) if caching is Caching.SAME else list(items)
        if caching is not Caching.SAME:
            Random(seed).shuffle(self._items)
        self._wire = wire
        self._settings = settings
        self._bust = caching is Caching.BUST
        self._random = Random(seed)
        self._estimator = Estimator.of(settings)
        self._kept: dict[int, Ask] = {}
        self._kept_bytes = 0
        self._variants: dict[int, tuple[Variants, ...]] = {}

    def warm(self) -> None:
        """Do beforehand what would otherwise be done at the first use of each item."""
        for place, item in enumerate(self._items):
            if self._bust:
                self._variants[place] = tuple(map(variants, item.images))
            elif self._kept_bytes < MOST_BYTES:
                self._keep(place, self._ask(item, item.prompt, item.images))

    def next(self) -> Ask:
        """The next request."""
        place = self.given % len(self._items)
        self.given += 1
        item = self._items[place]
        if not self._bust:
            return self._kept.get(place) or self._ask(item, item.prompt, item.images)
        number = self._random.getrandbits(48)
        made = self._variants.get(place) or tuple(map(variants, item.images))
        images = tuple(one.variant(number) for one in made)
        return self._ask(item, _marked(item.prompt, f"[{number:012x}] "), images)

    def _ask(self, item: Item, prompt: Prompt, images: tuple[PreparedImage, ...]) -> Ask:
        return Ask(
            body=self._wire.body(self._settings, prompt, images),
            images=len(images),
            pixels=sum(image.width * image.height for image in images),
            raw_input=self._estimator.raw_input((prompt.system or "", prompt.text), images),
            row=item.row,
            image_scale=images[0].scale if images else 1.0,
        )

    def _keep(self, place: int, ask: Ask) -> None:
        self._kept[place] = ask
        self._kept_bytes += len(ask.body)


def _marked(prompt: Prompt, mark: str) -> Prompt:
    """With the mark before everything that is said, so that no beginning is as it was."""
    if prompt.system is not None:
        return replace(prompt, system=mark + prompt.system)
    return replace(prompt, parts=(mark, *prompt.parts))
