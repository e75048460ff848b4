"""Who does the work of a session: this process, or the workers of a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Protocol

from mmbu_async.config import CallSettings, RunConfig
from mmbu_async.endpoints.exchange import Exchange
from mmbu_async.errors import ConfigError
from mmbu_async.images import ImageLimits
from mmbu_async.model import DataSpec
from mmbu_async.pipeline.placement import Placement, Threads, Workshop
from mmbu_async.pipeline.stop import Stop


class Executor(Protocol):
    """Makes calls and prepares images. Limits, retries, money and the store are not its own."""

    def exchange(self, settings: CallSettings) -> Exchange | None:
        """How calls with these settings are made; None: by the client itself."""

    def placement(self, workshop: Workshop) -> AbstractContextManager[Placement]:
        """Where images are prepared."""


class Here:
    """This process, and a few threads."""

    def exchange(self, settings: CallSettings) -> Exchange | None:
        return None

    def placement(self, workshop: Workshop) -> AbstractContextManager[Placement]:
        return Threads(workshop)


@asynccontextmanager
async def executor(
    config: RunConfig,
    called: Sequence[CallSettings],
    limits: ImageLimits,
    data: DataSpec,
    stamp: str,
    stop: Stop,
) -> AsyncIterator[Executor]:
    """As the settings ask. `called`: the model under test, and every judge. `stamp`: of the data."""
    if not config.on_cluster:
        yield Here()
        return
    try:
        from mmbu_async.pipeline.cluster.afar import afar
    except ImportError as error:
        raise ConfigError(
            "--executor dask needs the package distributed, which is not installed: "
            "`pip install 'mmbu-async[dask]'`."
        ) from error
    async with afar(config, called, limits, data, stamp, stop) as found:
        yield found
