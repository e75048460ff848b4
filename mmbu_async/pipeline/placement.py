"""Where image work is done: here, on a few threads. The seam at which other machines can take it over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol, Self

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.exchange import Body
from mmbu_async.endpoints.tokens import Estimator
from mmbu_async.endpoints.wire import WireFormat
from mmbu_async.errors import ImageError
from mmbu_async.images import ImageLimits, prepare
from mmbu_async.model import Benchmark, ImageRef, PreparedImage, Prompt
from mmbu_async.store import StoredSample


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRow:
    """A row whose request can go out."""

    row: StoredSample
    body: Body
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request body, and what the store keeps of its images."""

    body: bytes
    raw_input: int
    image_scale: float
    image_sha256: str
    image_note: str
    size: int = 0
    """Bytes of a body that is kept elsewhere."""

    @classmethod
    def of(
        cls,
        prompt: Prompt,
        images: Sequence[PreparedImage],
        *,
        wire: WireFormat,
        settings: CallSettings,
        estimator: Estimator,
    ) -> Self:
        return cls(
            body=wire.body(settings, prompt, images),
            raw_input=estimator.raw_input((prompt.system or "", prompt.text), tuple(images)),
            image_scale=images[0].scale if images else 1.0,
            image_sha256=" ".join(image.original_sha256 for image in images),
            image_note=" ".join(image.converted for image in images if image.converted),
        )

    def parted(self) -> tuple[Self, bytes]:
        """What is told of it, and the body, which can stay where it is."""
        return replace(self, body=b"", size=len(self.body)), self.body

    def ready(self, row: StoredSample, body: Body | None = None) -> ReadyRow:
        """For a row; `body` where it lies elsewhere."""
        return ReadyRow(
            row=row,
            body=self.body if body is None else body,
            raw_input=self.raw_input,
            image_scale=self.image_scale,
            image_sha256=self.image_sha256,
            image_note=self.image_note,
        )


class Placement(Protocol):
    """Prepares rows somewhere."""

    width: int
    """Batches of rows that it can have in hand at once."""

    async def prepare(self, rows: Sequence[StoredSample]) -> list[ReadyRow | BrokenRow]:
        """One result a row, in order; fewer where the run is to end."""

    def forget(self, row: ReadyRow) -> None:
        """The row will not be sent again."""


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
        request = Request.of(prompt, images, wire=self.wire, settings=self.settings, estimator=self.estimator)
        return request.ready(row)


class Threads:
    """Image work on a small pool of threads beside the event loop. Use as a context manager."""

    width = 3
    """On two threads: one batch waits ready while two are worked on."""

    def __init__(self, workshop: Workshop, threads: int = 2) -> None:
        self._workshop = workshop
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="prepare")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def prepare(self, rows: Sequence[StoredSample]) -> list[ReadyRow | BrokenRow]:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._workshop.prepare, rows)

    def forget(self, row: ReadyRow) -> None:
        """The row itself held all there was."""
