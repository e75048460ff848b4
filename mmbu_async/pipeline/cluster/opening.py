"""The cluster itself: one that runs already, one of batch jobs, or one on this machine alone."""

from __future__ import annotations

import asyncio
import logging
import math
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster, Security

from mmbu_async.config import RunConfig
from mmbu_async.errors import ClusterError, ConfigError
from mmbu_async.model import Json
from mmbu_async.pipeline.cluster.fleet import Crewed

CONNECT_S = 5
"""Seconds in which a scheduler must answer."""
FIRST_S, PATIENCE_S = 60.0, 60.0
"""Seconds in which a worker must come, and without any after which a run ends: one that fell is started
again within a few."""
LOOPBACK = "127.0.0.1"
BATCH_SYSTEMS: Mapping[str, tuple[str, str]] = {
    "slurm": ("SLURMCluster", "sbatch"),
    "pbs": ("PBSCluster", "qsub"),
}
"""Class of dask-jobqueue, and the command that submits a job."""


@asynccontextmanager
async def cluster_of(config: RunConfig) -> AsyncIterator[Crewed]:
    """As the settings ask. Raises ConfigError or ClusterError."""
    if config.dask_scheduler is not None:
        async with _client(config.dask_scheduler) as client:
            yield _crewed(client, config.dask_scheduler, FIRST_S, PATIENCE_S)
        return
    jobs = config.dask_jobqueue is not None
    async with _jobs(config) if jobs else _local(config) as cluster, _client(cluster) as client:
        # Jobs wait in a queue for as long as it takes, the first as well as those that replace others.
        wait_s = (math.inf, math.inf) if jobs else (FIRST_S, PATIENCE_S)
        yield _crewed(client, cluster.scheduler_address, *wait_s)


def _crewed(client: Client, address: str, first_s: float, patience_s: float) -> Crewed:
    return Crewed(client=client, address=address, first_s=first_s, patience_s=patience_s)


@asynccontextmanager
async def _client(address: Any) -> AsyncIterator[Client]:
    try:
        client = await Client(
            address, asynchronous=True, set_as_default=False, timeout=CONNECT_S, name="mmbu-async"
        )
    except (OSError, TimeoutError, TypeError, ValueError, RuntimeError) as error:
        raise ClusterError(
            f"no Dask scheduler can be used at {address} ({_line(error)}): start one with `dask scheduler`, "
            "correct --dask-scheduler, or leave it out to work on this machine alone."
        ) from error
    try:
        yield client
    finally:
        await client.close(timeout=CONNECT_S)


@asynccontextmanager
async def _local(config: RunConfig) -> AsyncIterator[Any]:
    """Processes of this machine, which listen to this machine alone, and to nobody without our certificate:
    a port on loopback is open to every user of a shared machine."""
    assert config.dask_workers is not None  # noqa: S101 - checked with the settings
    async with LocalCluster(
        n_workers=config.dask_workers,
        threads_per_worker=1,
        host=LOOPBACK,
        protocol="tls://",
        security=temporary_security(),
        dashboard_address=None,
        # What is left of its pages, without any of a dashboard, is on loopback too, at any free port.
        scheduler_kwargs={"dashboard_address": f"{LOOPBACK}:0"},
        memory_limit=0,
        # Workers and scheduler complain of each other when they end; what matters is told of here.
        silence_logs=logging.CRITICAL,
        asynchronous=True,
    ) as cluster:
        yield cluster


@asynccontextmanager
async def _jobs(config: RunConfig) -> AsyncIterator[Any]:
    """Jobs of a batch system, one worker each."""
    assert config.dask_jobqueue is not None  # noqa: S101 - or there was no reason to come here
    command = BATCH_SYSTEMS[config.dask_jobqueue][1]
    cluster = job_cluster(config, asynchronous=True)
    try:
        if shutil.which(command) is None:
            raise FileNotFoundError("there is no such command")
        await cluster
        # Dask only logs that a job was not taken. To wait for it tries once more, and tells. No name is given
        # to a job here: the cluster's end takes one that is still known for one that still runs.
        await asyncio.gather(*cluster.workers.values())
    except (OSError, RuntimeError) as error:
        with suppress(AssertionError):
            # Dask closes all, and is then surprised at jobs that never began.
            await cluster.close()
        raise ClusterError(
            f"no job can be submitted with `{command}` ({_line(error)}): start the run where `{command}` "
            "works, or correct --dask-option."
        ) from error
    try:
        yield cluster
    finally:
        await cluster.close()


def job_cluster(config: RunConfig, *, asynchronous: bool) -> Any:
    """A cluster of dask-jobqueue, not started yet; `job_script()` of it is what will be submitted."""
    kind = config.dask_jobqueue or ""
    try:
        made = getattr(import_module("dask_jobqueue"), BATCH_SYSTEMS[kind][0])
    except ImportError as error:
        raise ConfigError(
            "--dask-jobqueue needs the package dask-jobqueue, which is not installed: "
            "`pip install dask-jobqueue` beside mmbu-async[dask]."
        ) from error
    options = job_options(config.dask_options)
    if options["protocol"] == "tls://" and "security" not in options:
        options["security"] = temporary_security()
    try:
        return made(n_workers=config.dask_workers, asynchronous=asynchronous, **options)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"--dask-option: dask-jobqueue does not take that ({_line(error)}).") from error


def job_options(given: Mapping[str, Json]) -> dict[str, Any]:
    """What is asked for, over what a worker of ours needs: a core and little memory, this interpreter, no
    page of its own, nobody else at its door, and a folder that its machine sees as well, for certificates."""
    return {
        "cores": 1,
        "processes": 1,
        "memory": "2GB",
        "python": sys.executable,
        "protocol": "tls://",
        "shared_temp_directory": str(Path.home()),
        "worker_extra_args": ["--no-dashboard"],
        "scheduler_options": {"dashboard": False, "dashboard_address": f"{LOOPBACK}:0"},
        **given,
    }


def temporary_security() -> Security:
    """Certificates that live as long as the cluster."""
    try:
        return Security.temporary()
    except ImportError as error:
        raise ConfigError(
            "a cluster of one's own speaks TLS, for which the package cryptography is missing: "
            "`pip install 'mmbu-async[dask]'`."
        ) from error


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
