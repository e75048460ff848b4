"""From what users of the service may name to the settings of a run.

They name endpoints, data sets and benchmarks of the service. A path, an address, the name of a variable or a
machine is never theirs to say: with an address of their own they would be sent the key, with a variable's
name they would read the environment.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from mmbu_async import tasks
from mmbu_async.config import CLUSTER, CallSettings, JudgeConfig, RunConfig
from mmbu_async.endpoints.shared import KeyLimits
from mmbu_async.errors import ConfigError
from mmbu_async.model import Json
from mmbu_async.pipeline.steering import LIMITS, MODEL
from mmbu_async.service.settings import EndpointSettings, ServiceConfig
from mmbu_async.store import Limits
from mmbu_async.tasks.plug_ins import offered

REFUSED = frozenset({"store", "base_url", "api_key_env", "image_limits", *CLUSTER})
"""Settings that only who starts the service may make."""


class Names:
    """What one service's users may name."""

    def __init__(self, config: ServiceConfig) -> None:
        self._config = config
        self._endpoints = {one.name: one for one in config.endpoint}

    def whole(self, settings: Mapping[str, Json]) -> dict[str, Json]:
        """The settings of a new run, as a settings file would hold them. Raises ConfigError."""
        found = self._plain(settings)
        found |= {"store": self._config.store, "benchmark": self._benchmark(found.get("benchmark"))}
        self._reach(found, "", RunConfig)
        judge = found.setdefault("judge", {})
        # A benchmark that needs no judge needs no endpoint for one: see `check`.
        if self._fitting(judge, JudgeConfig) is not None or judge.get("endpoint") is not None:
            self._reach(judge, "judge.", JudgeConfig)
        for number, table in enumerate(found.get("panel", ()), 1):
            self._reach(table, f"panel.{number}.", JudgeConfig)
        return found

    def changes(self, changes: Mapping[str, Json]) -> dict[str, Json]:
        """Changes to a run's settings, in the same way; what they do not name stays."""
        found = self._plain(changes)
        if "benchmark" in found:
            found["benchmark"] = self._benchmark(found["benchmark"])
        if found.get("endpoint") is not None:
            self._reach(found, "", RunConfig)
        judge = found.get("judge")
        if judge is not None and (judge.get("endpoint") is not None or self._only(judge)):
            self._reach(judge, "judge.", JudgeConfig)
        for number, table in enumerate(found.get("panel", ()), 1):
            self._reach(table, f"panel.{number}.", JudgeConfig)
        return found

    def addresses(self, settings: Mapping[str, Json]) -> dict[str, Json]:
        """Where a run of these settings finds model and judge today: whoever starts the service may have
        moved an endpoint since the run began."""
        found = self.whole(settings)
        parts = ("base_url", "api_key_env")
        judge = {name: found["judge"][name] for name in parts if name in found["judge"]}
        return {name: found[name] for name in parts} | ({"judge": judge} if judge else {})

    def check(self, config: RunConfig, *, judged: bool, asked: bool = True) -> None:
        """Raises ConfigError where a run, from an earlier day or the command line, calls on an address that
        is none of the service's. `asked`: the model is; `judged`: the judges are."""
        sides: list[tuple[str, CallSettings]] = [("the model", config)] if asked else []
        sides += [(f"judge {judge.label}", judge) for judge in config.judges] if judged else []
        for who, side in sides:
            endpoint = self.endpoint_of(side)
            if endpoint is None:
                raise ConfigError(
                    f"{who} has no endpoint of this service: set `endpoint` to one of "
                    f"{_listed(self._endpoints)}."
                )
            self._check_model(endpoint, side.model, who)

    def endpoint_of(self, settings: CallSettings) -> EndpointSettings | None:
        """The service's endpoint that these settings call on."""
        fitting = [one for one in self._config.endpoint if _place(one.call_settings()) == _place(settings)]
        # One address may have several names: one for each model that is allowed there.
        fitting.sort(key=lambda one: (settings.model not in one.models, bool(one.models)))
        return fitting[0] if fitting else None

    def key_limits(self, settings: CallSettings) -> KeyLimits:
        """What the key behind these settings allows all runs together, as far as the service was told."""
        endpoint = self.endpoint_of(settings)
        if endpoint is None:
            return KeyLimits()
        return KeyLimits(concurrency=endpoint.concurrency, rpm=endpoint.rpm, tpm=endpoint.tpm)

    def _plain(self, settings: Mapping[str, Json]) -> dict[str, Json]:
        """A copy in which nothing is refused and data sets are places. What is no setting is found later."""
        found = dict(settings)
        _refuse(found, "")
        if found.get("data") is not None:
            found["data"] = self._data(found["data"])
        if "judge" in found:
            found["judge"] = _table(found["judge"], "judge")
        if "panel" in found:
            panel = found["panel"]
            if not isinstance(panel, list | tuple):
                raise ConfigError("panel: must be a list of judges, each a table of settings.")
            found["panel"] = [_table(one, f"panel.{number}") for number, one in enumerate(panel, 1)]
        return found

    def _data(self, name: Json) -> str:
        if isinstance(name, str) and name in self._config.data:
            return self._config.data[name]
        known = f"it has {_listed(self._config.data)}" if self._config.data else "it was started with none"
        raise ConfigError(f"data = {_shown(name)}: is no data set of this service; {known}.")

    def _benchmark(self, name: Json) -> str:
        name = RunConfig.model_fields["benchmark"].default if name is None else name
        if isinstance(name, str) and name in self._config.benchmarks:
            return str(self._config.benchmarks[name])
        if not isinstance(name, str) or name not in {*tasks.NAMES, *_plugged_in()}:
            own = [*self._config.benchmarks, *tasks.NAMES, *_plugged_in()]
            near = difflib.get_close_matches(str(name), own, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known are: {', '.join(own)}."
            raise ConfigError(f"there is no benchmark {_shown(name)}; {hint}")
        return name

    def _reach(self, table: dict[str, Json], where: str, kind: type[CallSettings]) -> None:
        """Put an endpoint's address in the place of its name."""
        name = table.get("endpoint")
        if name is None:
            endpoint = self._fitting(table, kind)
            if endpoint is None:
                raise ConfigError(f"{where}endpoint: is missing; name one of {_listed(self._endpoints)}.")
        else:
            found = self._endpoints.get(name) if isinstance(name, str) else None
            if found is None:
                raise ConfigError(
                    f"{where}endpoint = {_shown(name)}: is no endpoint of this service; it has "
                    f"{_listed(self._endpoints)}."
                )
            endpoint = found
        model = table.get("model", kind.model_fields["model"].default)
        if isinstance(model, str):
            self._check_model(endpoint, model, f"{where}model")
        table |= {
            "endpoint": endpoint.endpoint,
            "base_url": endpoint.base_url,
            "api_key_env": endpoint.api_key_env,
        }

    def _fitting(self, table: Mapping[str, Json], kind: type[CallSettings]) -> EndpointSettings | None:
        """The endpoint that is meant where none is named: the one for this model, else the only one, else
        that with the name of the usual wire format."""
        only = self._only(table, kind)
        if only is not None:
            return only
        open_to_all = [one for one in self._config.endpoint if not one.models]
        if len(open_to_all) == 1:
            return open_to_all[0]
        usual = self._endpoints.get(str(kind.model_fields["endpoint"].default))
        return usual if usual in open_to_all else None

    def _only(
        self, table: Mapping[str, Json], kind: type[CallSettings] | None = None
    ) -> EndpointSettings | None:
        """The only endpoint that names this model among its own."""
        model = table.get("model", kind.model_fields["model"].default if kind is not None else None)
        named = [one for one in self._config.endpoint if model in one.models]
        return named[0] if len(named) == 1 else None

    @staticmethod
    def _check_model(endpoint: EndpointSettings, model: str, where: str) -> None:
        if endpoint.models and model not in endpoint.models:
            raise ConfigError(
                f"{where}: endpoint '{endpoint.name}' is not for '{model}'; it is for "
                f"{_listed(endpoint.models)}."
            )


def limits_of(changes: Mapping[str, Json]) -> Limits:
    """`concurrency`, `rpm` and `tpm` of the model, and tables of the same under a judge's name, by side.
    Raises ConfigError for anything else."""
    sides: dict[str, dict[str, Json]] = {}
    for name, value in changes.items():
        if name in LIMITS:
            sides.setdefault(MODEL, {})[name] = value
        elif isinstance(value, Mapping):
            if stray := sorted(set(value) - set(LIMITS)):
                raise ConfigError(f"{name}.{stray[0]}: is no limit; there are {_listed(LIMITS)}.")
            sides[name] = dict(value)
        else:
            raise ConfigError(
                f"{name}: is no limit; there are {_listed(LIMITS)}, and judges' tables of them."
            )
    if not any(sides.values()):
        raise ConfigError(f"nothing is to change: give any of {_listed(LIMITS)}.")
    return sides


def _place(settings: CallSettings) -> tuple[str, str, str]:
    return settings.endpoint, settings.url.rstrip("/"), settings.key_variable


def _refuse(table: Mapping[str, Json], where: str) -> None:
    if refused := sorted(name for name in table if name in REFUSED):
        raise ConfigError(
            f"{where}{refused[0]}: is for who starts the service to say, not for a run; leave it out."
        )


def _table(value: Json, where: str) -> dict[str, Json]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: must be a table of settings.")
    _refuse(value, f"{where}.")
    return dict(value)


def _plugged_in() -> list[str]:
    return [point.name for point in offered()]


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
