"""The executor whose work is done on a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path

from mmbu_async.config import CallSettings, RunConfig
from mmbu_async.endpoints.exchange import Exchange
from mmbu_async.images import ImageLimits
from mmbu_async.model import DataSpec
from mmbu_async.pipeline.cluster.fleet import Fleet
from mmbu_async.pipeline.cluster.messages import Data, Hello
from mmbu_async.pipeline.cluster.opening import cluster_of
from mmbu_async.pipeline.cluster.work import FarExchange, FarPlacement
from mmbu_async.pipeline.placement import Placement, Workshop
from mmbu_async.pipeline.stop import Stop

USUAL_WIDTH = 16
"""Batches of rows in preparation at once on a cluster of unknown size."""


class Afar:
    """Work that a fleet does."""

    def __init__(self, fleet: Fleet, called: Sequence[CallSettings], width: int) -> None:
        self._exchanges = [FarExchange(fleet, number, side) for number, side in enumerate(called)]
        self._called = list(called)
        self._fleet = fleet
        self._width = width

    def exchange(self, settings: CallSettings) -> Exchange | None:
        return self._exchanges[self._called.index(settings)]

    def placement(self, workshop: Workshop) -> AbstractContextManager[Placement]:
        @contextmanager
        def placed() -> Iterator[Placement]:
            placement = FarPlacement(self._fleet, workshop, self._width)
            self._exchanges[0].placement = placement
            yield placement

        return placed()


@asynccontextmanager
async def afar(
    config: RunConfig,
    called: Sequence[CallSettings],
    limits: ImageLimits,
    data: DataSpec,
    stamp: str,
    stop: Stop,
) -> AsyncIterator[Afar]:
    """A cluster as the settings ask for it, with its workers greeted as they come."""
    here = config.dask_scheduler is None and config.dask_jobqueue is None
    hello = Hello(sides=tuple(called), limits=limits, data=_shared(config, data, stamp), own=here)
    keys = tuple(settings.api_key() for settings in called)
    width = min(64, max(4, 2 * config.dask_workers)) if config.dask_workers is not None else USUAL_WIDTH
    async with cluster_of(config) as cluster, Fleet(cluster, hello, keys, stop) as fleet:
        yield Afar(fleet, called, width)


def _shared(config: RunConfig, data: DataSpec, stamp: str) -> Data | None:
    """A folder can be looked for on a worker. What comes from the hub lies in the cache of this machine, and
    to ask for it on each worker would fetch it there."""
    if not stamp or config.data is None or not Path(config.data).is_dir():
        return None
    return Data(place=config.data, spec=data, stamp=stamp)
