"""Asynchronous, checkpointed batch evaluation of vision-language models on biomedical benchmarks.

    from mmbu_async import RunConfig, api

    result = await api.evaluate(RunConfig(model="gpt-4o-mini"))

`api` has a function for each command; the names most used are here too. Each is loaded when it is first
used, so that importing the package is cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmbu_async import api
    from mmbu_async.api import RunResult, evaluate, evaluate_sync
    from mmbu_async.config import JudgeConfig, RunConfig
    from mmbu_async.errors import MmbuError

    __version__: str

__all__ = [
    "JudgeConfig",
    "MmbuError",
    "RunConfig",
    "RunResult",
    "__version__",
    "api",
    "evaluate",
    "evaluate_sync",
]

_HOMES = {
    "JudgeConfig": "config",
    "RunConfig": "config",
    "MmbuError": "errors",
    "RunResult": "api",
    "evaluate": "api",
    "evaluate_sync": "api",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("mmbu_async.version").VERSION
    if name == "api":
        return importlib.import_module("mmbu_async.api")
    if name in _HOMES:
        return getattr(importlib.import_module(f"mmbu_async.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'mmbu_async' has no attribute '{name}'")
