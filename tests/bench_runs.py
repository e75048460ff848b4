"""Whole benches beside a simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mmbu_async.bench.plan import Closed, Ends
from mmbu_async.bench.session import Ended, run
from mmbu_async.bench.spec import Spec
from mmbu_async.bench.synthetic import ImageKind, Synthetic
from mmbu_async.config import RunConfig

SMALL = Synthetic(kinds=(ImageKind.parse("64x48"),), prompt_tokens=20, reply_tokens=30)


def spec(url: str, store: Path, *, endpoint: str = "openai", **changes: Any) -> Spec:
    """Small synthetic images, two users, twenty requests, unless said otherwise."""
    settings = {
        "model": "m",
        "endpoint": endpoint,
        "store": store,
        "idle_timeout": 2.0,
        "connect_timeout": 2.0,
    }
    settings["base_url"] = url + ("/v1" if endpoint == "openai" else "")
    own = RunConfig.model_fields.keys() - {"name", "seed"}
    settings |= {name: changes.pop(name) for name in own & changes.keys()}
    values: dict[str, Any] = {
        "synthetic": SMALL,
        "loads": (Closed(concurrency=2),),
        "ends": Ends(requests=20),
    }
    return Spec(config=RunConfig.model_validate(settings), **(values | changes))


async def bench(url: str, store: Path, **changes: Any) -> tuple[Ended, list[str]]:
    """The bench, and what it told on the way."""
    told: list[str] = []
    ended = await run(spec(url, store, **changes), tell=told.append)
    return ended, told
