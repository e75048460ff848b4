"""Who judges a run, and whose word makes its scores."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mmbu_async.config import MAJORITY, JudgeConfig, RunConfig, build_config
from mmbu_async.errors import ConfigError
from mmbu_async.model import Json
from mmbu_async.pipeline.identity import Identity, canonical, differences, judge_identity, panel_identity
from mmbu_async.store import RunRecord, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """One that is asked, and the number under which the store keeps its verdicts."""

    id: int
    settings: JudgeConfig
    needed: bool = True
    """Whether there is any row about which it has to be asked: else it needs no key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """All that are asked about a row, and the one whose verdicts make the scores.

    The latter may be none that is asked: a majority is a judge of its own, whose verdicts are derived.
    """

    asked: tuple[Judge, ...]
    deciding: int


def find_judges(store: Store, config: RunConfig, prompt_sha256: str) -> Judges:
    """The judges of the configuration, by their identity. Raises ConfigError where two are the same one."""
    asked: list[Judge] = []
    identities = [judge_identity(judge, prompt_sha256) for judge in config.judges]
    for settings, identity in zip(config.judges, identities, strict=True):
        found = store.judge(settings.label, identity, now=time.time())
        twin = next((judge for judge in asked if judge.id == found.id), None)
        if twin is not None:
            raise ConfigError(
                f"the judges {twin.settings.label} and {settings.label} are the same model with the same "
                "settings, and would count twice: leave one out, or let them differ."
            )
        asked.append(Judge(id=found.id, settings=settings))
    if config.verdict == MAJORITY:
        deciding = store.judge(MAJORITY, panel_identity(identities), now=time.time()).id
    else:
        named = [judge.id for judge in asked if judge.settings.label == config.verdict]
        deciding = (named or [asked[0].id])[0]
    return Judges(asked=tuple(asked), deciding=deciding)


def judging_changes(run: RunRecord, config: RunConfig, prompt_sha256: str) -> tuple[str, ...]:
    """One line for each way in which the configuration judges otherwise than the run has been judged."""
    if run.judge is None:
        return ()
    # Settings of an earlier version, or made by hand, may know no judge.
    before = build_config({"model": run.model, **run.config}, f"run '{run.name}'")
    known = run.judge.identity
    of_panel = known.get("panel")
    prompt = str((of_panel[0] if of_panel else known).get("prompt", prompt_sha256))
    judge = judge_identity(before.judge, prompt) if of_panel or before.verdict != "judge" else known
    changes = differences(judge, judge_identity(config.judge, prompt_sha256))
    changes += _panel_changes(_panel(before.panel, prompt), _panel(config.panel, prompt_sha256))
    return changes + differences({"verdict": _decider(before)}, {"verdict": _decider(config)})


def _panel(judges: Sequence[JudgeConfig], prompt_sha256: str) -> dict[str, Identity]:
    return {judge.label: judge_identity(judge, prompt_sha256) for judge in judges}


def _panel_changes(before: Mapping[str, Identity], now: Mapping[str, Identity]) -> tuple[str, ...]:
    """Judges that only have another name, or stand in another place, are the same."""
    if sorted(map(canonical, before.values())) == sorted(map(canonical, now.values())):
        return ()
    lines: tuple[str, ...] = ()
    for label in sorted(before.keys() | now.keys()):
        was, is_now = before.get(label), now.get(label)
        if was is not None and is_now is not None:
            lines += tuple(f"panel.{label}.{change}" for change in differences(was, is_now))
        else:
            # One that comes or goes is told by its model, not by each of its settings.
            lines += differences({f"panel.{label}": _model(was)}, {f"panel.{label}": _model(is_now)})
    return lines


def _model(judge: Identity | None) -> Json:
    return None if judge is None else judge["model"]


def _decider(config: RunConfig) -> str:
    """Whose word counts, in one way of saying it."""
    return "judge" if config.verdict == config.judge.label else config.verdict
