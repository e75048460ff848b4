"""What exactly was run, and whether its settings are those of official scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from mmbu_async.config import DEFAULT_BASE_URLS, OFFICIAL_JUDGE
from mmbu_async.makers import same_makers, warning
from mmbu_async.model import Json
from mmbu_async.report import words
from mmbu_async.report.model import Party, Provenance
from mmbu_async.store import JudgeRecord, RunRecord, SessionRecord, Store

OFFICIAL_BENCHMARK = "mmbu-public"
OFFICIAL_DATA = frozenset({"mmbu/mmbu-public", "mmbu-challenge/mmbu-public"})
OFFICIAL_JUDGE_HOST = "api.anthropic.com"
OFFICIAL_JUDGE_PROMPT = "c24a05faadcb87e6d5ad4eecf6e5697f6ba50a7d8dc7614fc510e6a491f8cd7b"
"""SHA-256 of `open_per_dataset_v3` as the dataset card of mmbu/mmbu-public prints it."""

_NO_SETTING = frozenset({"model", "endpoint", "benchmark", "dataset", "prompts", "prompt", "images"})


def provenance(
    run: RunRecord,
    sessions: tuple[SessionRecord, ...],
    *,
    selected: int,
    reported: Mapping[str, int],
    judged: bool = True,
    scored: int,
) -> Provenance:
    """`reported`: model names that the endpoint itself gave, with the number of replies; `judged`: whether
    a judge has anything to say in this run. Where rows are scored all the same, none is told of: a run is
    always set up with one, also where its benchmark asks none."""
    judge = _judge(run, sessions)
    panel = _panel(run)
    reasons = tuple(_unofficial(run, judge, selected))
    versions = dict.fromkeys((run.package_version, *(session.package_version for session in sessions)))
    return Provenance(
        benchmark=run.benchmark,
        source=run.dataset.source,
        fingerprint=run.dataset.fingerprint,
        created_at=run.created_at,
        packages=tuple(versions),
        scored_by=run.scored_version,
        selection=selection(run.config),
        model=Party(
            name=run.model,
            model=run.model,
            endpoint=run.endpoint,
            host=run.host,
            settings=_settings(run.identity),
            prompts=_mapping(run.identity.get("prompts")),
            reported_models=dict(reported),
        ),
        judge=judge if judged or not scored else None,
        panel=panel,
        warnings=tuple(_warnings(run, panel)) if judged else (),
        official=not reasons,
        unofficial=reasons,
    )


def provenance_of(store: Store, run: RunRecord, *, selected: int) -> Provenance:
    """The same, for whoever has not counted what endpoints reported."""
    return provenance(
        run,
        store.sessions(run.id),
        selected=selected,
        reported={},
        judged=bool(store.judges(run.id)),
        scored=store.counts(run.id).scored,
    )


def standings(runs: Iterable[tuple[str, Provenance]]) -> Iterator[str]:
    """Of several runs, by name: whether their settings are official, and what to be wary of. Runs that are
    alike in this go into one sentence."""
    by_reasons: dict[tuple[str, ...], list[str]] = {}
    warnings: dict[str, None] = {}
    for name, ran in runs:
        by_reasons.setdefault(ran.unofficial, []).append(name)
        warnings |= dict.fromkeys(ran.warnings)
    for reasons, names in by_reasons.items():
        standing = f"unofficial: {'; '.join(reasons)}" if reasons else "official settings"
        yield f"{', '.join(names)}: {standing}."
    yield from warnings


def selection(config: Mapping[str, Json]) -> dict[str, Json]:
    """The settings that leave rows out, where given."""
    return {name: config[name] for name in ("limit", "task", "where") if config.get(name)}


def _judge(run: RunRecord, sessions: tuple[SessionRecord, ...]) -> Party | None:
    if run.judge is None:
        return None
    identity = run.judge.identity
    members = _members(run)
    # Judges of one run are asked with one prompt.
    prompt = (members[0] if members else identity).get("prompt")
    majority = "majority of " + ", ".join(str(one.get("model", "")) for one in members)
    return Party(
        name=run.judge.name,
        model=majority if members else str(identity.get("model", "")),
        endpoint=str(identity.get("endpoint", "")),
        host=_judge_host(run.judge, (run.config, *(session.config for session in reversed(sessions)))),
        settings={} if members else _settings(identity),
        prompts={} if prompt is None else {"judge": str(prompt)},
        reported_models={},
    )


def _members(run: RunRecord) -> list[Mapping[str, Json]]:
    """Those whose majority makes the scores; empty where one judge makes them."""
    found = run.judge.identity.get("panel") if run.judge is not None else None
    return list(found) if isinstance(found, list) else []


def _panel(run: RunRecord) -> tuple[Party, ...]:
    """The judges that the run's settings name; one has a place of its own."""
    used = _asked(run.config)
    if len(used) < 2:
        return ()
    return tuple(
        Party(
            name=str(one.get("name") or one.get("model") or OFFICIAL_JUDGE),
            model=str(one.get("model") or OFFICIAL_JUDGE),
            endpoint=str(one.get("endpoint", "")),
            host=_host(one),
            settings={
                name: one[name]
                for name in ("max_tokens", "temperature", "seed", "params")
                if one.get(name) not in (None, {})
            },
            prompts={},
            reported_models={},
        )
        for one in used
    )


def _warnings(run: RunRecord, panel: tuple[Party, ...]) -> Iterator[str]:
    judges = [party.model for party in panel]
    if run.judge is not None and not _members(run):
        judges.append(str(run.judge.identity.get("model", "")))
    for judge, maker in same_makers(run.model, judges):
        yield warning(run.model, judge, maker)


def _asked(config: Mapping[str, Json]) -> list[dict[str, Any]]:
    panel = config.get("panel")
    named = [config.get("judge"), *(panel if isinstance(panel, list) else ())]
    return [found for one in named if (found := _mapping(one))]


def _judge_host(judge: JudgeRecord, configs: tuple[Mapping[str, Json], ...]) -> str:
    """Where the judge was reached: not part of its identity, so taken from the settings that name it."""
    for config in configs:
        for used in _asked(config):
            if used.get("model") == judge.identity.get("model"):
                return _host(used)
    return ""


def _host(used: Mapping[str, Any]) -> str:
    address = used.get("base_url") or DEFAULT_BASE_URLS.get(used.get("endpoint", ""), "")
    return urlsplit(address).hostname or ""


def _unofficial(run: RunRecord, judge: Party | None, selected: int) -> Iterator[str]:
    if run.benchmark != OFFICIAL_BENCHMARK:
        yield f"official settings are known for {OFFICIAL_BENCHMARK} only"
        return
    if judge is None:
        yield "there is no judge"
    elif _members(run):
        yield f"the verdict is the {judge.model}, not that of {OFFICIAL_JUDGE} alone"
    elif judge.model != OFFICIAL_JUDGE:
        yield f"the judge is {judge.model}, not {OFFICIAL_JUDGE}"
    elif judge.host != OFFICIAL_JUDGE_HOST:
        yield f"the judge was reached at {judge.host or 'an unknown host'}, not at {OFFICIAL_JUDGE_HOST}"
    if judge is not None and judge.prompts.get("judge") != OFFICIAL_JUDGE_PROMPT:
        yield "the judge's prompt is not open_per_dataset_v3 as published"
    if run.config.get("data") not in (None, *OFFICIAL_DATA):
        yield "the data were not read from the hub, so that nothing vouches for them"
    if selected < run.dataset.rows:
        yield f"only {words.count(selected)} of {words.rows(run.dataset.rows)} were selected"


def _settings(identity: Mapping[str, Json]) -> dict[str, Json]:
    """Sampling and limits; what is unset was left to the endpoint and is left out."""
    return {
        name: value
        for name, value in identity.items()
        if name not in _NO_SETTING and value is not None and value != {}
    }


def _mapping(value: Json) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
