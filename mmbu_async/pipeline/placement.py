"""Where image work is done: here, on a few threads. The seam at which other machines can take it over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, Self

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.endpoints.wire import WireFormat
from mmbu_async.errors import ImageError
from mmbu_async.images import ImageLimits, prepare
from mmbu_async.model import Benchmark, ImageRef, PreparedImage
from mmbu_async.store import StoredSample


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRow:
    """A row whose request can go out."""

    row: StoredSample
    body: bytes
    raw_input: int
    """Input tokens by the rules, uncorrected."""
    image_scale: float
    image_sha256: str
    image_note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRow:
    """A row whose image cannot be sent."""

    row: StoredSample
    message: str


class Placement(Protocol):
    """Prepares rows somewhere."""

    async def prepare(self, rows: Sequence[StoredSample]) -> list[ReadyRow | BrokenRow]:
        """One result a row, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """All that preparing a row needs. Its methods are safe on any thread."""

    benchmark: Benchmark
    read_image: Callable[[ImageRef], bytes]
    limits: ImageLimits
    wire: WireFormat
    settings: CallSettings
    estimator: Estimator

    def prepare(self, rows: Sequence[StoredSample]) -> list[ReadyRow | BrokenRow]:
        return [self._prepare(row) for row in rows]

    def images(self, row: StoredSample) -> list[PreparedImage] | BrokenRow:
        """The images as they are sent."""
        images: list[PreparedImage] = []
        for reference in row.sample.images:
            try:
                images.append(prepare(self.read_image(reference), self.limits))
            except ImageError as error:
                return BrokenRow(row=row, message=f"{reference.locator}: {error}")
        return images

    def _prepare(self, row: StoredSample) -> ReadyRow | BrokenRow:
        images = self.images(row)
        if isinstance(images, BrokenRow):
            return images
        prompt = self.benchmark.prompt(row.sample)
        return ReadyRow(
            row=row,
            body=self.wire.body(self.settings, prompt, images),
            raw_input=self.estimator.raw_input((prompt.system or "", prompt.text), tuple(images)),
            image_scale=images[0].scale if images else 1.0,
            image_sha256=" ".join(image.original_sha256 for image in images),
            image_note=" ".join(image.converted for image in images if image.converted),
        )


class Threads:
    """Image work on a small pool of threads beside the event loop. Use as a context manager."""

    def __init__(self, workshop: Workshop, threads: int = 2) -> None:
        self._workshop = workshop
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="prepare")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def prepare(self, rows: Sequence[StoredSample]) -> list[ReadyRow | BrokenRow]:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._workshop.prepare, rows)
