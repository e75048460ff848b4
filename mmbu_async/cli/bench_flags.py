"""The flags of `mmbu bench` as what they mean. Raises ConfigError for what cannot be."""

from __future__ import annotations

from typing import Any

from mmbu_async.errors import ConfigError


def search(
    objectives: list[str] | None, what: str, arrivals: Any, requests: int, probe: int, tolerance: float
) -> Any:
    """What is looked for; None: nothing is."""
    from mmbu_async.bench.objective import parse_all
    from mmbu_async.bench.search import SearchPlan

    if what not in ("rate", "users"):
        raise ConfigError(f"--search {what}: is none of rate, users.")
    if not objectives:
        return None
    return SearchPlan(
        objectives=parse_all(objectives),
        users=what == "users",
        arrivals=arrivals,
        tolerance=tolerance / 100,
        probe_requests=probe,
        most_requests=requests,
    )


def loads(concurrency: str | None, rate: str | None, arrivals: Any, cap: int | None) -> dict[str, Any]:
    """The loads under their name in the spec; without any flag none, for the default."""
    from mmbu_async.bench.plan import Closed, Open

    if concurrency is not None and rate is not None:
        raise ConfigError("--concurrency and --rate are two kinds of load: measure one after the other.")
    if cap is not None and rate is None:
        raise ConfigError("--most-in-flight is a cap for --rate: give a rate, or --concurrency alone.")
    if rate is not None:
        rates = _numbers("--rate", rate)
        return {"loads": tuple(Open(rate=one, arrivals=arrivals, most_in_flight=cap) for one in rates)}
    if concurrency is not None:
        users = _numbers("--concurrency", concurrency)
        if any(one != int(one) for one in users):
            raise ConfigError(f"--concurrency {concurrency}: users are whole numbers.")
        return {"loads": tuple(Closed(concurrency=int(one)) for one in users)}
    return {}


def _numbers(flag: str, text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < one < 1e6 for one in found):
        raise ConfigError(f"{flag} {text}: write one number above 0, or several with commas between them.")
    return found


def synthetic(
    image: list[str] | None, images: int, prompt_tokens: int | None, reply_tokens: int | None
) -> Any:
    """Synthetic work where any flag of it is given; None: rows."""
    from mmbu_async.bench.synthetic import ImageKind, Synthetic

    if not image and images == 1 and prompt_tokens is None and reply_tokens is None:
        return None
    given = {"prompt_tokens": prompt_tokens, "reply_tokens": reply_tokens}
    lengths: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if image:
        lengths["kinds"] = tuple(map(ImageKind.parse, image))
    return Synthetic(images=images, **lengths)


def beside(
    config: Any, model: str | None, base_url: str | None, endpoint: str | None, key: str | None
) -> Any:
    """The other endpoint: as the first, but for what is said of it."""
    from pydantic import ValidationError

    from mmbu_async.bench.spec import BesideConfig
    from mmbu_async.config import CallSettings

    given = {"model": model, "base_url": base_url, "endpoint": endpoint, "api_key_env": key}
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        return None
    same = config.model_dump(include=set(CallSettings.model_fields) - {"api_key_env"})
    if base_url is None and model is None:
        raise ConfigError("another endpoint needs --beside-base-url or --beside-model.")
    if endpoint is not None and base_url is None:
        same["base_url"] = None
    if endpoint not in (None, config.endpoint):
        # Each format has words of its own for it.
        same["image_detail"] = None
    try:
        return BesideConfig.model_validate(same | changes)
    except ValidationError as error:
        first = error.errors()[0]
        flag = f"--beside-{str(first['loc'][0]).replace('_', '-')}"
        raise ConfigError(f"{flag}: {str(first['msg']).removeprefix('Value error, ')}.") from None
