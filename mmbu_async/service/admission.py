"""Whether a job can be taken: everything that can be found wrong before it waits in the queue.

Synchronous, for threads: rows of a data set that is new to the store are validated here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from mmbu_async.api import REJUDGE_SETTINGS
from mmbu_async.config import RunConfig, build_config
from mmbu_async.errors import ConfigError
from mmbu_async.model import Json
from mmbu_async.pipeline.changing import with_changes
from mmbu_async.pipeline.opening import (
    check_name,
    check_same_judge,
    config_of,
    find_or_make_run,
    lay_out,
    needs_judge,
    open_existing,
    rules_of,
    run_name,
    select_rows,
    with_absolute_paths,
)
from mmbu_async.service.naming import Names
from mmbu_async.store import Store

ORIGIN = "the request"
"""Where settings came from, for what is wrong with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The door of one service."""

    names: Names
    store: Path

    def config(self, settings: Mapping[str, Json]) -> RunConfig:
        """The settings of a new run. Raises ConfigError."""
        return with_absolute_paths(build_config(self.names.whole(settings), ORIGIN))

    def run(self, settings: Mapping[str, Json], *, new_run: bool, taken: Collection[str]) -> str:
        """The name of the run, which is in the store then, unless its rows are still to be fetched from the
        hub. `taken`: names of runs that may not be in the store yet."""
        config = self.config(settings)
        rules = rules_of(config)
        if config.data is None:
            return self._later(config, run_name(config, rules), taken if new_run else None)
        bench = lay_out(config)
        with Store.open(self.store, synchronous=config.synchronous) as store:
            run = find_or_make_run(store, bench, new_run=new_run)
            select_rows(store, run, bench)
            self._reachable(config, judged=needs_judge(store, run, rules))
        return run.name

    def resume(self, run: str, changes: Mapping[str, Json]) -> None:
        """Raises what keeps the run from going on with these changes."""
        with open_existing(self.store) as store:
            found = store.run(run)
            config = with_changes(config_of(found, self.store), self.names.changes(changes))
            config = with_absolute_paths(config)
            if config.data is not None:
                bench = lay_out(config)
                select_rows(store, find_or_make_run(store, bench, new_run=False), bench)
            self._reachable(config, judged=needs_judge(store, found, rules_of(config)))

    def rejudge(self, run: str, changes: Mapping[str, Json], *, failed: bool) -> None:
        """Raises what keeps the run from being judged so."""
        if idle := sorted(set(changes) - REJUDGE_SETTINGS):
            raise ConfigError(
                f"a rejudge asks the judge alone, and {', '.join(idle)} would mean nothing to it."
            )
        with open_existing(self.store) as store:
            found = store.run(run)
            config = with_changes(config_of(found, self.store), self.names.changes(changes))
            if failed:
                check_same_judge(found, config, rules_of(config))
            self._reachable(config, judged=True, asked=False)

    def _later(self, config: RunConfig, name: str, taken: Collection[str] | None) -> str:
        """The name of a run whose rows are fetched when its turn comes; a free one beside those taken."""
        self._reachable(config, judged=False)
        check_name(name)
        if taken is None:
            return name
        with Store.open(self.store) as store:
            known = {run.name for run in store.runs()}.union(taken)
        return (
            name
            if name not in known
            else next(free for n in count(2) if (free := f"{name}-{n}") not in known)
        )

    def _reachable(self, config: RunConfig, *, judged: bool, asked: bool = True) -> None:
        """Raises ConfigError for an endpoint that is none of the service, MissingKeyError without a key."""
        self.names.check(config, judged=judged, asked=asked)
        if asked:
            config.api_key()
        for judge in config.judges if judged else ():
            judge.api_key()
