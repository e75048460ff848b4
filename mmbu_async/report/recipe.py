"""What it takes to repeat a run, beside what its report says: settings, prompts, versions, licence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mmbu_async.model import Prompt
from mmbu_async.store import SessionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedPrompt:
    """A prompt text that the run was made with."""

    name: str
    sha256: str
    text: str | None
    """None: the installed version does not know the text of this hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Gathered by the pipeline, which knows benchmarks and settings; rendered by the card."""

    settings: str
    """The run's settings as TOML, ready for `mmbu run --config`."""
    shortened: tuple[str, ...]
    """Settings whose path is given by its last name only."""
    keys: tuple[str, ...]
    """Environment variables from which the run takes its API keys."""
    title: str
    """Of the benchmark."""
    home: str
    """Where the benchmark's data were published."""
    source: str
    """Where the run's data were read from, local folders by their last name only."""
    licence: str
    citation: str
    prompts: tuple[UsedPrompt, ...]
    examples: Mapping[str, Prompt]
    """The filled prompt of one row, by the name of its route."""
    images: Mapping[str, str]
    """What was done to images before they were sent: limits by name."""
    sessions: tuple[SessionRecord, ...]
    versions: Mapping[str, str]
    """Of what is installed where the recipe was written."""
