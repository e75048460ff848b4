"""Asking the process that works on a run for something, from another one, through the store."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mmbu_async.config import RunConfig
from mmbu_async.errors import ConfigError
from mmbu_async.model import Json
from mmbu_async.pipeline.opening import config_of, stored_config
from mmbu_async.pipeline.steering import JUDGE, MODEL, said, with_limits
from mmbu_async.store import Lease, Limits, RunRecord, Store

ANSWER_S = 10.0
"""How long an answer is waited for: the other process looks about once a second."""
GLANCE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What became of a request."""

    limits: tuple[str, ...]
    """Of each side of the run, in words, as they are now."""
    process: Lease | None
    """Who works on the run; None: nobody."""
    heeded: bool
    """Whether that process has done it."""


def ask_limits(store: Store, run: RunRecord, limits: Limits) -> Asked:
    """Keep limits with the run's settings, and let the process at work keep to them at once.

    Without any, says those that hold. Raises ConfigError for a limit that cannot be or a judge that is none.
    """
    process = _process(store, run)
    names = _sides(store, run, process)
    for side in limits:
        if side not in names:
            judges = ", ".join(repr(name) for name in names if name not in (MODEL, JUDGE))
            raise ConfigError(f"--of {side}: run '{run.name}' has no judge of this name; it has {judges}.")
    before = config_of(run, store.path)
    # What is wrong with a limit is said before anything is asked.
    settings = with_limits(before, limits)
    heeded = False
    if any(limits.values()):
        number = store.ask(
            run.id, limits=limits, settle=lambda now: _settled(now, run, store.path, limits), now=time.time()
        )
        heeded = process is not None and _wait(store, run, number)
    words = [said("model", settings), *(said(f"judge {judge.label}", judge) for judge in settings.judges)]
    return Asked(limits=tuple(words), process=process, heeded=heeded)


def ask_pause(store: Store, run: RunRecord, *, paused: bool) -> Asked:
    """Let the process at work start no further call, or go on. Raises ConfigError where nobody is at work."""
    process = _process(store, run)
    if process is None:
        nothing = "there is nothing to pause" if paused else "there is nothing that could go on"
        raise ConfigError(
            f"no process is at work on run '{run.name}', so {nothing}; `mmbu resume {run.name}` continues it."
        )
    number = store.ask(run.id, paused=paused, now=time.time())
    return Asked(limits=(), process=process, heeded=_wait(store, run, number))


def _process(store: Store, run: RunRecord) -> Lease | None:
    leases = store.leases(time.time())
    return next((lease for lease in leases if lease.run_id == run.id and lease.alive), None)


def _sides(store: Store, run: RunRecord, process: Lease | None) -> list[str]:
    """The run's, and those of the session at work: a rejudge may have other judges."""
    configs = [config_of(run, store.path)]
    sessions = store.sessions(run.id)
    if process is not None and sessions:
        configs.append(_config(sessions[-1].config, run, store.path))
    labels = [judge.label for config in configs for judge in config.judges]
    return list(dict.fromkeys([MODEL, JUDGE, *labels]))


def _settled(now: Mapping[str, Json], run: RunRecord, store: Path, limits: Limits) -> Mapping[str, Json]:
    """The settings of the run as they are in the store now, with these limits."""
    return stored_config(with_limits(_config(now, run, store), limits))


def _config(settings: Mapping[str, Json], run: RunRecord, store: Path) -> RunConfig:
    return config_of(replace(run, config=settings), store)


def _wait(store: Store, run: RunRecord, number: int) -> bool:
    """Whether the other process does it while we wait."""
    until = time.monotonic() + ANSWER_S
    while store.control(run.id).seen < number:
        if time.monotonic() > until or _process(store, run) is None:
            return store.control(run.id).seen >= number
        time.sleep(GLANCE_S)
    return True
