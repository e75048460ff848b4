"""From settings to a run that can be worked on: dataset registered, run found or made, rows selected."""

from __future__ import annotations

import hashlib
import re
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from mmbu_async import judging, tasks
from mmbu_async.config import CLUSTER, RunConfig, build_config
from mmbu_async.errors import ConfigError, RunChangedError, RunNotFoundError
from mmbu_async.images import ImageLimits, find_limits
from mmbu_async.model import Answer, Benchmark, Json, JudgeItem, Prompt
from mmbu_async.pipeline.identity import Identity, canonical, differences, run_identity
from mmbu_async.pipeline.judges import find_judges, judging_changes
from mmbu_async.pipeline.selecting import check_columns, keeper
from mmbu_async.sources import Source, open_data, samples
from mmbu_async.store import DatasetRecord, LeaseOwner, RunRecord, Store
from mmbu_async.tasks.custom import from_toml
from mmbu_async.tasks.forms import Form
from mmbu_async.version import VERSION

SHOWN_ROWS = 10
"""Changed rows that an error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a benchmark's rows are asked, read, judged and scored. Needs no data."""

    benchmark: Benchmark
    fill: Callable[[JudgeItem], Prompt]
    read_verdict: Callable[[str], bool | None]
    judge_prompt_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a run needs beside its settings: rules, data, image limits."""

    config: RunConfig
    rules: Rules
    source: Source
    limits: ImageLimits


def rules_of(config: RunConfig) -> Rules:
    """Raises ConfigError for a benchmark that does not exist."""
    form = Form(shuffle=config.shuffle_options, circular=config.circular)
    benchmark = load_benchmark(config.benchmark, form)
    judge = judging.load(benchmark.judge)
    return Rules(
        benchmark=benchmark,
        fill=judge.fill,
        read_verdict=judge.read_verdict,
        judge_prompt_sha256=judge.sha256,
    )


def load_benchmark(name: str, form: Form) -> Benchmark:
    """The benchmark of that name, or the one that a TOML file of that name describes."""
    if name.endswith(".toml"):
        return from_toml(_description(name), name, form)
    try:
        return tasks.load(name, form)
    except ConfigError as error:
        if Path(f"{name}.toml").is_file():
            raise ConfigError(
                f"there is no benchmark '{name}'; did you mean the file {name}.toml?"
            ) from error
        raise


def _description(name: str) -> str:
    try:
        return Path(name).expanduser().read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(
            f"{name}: there is no such file, and it describes the benchmark: correct its name; if a run was "
            "begun with it, put it back, or give `mmbu run` its new place and the run's name (--name)."
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{name}, line {line}: is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"{name}: the benchmark's file cannot be read ({error.strerror}).") from None


def lay_out(config: RunConfig) -> Bench:
    """Open what the configuration names. Raises ConfigError or DataError."""
    rules = rules_of(config)
    return Bench(
        config=config,
        rules=rules,
        source=open_data(config.data, rules.benchmark.data),
        limits=find_limits(config.endpoint, config.host, config.image_limits),
    )


def with_absolute_paths(config: RunConfig) -> RunConfig:
    """So that a resume from another folder finds the same data."""
    changes: dict[str, Json] = {"store": config.store.expanduser().absolute()}
    if config.data is not None and (folder := Path(config.data).expanduser()).is_dir():
        changes["data"] = str(folder.absolute())
    if config.benchmark.endswith(".toml"):
        changes["benchmark"] = str(Path(config.benchmark).expanduser().absolute())
    if config.image_limits is not None:
        changes["image_limits"] = config.image_limits.expanduser().absolute()
    return config.model_copy(update=changes)


def register(store: Store, bench: Bench) -> DatasetRecord:
    """The dataset in the store. Every row is validated the first time; later its stamp is enough."""
    benchmark, source = bench.rules.benchmark, bench.source
    stamp = _stamp(source, benchmark)
    known = store.find_dataset(benchmark.name, stamp=stamp)
    if known is not None:
        return known
    rows = samples(source, benchmark)
    return store.register_dataset(benchmark.name, source.description, stamp, rows, now=time.time())


def _stamp(source: Source, benchmark: Benchmark) -> str:
    """The source's mark, and what decides which samples a row becomes: a description in a file can change,
    and so can this package."""
    rules = canonical({"prompts": dict(benchmark.prompt_hashes()), "package": VERSION})
    return hashlib.sha256(f"{source.stamp}\n{rules}".encode()).hexdigest()


def find_or_make_run(store: Store, bench: Bench, *, new_run: bool) -> RunRecord:
    """The run that the configuration means: an existing one of that name, or a new one.

    Raises RunChangedError where a run of that name exists with settings that give other answers.
    """
    config = bench.config
    names = {run.name for run in store.runs()}
    # An earlier version may have made a run of another name, which can be gone on with.
    if config.name is not None and config.name not in names:
        check_name(config.name)
    dataset = register(store, bench)
    identity = run_identity(
        config,
        bench.rules.benchmark,
        fingerprint=dataset.fingerprint,
        image_policy=_image_policy(bench.limits),
    )
    name = run_name(config, bench.rules)
    if name in names and not new_run:
        run = store.run(name)
        _check_content(store, run, dataset)
        _check_same(run, identity)
        _check_judging(run, config, bench.rules)
        return run
    if name in names:
        name = next(free for n in range(2, len(names) + 3) if (free := f"{name}-{n}") not in names)
    judges = find_judges(store, config, bench.rules.judge_prompt_sha256)
    return store.create_run(
        name=name,
        benchmark=bench.rules.benchmark.name,
        dataset_id=dataset.id,
        model=config.model,
        endpoint=config.endpoint,
        host=config.host,
        identity=identity,
        config=stored_config(config.model_copy(update={"name": name})),
        judge_id=judges.deciding,
        package_version=VERSION,
        now=time.time(),
    )


def run_name(config: RunConfig, rules: Rules) -> str:
    """The name that was given, or is made for who gives none."""
    return config.name or f"{rules.benchmark.name}-{_slug(config.model)}"


def check_name(name: str) -> None:
    """Raises ConfigError for the name of a new run that no command could be told and no table could show."""
    if not name.strip():
        problem = "holds no character that can be seen"
    elif any(unicodedata.category(character) in _UNSEEN for character in name):
        problem = "holds a line end or another control character"
    elif name in (".", ".."):
        problem = "means a folder wherever it becomes part of a file's name"
    else:
        return
    raise ConfigError(f"--name {name!r}: {problem}; give the run another name.")


_UNSEEN = frozenset({"Cc", "Zl", "Zp", "Cs"})
"""Unicode's categories of control characters, separators of lines and of paragraphs, half characters."""


def select_rows(store: Store, run: RunRecord, bench: Bench) -> int:
    """Make the configured rows part of the run; a larger limit on resume adds some.

    Raises RunChangedError where the run is about other rows, and ConfigError where no row is meant.
    """
    config = bench.config
    _check_selection(run, store.counts(run.id).selected, config)
    keep = keeper(config.task, config.where)
    if config.where:
        first = next(bench.source.rows(), None)
        check_columns(config.where, list(first.fields) if first is not None else [])
    selected = store.select(run.id, keep, config.limit)
    if selected == 0:
        flags = [f"--task {task}" for task in config.task]
        flags += [f"--where {column}={value}" for column, value in config.where.items()]
        raise ConfigError(f"no row of {run.dataset.source} matches {' '.join(flags)}; loosen that.")
    return selected


def needs_judge(store: Store, run: RunRecord, rules: Rules) -> bool:
    """Whether any selected row is scored by a judge: without one, no key for it is asked for."""
    probe = Answer(text="probe", how="tag")
    return any(
        rules.benchmark.judge_item(sample, probe) is not None for sample in store.route_samples(run.id)
    )


def config_of(run: RunRecord, store: Path) -> RunConfig:
    """The settings that a stored run was started with."""
    config = build_config(run.config, f"run '{run.name}' in {store}")
    return config.model_copy(update={"store": store, "name": run.name})


def stored_config(config: RunConfig) -> dict[str, Json]:
    """All settings as JSON; keys are not among them, nor what holds for one session alone."""
    return config.model_dump(mode="json", exclude={"store", *CLUSTER})


def open_existing(path: Path) -> Store:
    """A store that must be there already."""
    if not path.exists():
        raise RunNotFoundError(
            f"{path}: there is no store here; name yours with --store, or start a run first."
        )
    return Store.open(path, create=False)


@contextmanager
def leased(store: Store, run: RunRecord, owner: LeaseOwner) -> Iterator[None]:
    """Keep other processes off the run."""
    store.acquire_lease(run.id, owner, time.time())
    try:
        yield
    finally:
        store.release_lease(run.id, owner)


def _check_content(store: Store, run: RunRecord, dataset: DatasetRecord) -> None:
    if dataset.id == run.dataset.id:
        return
    rows = store.changed_rows(run.dataset.id, dataset.id)
    listed = ", ".join(rows[:SHOWN_ROWS]) + (
        f" and {len(rows) - SHOWN_ROWS:,} more" if len(rows) > SHOWN_ROWS else ""
    )
    raise RunChangedError(
        f"run '{run.name}' was made with other dataset content than {dataset.source} has now "
        f"(rows {listed}): put the earlier data back to continue it, or use `mmbu run --new-run` to start "
        "another.",
        tuple(f"dataset row {row}" for row in rows),
    )


def _check_same(run: RunRecord, identity: Identity) -> None:
    changes = differences(run.identity, identity)
    if changes:
        raise RunChangedError(
            f"run '{run.name}' was made with other settings ({'; '.join(changes)}): use the earlier ones to "
            "continue it, or `mmbu run --new-run` to start another.",
            changes,
        )


def _check_judging(run: RunRecord, config: RunConfig, rules: Rules) -> None:
    changes = judging_changes(run, config, rules.judge_prompt_sha256)
    if changes:
        raise RunChangedError(
            f"run '{run.name}' is judged with other settings ({'; '.join(changes)}): use the earlier "
            f"ones to continue it, or `mmbu rejudge {run.name}` for another judge's verdicts.",
            tuple(f"judge.{change}" for change in changes),
        )


def check_same_judge(run: RunRecord, config: RunConfig, rules: Rules) -> None:
    """Rows without a verdict can be asked about alone only where the others have one of the same judge."""
    changes = judging_changes(run, config, rules.judge_prompt_sha256)
    if changes:
        raise ConfigError(
            f"--failed asks the judge of run '{run.name}' again, and these settings make another one "
            f"({'; '.join(changes)}): leave out --failed, so that it is asked about every row."
        )


def _check_selection(run: RunRecord, selected: int, config: RunConfig) -> None:
    """A report names the selection, and rows once paid for stay in a run: only more of the same may come."""
    if not selected:
        return
    before = {"task": run.config.get("task") or [], "where": run.config.get("where") or {}}
    changes = differences(before, {"task": list(config.task), "where": dict(config.where)})
    if changes:
        raise RunChangedError(
            f"run '{run.name}' is about other rows ({'; '.join(changes)}): select the earlier ones to "
            "continue it, or use `mmbu run --new-run` to start another.",
            changes,
        )
    if config.limit is not None and config.limit < selected:
        raise RunChangedError(
            f"run '{run.name}' has {selected:,} rows, and none is taken out again: leave out --limit "
            f"{config.limit}, or use `mmbu run --new-run` to start another.",
            (f"limit: {selected} -> {config.limit}",),
        )


def _image_policy(limits: ImageLimits) -> dict[str, Json]:
    """What decides the bytes that are sent: part of a run's identity."""
    policy = {key: value for key, value in asdict(limits).items() if key not in ("name", "source")}
    policy["accepted"] = sorted(limits.accepted)
    return policy


def _slug(model: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", model).strip("-").lower() or "model"
