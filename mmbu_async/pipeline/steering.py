"""Doing what other processes ask of the one at work: other limits, pause, go on.

They leave it in the store (`store/control.py`). Nothing of it changes answers, so it may come at any time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mmbu_async.config import CallSettings, RunConfig, build_config
from mmbu_async.model import Json
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.run import Side, Stages
from mmbu_async.store import Control, Heeded, Limits

LOOK_S = 1.0
"""Seconds between two looks into the store."""
LIMITS = ("concurrency", "rpm", "tpm")
MODEL = ""
JUDGE = "judge"

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Steering:
    """One session's ear."""

    run_id: int
    config: RunConfig
    """The settings in force: changes with what is asked."""
    seen: int
    """The newest request that is done."""

    async def follow(self, monitor: Monitor, stages: Stages) -> None:
        """Look and do, until it is cancelled."""
        while True:
            control = await stages.reader.control(self.run_id)
            if control.asked > self.seen:
                self.seen = control.asked
                self._do(control, monitor, stages)
                await stages.infer.recorder.writer.write(Heeded(run_id=self.run_id, asked=control.asked))
            await asyncio.sleep(LOOK_S)

    def _do(self, control: Control, monitor: Monitor, stages: Stages) -> None:
        self.config = with_limits(self.config, control.limits)
        wanted: dict[str, CallSettings] = {"model": self.config}
        wanted |= {f"judge {judge.label}": judge for judge in self.config.judges}
        for side in stages.sides:
            settings = wanted[side.label]
            if _limits(side.client.settings) != _limits(settings):
                side.limit(settings)
                log.info("asked for other limits: %s", said(side.label, settings))
        if control.paused != monitor.paused:
            monitor.paused = control.paused
            for side in stages.sides:
                _hold(side, held=control.paused)
            log.info("paused: calls under way finish" if control.paused else "going on")


def with_limits(config: RunConfig, limits: Limits) -> RunConfig:
    """The same settings with other limits; sides that they do not know are left out.

    Raises ConfigError for a limit that cannot be.
    """
    settings = config.model_dump(mode="python")
    for side, values in limits.items():
        for table in _tables(settings, config, side):
            table.update(values)
    return build_config(settings, "the command line")


def changed_limits(before: Mapping[str, Json], now: Mapping[str, Json], config: RunConfig) -> Limits:
    """The limits in a run's stored settings that differ from what they were; sides as in `config`."""
    sides = {MODEL: (before, now), JUDGE: (_json_table(before, JUDGE), _json_table(now, JUDGE))}
    earlier, later = _panel_tables(before), _panel_tables(now)
    sides |= {
        judge.label: (earlier[judge.label], later[judge.label])
        for judge in config.panel
        if judge.label in earlier and judge.label in later
    }
    return {
        side: {name: new.get(name) for name in LIMITS if new.get(name) != old.get(name)}
        for side, (old, new) in sides.items()
    }


def _json_table(settings: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    found = settings.get(name)
    return found if isinstance(found, dict) else {}


def _panel_tables(settings: Mapping[str, Json]) -> dict[str, Mapping[str, Json]]:
    """The panel's tables by their judges' labels."""
    panel = settings.get("panel")
    tables = [table for table in panel if isinstance(table, dict)] if isinstance(panel, list) else []
    return {str(table.get("name") or table.get("model")): table for table in tables}


def said(label: str, settings: CallSettings) -> str:
    """The limits of one side, in words."""
    rpm = f"{settings.rpm:,g} requests a minute" if settings.rpm is not None else "any number of requests"
    tpm = f"{settings.tpm:,g} tokens a minute" if settings.tpm is not None else "any number of tokens"
    calls = f"{settings.concurrency:,} {'call' if settings.concurrency == 1 else 'calls'}"
    return f"{label}: at most {calls} at once, {rpm}, {tpm}"


def _tables(settings: dict[str, object], config: RunConfig, side: str) -> Iterator[dict[str, object]]:
    """Where the settings of a side stand."""
    if side == MODEL:
        yield settings
    if side in (JUDGE, config.judge.label):
        yield _table(settings["judge"])
    panel = settings["panel"]
    if isinstance(panel, list | tuple):
        for judge, table in zip(config.panel, panel, strict=True):
            if side == judge.label:
                yield _table(table)


def _table(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"settings of a judge are a table, not {value!r}")
    return value


def _limits(settings: CallSettings) -> tuple[int, float | None, float | None]:
    return settings.concurrency, settings.rpm, settings.tpm


def _hold(side: Side, *, held: bool) -> None:
    if held:
        side.client.gate.hold()
    else:
        side.client.gate.go_on()
