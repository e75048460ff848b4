"""The settings of one run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator

from mmbu_async.config.kinds import BATCH_ENDPOINTS
from mmbu_async.config.secrets import secret_in
from mmbu_async.config.settings import CallSettings, JudgeConfig, PanelJudge, plain_json
from mmbu_async.model import Json

MAJORITY = "majority"
DECIDERS = ("judge", MAJORITY)
"""Values of `verdict` that are no judge's name."""
_CLUSTER_PARTS = ("scheduler", "workers", "jobqueue", "options")
CLUSTER = ("executor", *(f"dask_{part}" for part in _CLUSTER_PARTS))
"""Settings that say which machines work. Not kept with a run: it can go on elsewhere."""


class RunConfig(CallSettings):
    """One run: one model on one benchmark with fixed settings, and the judge that reads its answers."""

    benchmark: str = "mmbu-public"
    """Name of the benchmark."""
    name: str | None = None
    """Name of the run; None: made from benchmark and model."""
    store: Path = Path("mmbu.sqlite")
    """The SQLite file that holds the runs."""
    data: str | None = None
    """A local folder, or another hub id; None: the benchmark's own hub id."""
    limit: int | None = Field(default=None, ge=1)
    """Only the first rows of the selection."""
    task: tuple[str, ...] = ()
    """Only rows whose task starts with, or has a topic equal to, one of these."""
    where: dict[str, str] = Field(default_factory=dict)
    """Only rows whose column has this value."""
    shuffle_options: int | None = None
    """Seed by which multiple-choice options are shuffled; None: as the rows have them."""
    circular: bool = False
    """Ask each multiple-choice row in every rotation of its options; right only when all are."""
    max_cost: float | None = Field(default=None, gt=0)
    """US dollars, model and judge together, after which no further call is started."""
    judge: JudgeConfig = JudgeConfig()
    panel: tuple[PanelJudge, ...] = Field(default=(), validate_default=True)
    """Further judges, each a `[[panel]]` table with the judge's settings; all are asked about every row."""
    verdict: str = "judge"
    """Whose word makes the score: `judge`, the `majority` of judge and panel, or one of them by name."""
    judge_coverage: float = Field(default=1.0, ge=0, le=1)
    """Share of the rows that need a judge which must have a usable verdict, else the command exits with 3.
    From it on, unjudged rows alone are no failure, and the report still says incomplete."""
    synchronous: Literal["full", "normal"] = "full"
    """SQLite's durability: `full` survives a power cut, `normal` only the end of the process."""
    image_limits: Path | None = None
    """A TOML file laid over the shipped table of what endpoints accept in images."""
    preflight: bool = True
    """Send one row to model and judge before the rest."""
    batch_poll: float = Field(default=60.0, gt=0)
    """Seconds between two looks at batches that are out, at most; the first looks come sooner."""
    dask_scheduler: str | None = None
    """Address of the scheduler of a running Dask cluster, tcp://HOST:PORT or tls://HOST:PORT."""
    dask_workers: int | None = Field(default=None, ge=1, le=1000)
    """Dask workers to start: processes of this machine, or jobs with `dask_jobqueue`."""
    dask_jobqueue: Literal["slurm", "pbs"] | None = None
    """Batch system whose jobs the workers are, `slurm` or `pbs`, through the package dask-jobqueue."""
    dask_options: dict[str, Json] = Field(default_factory=dict)
    """Given to dask-jobqueue's cluster as they are: queue, account, walltime, memory, interface and more."""
    executor: Literal["local", "dask"] | None = Field(default=None, validate_default=True)
    """Who makes calls and prepares images: `local` this process, `dask` the workers of a Dask cluster; None:
    `dask` where a `dask_...` setting says which."""

    @field_validator("where", mode="before")
    @classmethod
    def _texts(cls, value: Any) -> Any:
        """A settings file may write numbers and truth values as such."""
        if not isinstance(value, Mapping):
            return value
        return {
            key: str(item) if isinstance(item, bool | int | float) else item for key, item in value.items()
        }

    @field_validator("task", mode="before")
    @classmethod
    def _one_task(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("panel", mode="before")
    @classmethod
    def _any_judges(cls, value: Any) -> Any:
        """From Python, judges of a panel may be given as what they are."""
        if isinstance(value, Mapping):
            raise ValueError("is a single table; write [[panel]] above each judge, not [panel]")
        if not isinstance(value, list | tuple):
            raise ValueError("is no list of judges; write a [[panel]] table for each")
        return tuple(item.model_dump() if isinstance(item, JudgeConfig) else item for item in value)

    @field_validator("panel")
    @classmethod
    def _distinct(cls, panel: tuple[PanelJudge, ...], info: ValidationInfo) -> tuple[PanelJudge, ...]:
        judge = info.data.get("judge")
        called: dict[str, str] = {}
        judges = [("the run's own judge", judge)] if judge else []
        judges += [(f"[[panel]] table {number}", one) for number, one in enumerate(panel, 1)]
        for who, one in judges:
            label = one.label
            if label in DECIDERS:
                raise ValueError(f"a judge cannot be called '{label}', which is a value of `verdict`")
            if label in called:
                raise ValueError(
                    f"two judges are called '{label}', {called[label]} and {who}; give one a `name` "
                    "of its own"
                )
            called[label] = who
        return panel

    @field_validator("verdict")
    @classmethod
    def _decides(cls, verdict: str, info: ValidationInfo) -> str:
        judge, panel = info.data.get("judge"), info.data.get("panel")
        if judge is None or panel is None:
            # One of them is wrong, which is said in its place.
            return verdict
        labels = [one.label for one in (judge, *panel)]
        if verdict == MAJORITY and not panel:
            raise ValueError("needs further judges: one has no majority")
        if verdict not in (*DECIDERS, *labels):
            raise ValueError(
                f"must be {', '.join(map(repr, DECIDERS))} or a judge's name ({', '.join(labels)})"
            )
        return verdict

    @field_validator("dask_scheduler")
    @classmethod
    def _scheduler(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value.strip())
        try:
            complete = parts.scheme in ("tcp", "tls") and parts.hostname and parts.port
        except ValueError:
            complete = False
        if not complete or parts.path.strip("/") or parts.query or "@" in parts.netloc:
            raise ValueError("must be a scheduler's address like tcp://HOST:8786 or tls://HOST:8786")
        return f"{parts.scheme}://{parts.netloc}"

    @field_validator("dask_options")
    @classmethod
    def _options(cls, value: dict[str, Json]) -> dict[str, Json]:
        if secret := secret_in(value):
            raise ValueError(f"must not hold '{secret}'; use the environment")
        return {name: plain_json(item, name) for name, item in value.items()}

    @field_validator("executor")
    @classmethod
    def _whole(cls, executor: str | None, info: ValidationInfo) -> str | None:
        """Which cluster is meant, if one is."""
        given = {name: info.data.get(name) for name in CLUSTER if name != "executor"}
        scheduler, workers, jobs, options = (given[f"dask_{name}"] for name in _CLUSTER_PARTS)
        if executor == "local":
            return executor
        if options and jobs is None:
            raise ValueError("dask_options are for a dask_jobqueue, and none is given")
        if scheduler is not None and (workers is not None or jobs is not None):
            raise ValueError(
                "dask_scheduler names a cluster that runs: leave out dask_workers and dask_jobqueue"
            )
        if workers is None and (jobs is not None or (executor == "dask" and scheduler is None)):
            raise ValueError(
                "dask_workers must say how many to start, or dask_scheduler which cluster to use"
            )
        return executor

    @property
    def on_cluster(self) -> bool:
        """Whether the workers of a Dask cluster do the work."""
        if self.executor is None:
            return self.dask_scheduler is not None or self.dask_workers is not None
        return self.executor == "dask"

    @property
    def judges(self) -> tuple[JudgeConfig, ...]:
        """All that are asked about a row, the judge first. They ask in batches where the run does, can, and
        nothing else was said."""
        return tuple(
            one.model_copy(update={"batch": one.endpoint in BATCH_ENDPOINTS})
            if self.batch and one.batch is None
            else one
            for one in (self.judge, *self.panel)
        )
