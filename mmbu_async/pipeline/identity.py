"""What a run is: the settings that change answers. They must match on resume; all others may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from mmbu_async.config import CallSettings, JudgeConfig, RunConfig
from mmbu_async.images.limits import UNLIMITED
from mmbu_async.model import Benchmark, Json

Identity = Mapping[str, Json]
_NOT_SET = object()


def sampling(settings: CallSettings) -> dict[str, Json]:
    """What decides a model's reply to a given prompt, as far as the caller can decide it."""
    return {
        "model": settings.model,
        "endpoint": settings.endpoint,
        "max_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "seed": settings.seed,
        "params": dict(sorted(settings.params.items())),
        # Only where it is set: judges of earlier versions stay the same judges.
        **({"image_detail": settings.image_detail} if settings.image_detail is not None else {}),
    }


def run_identity(
    config: RunConfig, benchmark: Benchmark, *, fingerprint: str, image_policy: Mapping[str, Json]
) -> dict[str, Json]:
    """Base URL, limits, time-outs, concurrency, row limit and judge are not in it."""
    return {
        "benchmark": benchmark.name,
        "dataset": fingerprint,
        "prompts": dict(sorted(benchmark.prompt_hashes().items())),
        "images": dict(image_policy),
        **sampling(config),
    }


def judge_identity(judge: JudgeConfig, prompt_sha256: str) -> dict[str, Json]:
    """Verdicts of judges with the same identity are verdicts of the same judge."""
    return {**sampling(judge), "prompt": prompt_sha256}


def panel_identity(judges: Sequence[Identity]) -> dict[str, Json]:
    """A majority is that of these judges, in whatever order they are named."""
    return {"panel": sorted((dict(judge) for judge in judges), key=canonical), "by": "majority"}


def canonical(identity: Identity) -> str:
    return orjson.dumps(identity, option=orjson.OPT_SORT_KEYS).decode()


def differences(before: Identity, now: Identity) -> tuple[str, ...]:
    """One line for each setting that differs, nested names joined by a dot.

    A setting that an earlier version did not know counts as one that is none. Not so a parameter: a null
    there takes a field out of the request.
    """
    old, new = _flat(before), _flat(now)
    lines = []
    for name in sorted(old.keys() | new.keys()):
        absent = _NOT_SET if name.startswith("params.") else None
        was, is_now = old.get(name, absent), new.get(name, absent)
        if not _same(was, is_now):
            show = _show_limit if name.startswith("images.") else _show
            lines.append(f"{name}: {show(was)} -> {show(is_now)}")
    return tuple(lines)


def _flat(identity: Identity, prefix: str = "") -> dict[str, Json]:
    flat: dict[str, Json] = {}
    for name, value in identity.items():
        if isinstance(value, Mapping) and (value or not prefix):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _same(was: Json, is_now: Json) -> bool:
    """Python takes `true` for 1; a server may not."""
    if isinstance(was, bool) or isinstance(is_now, bool):
        return was is is_now
    if isinstance(was, list) and isinstance(is_now, list):
        return len(was) == len(is_now) and all(map(_same, was, is_now))
    if isinstance(was, Mapping) and isinstance(is_now, Mapping):
        return was.keys() == is_now.keys() and all(_same(was[name], is_now[name]) for name in was)
    return bool(was == is_now)


def _show_limit(value: Json) -> str:
    """Of images: what is beyond all images is none."""
    return "no limit" if isinstance(value, int) and value >= UNLIMITED else _show(value)


def _show(value: Json) -> str:
    if value is _NOT_SET:
        return "not set"
    text = "none" if value is None else str(value)
    return text if len(text) <= 80 else text[:77] + "..."
