"""Gathers what it takes to repeat a run: from its stored settings, and from the benchmark's own rules."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from mmbu_async import judging
from mmbu_async.config import RunConfig, to_toml
from mmbu_async.images.limits import UNLIMITED
from mmbu_async.model import Benchmark, Json, Prompt
from mmbu_async.report.recipe import Recipe, UsedPrompt
from mmbu_async.store import RunRecord, Store
from mmbu_async.tasks.texts import TellsPrompts, hashes
from mmbu_async.version import VERSION

PACKAGE = "mmbu-async"
DECISIVE = ("numpy", "pillow", "aiohttp", "orjson", "pydantic", "tenacity")
"""Dependencies whose version could change what is sent, read or computed."""


def recipe(store: Store, run: RunRecord, config: RunConfig, benchmark: Benchmark) -> Recipe:
    """`config`: the settings of the run."""
    repeatable, shortened = _without_places(config)
    data = benchmark.data
    return Recipe(
        settings=to_toml(repeatable),
        shortened=shortened,
        keys=tuple(dict.fromkeys(one.key_variable for one in (config, *config.judges))),
        title=benchmark.title,
        home=f"{data.hub}, split {data.split}",
        source=_source(run, config),
        licence=benchmark.licence,
        citation=benchmark.citation,
        prompts=(*_prompts(run, benchmark), *_judge_prompt(run, benchmark)),
        examples=_examples(store, run, benchmark),
        images=_images(run.identity.get("images")),
        sessions=store.sessions(run.id),
        versions=_versions(),
    )


def _without_places(config: RunConfig) -> tuple[RunConfig, tuple[str, ...]]:
    """The settings without the run's name and store, and with local paths cut to their last name: where a
    file lay says nothing to another reader, and may say too much."""
    changes: dict[str, Any] = {"name": None, "store": RunConfig.model_fields["store"].default}
    shortened = []
    for name in ("data", "benchmark", "image_limits"):
        value = getattr(config, name)
        if value is not None and Path(value).is_absolute():
            changes[name] = type(value)(Path(value).name)
            shortened.append(name)
    return config.model_copy(update=changes), tuple(shortened)


def _source(run: RunRecord, config: RunConfig) -> str:
    folder = Path(config.data or "")
    return (
        run.dataset.source.replace(f"{folder}", folder.name) if folder.is_absolute() else run.dataset.source
    )


def _prompts(run: RunRecord, benchmark: Benchmark) -> Iterator[UsedPrompt]:
    """Those in the run's identity. The text is shown where today's still has their hash."""
    texts = benchmark.prompt_texts() if isinstance(benchmark, TellsPrompts) else {}
    today = hashes(texts)
    used = run.identity.get("prompts")
    for name, sha in (used if isinstance(used, Mapping) else {}).items():
        yield UsedPrompt(name=name, sha256=str(sha), text=texts[name] if today.get(name) == sha else None)


def _judge_prompt(run: RunRecord, benchmark: Benchmark) -> Iterator[UsedPrompt]:
    """A majority has none of its own, but those of its judges."""
    if run.judge is None or not benchmark.judge:
        return
    prompt = judging.load(benchmark.judge)
    identities = (run.judge.identity, *run.judge.identity.get("panel", ()))
    for used in dict.fromkeys(str(identity["prompt"]) for identity in identities if "prompt" in identity):
        text = prompt.template() if used == prompt.sha256 else None
        yield UsedPrompt(name=f"judge ({prompt.name})", sha256=used, text=text)


def _examples(store: Store, run: RunRecord, benchmark: Benchmark) -> dict[str, Prompt]:
    return {benchmark.shown_route(sample): benchmark.prompt(sample) for sample in store.route_samples(run.id)}


def _images(policy: Json) -> dict[str, str]:
    found = policy if isinstance(policy, Mapping) else {}
    return {name: _limit(value) for name, value in found.items()}


def _limit(value: Json) -> str:
    if isinstance(value, int) and value >= UNLIMITED:
        return "no limit"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _versions() -> dict[str, str]:
    """Of what is installed here."""
    found = {PACKAGE: VERSION}
    if commit := _commit():
        found[f"{PACKAGE} commit"] = commit
    found["Python"] = platform.python_version()
    return found | {name: version(name) for name in DECISIVE}


def _commit() -> str | None:
    """Of an installation straight from a repository; None for one from a package index or a source tree."""
    try:
        text = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    source = json.loads(text) if text else {}
    commit = source.get("vcs_info", {}).get("commit_id")
    return str(commit) if commit else None
