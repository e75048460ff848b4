"""Benchmarks, one file each: how a row becomes a prompt and a reply becomes a score. Pure, no I/O."""

from __future__ import annotations

import difflib

from mmbu_async.errors import ConfigError
from mmbu_async.tasks.mmbu_public import MmbuPublic

NAMES = (MmbuPublic.name,)


def load(name: str) -> MmbuPublic:
    """The benchmark of that name. Raises ConfigError naming close matches."""
    if name == MmbuPublic.name:
        return MmbuPublic.with_prompts()
    near = difflib.get_close_matches(name, NAMES, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known are: {', '.join(NAMES)}."
    raise ConfigError(f"there is no benchmark '{name}'; {hint}")
