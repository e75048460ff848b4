"""Images of rows, read through the run's own source and made into what a browser shows.

What no browser shows (TIFF, DICOM, 16 bits, a turned photograph) is converted as it is for an endpoint, so
that boxes lie in the same frame. The data of a run may be gone or have changed: then that is said in words.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mmbu_async.config import RunConfig
from mmbu_async.errors import DataError, MmbuError
from mmbu_async.images import ImageLimits, prepare
from mmbu_async.model import Benchmark, ImageRef, PreparedImage
from mmbu_async.sources import Source, open_data
from mmbu_async.viewer.workers import Workers

WHOLE = ImageLimits(name="row browser", source="what browsers show")
SMALL = ImageLimits(
    name="row browser, small",
    max_edge=192,
    accepted=frozenset({"image/jpeg", "image/png"}),
    source="two pixels for each of a list's 96",
)
KEPT_BYTES = 64 * 2**20
"""Of images that were shown last."""
TRY_AGAIN_S = 10.0
"""After which data that could not be opened are tried once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Why there is nothing to see, in a sentence."""

    reason: str


Picture = PreparedImage | Missing
PictureKey = tuple[str, int, int, bool]
"""Run, key of the row, index, whether small."""


class Pictures:
    """Reads and keeps images. Everything slow is done by threads of its own."""

    def __init__(self, *, kept_bytes: int = KEPT_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._workers = Workers(2, "row browser, images")
        self._clock = clock
        self._kept: OrderedDict[PictureKey, PreparedImage] = OrderedDict()
        self._kept_bytes = kept_bytes
        self._bytes = 0
        self._sources: dict[str, Source] = {}
        self._failed: dict[str, tuple[float, str]] = {}

    def close(self) -> None:
        self._workers.close()

    def kept(self, key: PictureKey) -> PreparedImage | None:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    async def get(
        self, key: PictureKey, ref: ImageRef, config: RunConfig, benchmark: Benchmark
    ) -> PreparedImage | Missing:
        run, _, _, small = key
        made = await self._workers.run(
            lambda: self._made(run, ref, config, benchmark, SMALL if small else WHOLE)
        )
        if isinstance(made, PreparedImage):
            self._keep(key, made)
        return made

    def _made(
        self, run: str, ref: ImageRef, config: RunConfig, benchmark: Benchmark, limits: ImageLimits
    ) -> PreparedImage | Missing:
        try:
            return prepare(self._source(run, config, benchmark).read_image(ref), limits)
        except MmbuError as error:
            return Missing(reason=str(error))
        except (LookupError, ValueError):
            # A locator is written for one layout of the data; in another one it can be no place at all.
            return Missing(reason="the data have no such image any more; they are not those of the run.")

    def _source(self, run: str, config: RunConfig, benchmark: Benchmark) -> Source:
        """Opened at first use. Two threads may do so at once, which costs time and nothing else."""
        if run in self._sources:
            return self._sources[run]
        failed_at, reason = self._failed.get(run, (0.0, ""))
        if reason and self._clock() - failed_at < TRY_AGAIN_S:
            raise MmbuError(reason)
        try:
            source = self._sources[run] = _opened(config, benchmark)
        except MmbuError as error:
            self._failed[run] = (self._clock(), str(error))
            raise
        return source

    def _keep(self, key: PictureKey, made: PreparedImage) -> None:
        if key in self._kept or len(made.data) > self._kept_bytes:
            return
        self._kept[key] = made
        self._bytes += len(made.data)
        while self._bytes > self._kept_bytes:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= len(oldest.data)


def _opened(config: RunConfig, benchmark: Benchmark) -> Source:
    # A run keeps the absolute path of its folder.
    if config.data is not None and Path(config.data).is_absolute() and not Path(config.data).exists():
        raise DataError(f"{config.data}: the run's data were here; put them back to see its images.")
    return open_data(config.data, benchmark.data)
