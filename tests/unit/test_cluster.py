"""A cluster that cannot be used is told of in one sentence, a lost worker to those who wait for it."""

from __future__ import annotations

import asyncio
import os
import pkgutil
import platform
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import PIL
import pytest
from distributed.comm import CommClosedError, connect, listen

from mmbu_async.config import build_config
from mmbu_async.endpoints.exchange import Exchanged
from mmbu_async.errors import ClusterError, ConfigError
from mmbu_async.images import ImageLimits
from mmbu_async.images.limits import UNLIMITED
from mmbu_async.model import DataSpec, Failure, FailureKind
from mmbu_async.pipeline.cluster import opening
from mmbu_async.pipeline.cluster.fleet import Crewed, Fleet, private
from mmbu_async.pipeline.cluster.link import Link, LostError
from mmbu_async.pipeline.cluster.messages import Hello, Send, Sent, heard, say
from mmbu_async.pipeline.executor import executor
from mmbu_async.pipeline.stop import Stop
from mmbu_async.version import VERSION
from tests.unit.test_endpoints_transport import free_port

LIMITS = ImageLimits(
    name="any",
    max_bytes_base64=UNLIMITED,
    max_edge=UNLIMITED,
    max_pixels=UNLIMITED,
    accepted=frozenset({"image/png"}),
    source="",
)
MADE = Exchanged(outcome=Failure(kind=FailureKind.AUTH, message="no"), total_s=0.1)


async def opened(**settings: Any) -> None:
    config = build_config({"model": "m", "base_url": "http://127.0.0.1:1/v1", **settings})
    async with executor(config, [config], LIMITS, DataSpec(hub=""), "", Stop()):
        pass


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"executor": "dask"}, "dask_workers must say how many"),
        ({"dask_jobqueue": "slurm"}, "dask_workers must say how many"),
        ({"dask_scheduler": "tcp://a:1", "dask_workers": 2}, "leave out dask_workers"),
        ({"dask_workers": 2, "dask_options": {"queue": "x"}}, "none is given"),
        ({"dask_scheduler": "head:8786"}, "tcp://HOST:8786"),
        ({"dask_scheduler": "tcp://head"}, "tcp://HOST:8786"),
        ({"dask_scheduler": "tcp://head:99999"}, "tcp://HOST:8786"),
        ({"dask_scheduler": "tcp://me:secret@head:1"}, "tcp://HOST:8786"),
        ({"dask_workers": 2, "dask_jobqueue": "slurm", "dask_options": {"password": "x"}}, "'password'"),
    ],
)
def test_what_means_no_cluster(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_config({"model": "m", **settings})


@pytest.mark.parametrize(
    ("settings", "there"),
    [
        ({}, False),
        ({"dask_workers": 2}, True),
        ({"dask_scheduler": "tcp://a:1"}, True),
        ({"executor": "local", "dask_scheduler": "tcp://a:1", "dask_workers": 2}, False),
    ],
)
def test_which_settings_mean_a_cluster(settings: dict[str, Any], there: bool) -> None:
    assert build_config({"model": "m", **settings}).on_cluster is there


# ---------------------------------------------------------------- opening


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the certificates of a cluster lie for its jobs."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


async def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "CONNECT_S", 0.3)
    address = f"tcp://127.0.0.1:{free_port()}"
    with pytest.raises(ClusterError, match="no Dask scheduler can be used at tcp") as caught:
        await opened(dask_scheduler=address)
    assert address in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_scheduler_with_tls_and_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "CONNECT_S", 0.3)
    with pytest.raises(ClusterError, match="no Dask scheduler can be used at tls"):
        await opened(dask_scheduler=f"tls://127.0.0.1:{free_port()}")


async def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("mmbu_async.pipeline.cluster")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match=r"mmbu-async\[dask\]"):
        await opened(dask_workers=2)


async def test_without_dask_jobqueue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(ConfigError, match="pip install dask-jobqueue"):
        await opened(dask_workers=2, dask_jobqueue="slurm")


async def test_without_a_batch_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ClusterError, match=r"with `sbatch` .there is no such command"):
        await opened(dask_workers=1, dask_jobqueue="slurm", dask_options={"interface": "lo"})


async def test_a_batch_system_that_takes_no_job(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = home / "sbatch"
    command.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2\nexit 1\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    with pytest.raises(ClusterError, match=r"with `sbatch` .*invalid partition"):
        await opened(dask_workers=1, dask_jobqueue="slurm", dask_options={"interface": "lo"})


async def test_an_option_that_dask_jobqueue_does_not_know() -> None:
    with pytest.raises(ConfigError, match="--dask-option"):
        await opened(dask_workers=1, dask_jobqueue="slurm", dask_options={"quue": "gpu"})


@pytest.mark.parametrize(
    ("system", "lines"),
    [
        ("slurm", ["#SBATCH -p gpu", "#SBATCH -A lab", "#SBATCH -t 02:00:00", "#SBATCH --cpus-per-task=3"]),
        ("pbs", ["#PBS -q gpu", "#PBS -A lab", "#PBS -l walltime=02:00:00", "#PBS -l select=1:ncpus=3:mem="]),
    ],
)
async def test_the_job_that_is_submitted(
    system: str, lines: list[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No batch system is at hand: what is looked at is the script that it would be given."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")
    options = {"queue": "gpu", "account": "lab", "walltime": "02:00:00", "cores": 3, "interface": "lo"}
    config = build_config({"model": "m", "dask_workers": 2, "dask_jobqueue": system, "dask_options": options})
    cluster = opening.job_cluster(config, asynchronous=True)
    script = cluster.job_script()
    for line in lines:
        assert line in script
    assert f"{sys.executable} -m distributed.cli.dask_worker " in script
    assert "--protocol tls://" in script
    assert "--no-dashboard" in script
    assert f"--tls-key {home}" in script
    assert "sk-canary" not in script


# ---------------------------------------------------------------- who fits


class AnsweringClient:
    """As much of Dask's client as asks workers for versions."""

    def __init__(self, **answers: Any) -> None:
        self._answers: dict[Any, Any] = {
            (pkgutil.resolve_name, "mmbu_async.version:VERSION"): VERSION,
            (pkgutil.resolve_name, "PIL:__version__"): PIL.__version__,
            (platform.python_version, ""): platform.python_version(),
        }
        names = {"package": 0, "pillow": 1, "python": 2}
        for name, answer in answers.items():
            self._answers[list(self._answers)[names[name]]] = answer

    async def run(
        self, function: Callable[..., Any], argument: str = "", *, workers: list[str], on_error: str
    ) -> dict[str, Any]:
        assert on_error == "return"
        return {workers[0]: self._answers[function, argument]}


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"package": "0.0.9"}, f"has mmbu-async 0.0.9, and here it is {VERSION}: install the same"),
        ({"package": ModuleNotFoundError("No module named 'mmbu_async'")}, "cannot load mmbu-async"),
        ({"pillow": "1.0"}, "has Pillow 1.0"),
        ({"python": "3.9.1"}, "has Python 3.9, and here"),
    ],
)
async def test_a_worker_that_would_not_do_the_same(answers: dict[str, Any], words: str) -> None:
    stop = Stop()
    client = AnsweringClient(**answers)
    client.nthreads = _one_worker  # type: ignore[attr-defined]
    cluster = Crewed(client=client, address="tcp://s:1", first_s=60, patience_s=60)
    async with Fleet(cluster, Hello(sides=(), limits=LIMITS, data=None, own=False), (), stop) as fleet:
        assert await fleet.pick() is None, "and the run does not wait for others"
    assert isinstance(stop.reason, ClusterError)
    assert words in str(stop.reason)
    assert "tcp://w:1" in str(stop.reason)


@pytest.mark.parametrize(
    ("address", "alone"),
    [
        ("tcp://127.0.0.1:40000", True),
        ("tcp://[::1]:40000", True),
        ("tls://10.0.0.7:40000", True),
        ("tcp://10.0.0.7:40000", False),
        ("tcp://127.example.org:40000", False),
    ],
)
def test_who_can_listen_on_the_way_to_a_worker(address: str, alone: bool) -> None:
    """A key that is sent where somebody can is warned of."""
    assert private(address) is alone


async def _one_worker() -> dict[str, int]:
    return {"tcp://w:1": 1}


# ---------------------------------------------------------------- one worker


@asynccontextmanager
async def linked(worker: Callable[[Any], Any]) -> AsyncIterator[Link]:
    """A link to a worker that does this with its end of the connection."""

    async def serve(comm: Any) -> None:
        try:
            await worker(comm)
        except CommClosedError:
            pass
        finally:
            comm.abort()

    async with listen("inproc://", serve) as listener:
        link = Link("inproc://w", await connect(listener.contact_address), sees_data=False)
        running = asyncio.create_task(link.run())
        yield link
        link.hang_up()
        await running


async def test_answers_find_those_who_asked() -> None:
    async def worker(comm: Any) -> None:
        asked: list[Send] = []
        while len(asked) < 3:
            asked += await heard(comm)
        for send in reversed(asked):
            failure = Failure(kind=FailureKind.AUTH, message=str(send.side))
            await say(comm, [Sent(ask=send.ask, made=Exchanged(outcome=failure, total_s=0.1))])
        await heard(comm)

    async with linked(worker) as link:
        made = await asyncio.gather(*(link.send(side, b"x") for side in range(3)))
        assert link.load == 0
    assert [one.outcome.message for one in made if isinstance(one.outcome, Failure)] == ["0", "1", "2"]


async def test_a_worker_that_goes_after_it_was_told() -> None:
    async def worker(comm: Any) -> None:
        await heard(comm)

    async with linked(worker) as link:
        with pytest.raises(LostError) as caught:
            await link.send(0, b"x")
        assert caught.value.told
        with pytest.raises(LostError) as again:
            await link.send(0, b"x")
        assert not again.value.told
        assert link.load == 0


async def test_a_worker_that_goes_before_it_was_told() -> None:
    async def worker(comm: Any) -> None:
        await asyncio.Event().wait()

    async with linked(worker) as link:
        asked = asyncio.create_task(link.send(0, b"x"))
        # The question waits to be written until the loop comes round again.
        await asyncio.sleep(0)
        assert link.load == 1
        link.hang_up()
        with pytest.raises(LostError) as caught:
            await asked
    assert not caught.value.told
