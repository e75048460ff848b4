"""Judges: what they are asked, and how their replies are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mmbu_async.errors import ConfigError
from mmbu_async.judging import mmbu
from mmbu_async.model import JudgeItem, Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePrompt:
    """One way to put a row before a judge."""

    name: str
    fill: Callable[[JudgeItem], Prompt]
    read_verdict: Callable[[str], bool | None]
    sha256: str
    template: Callable[[], str]
    """Its text, places included."""


PROMPTS = {
    mmbu.NAME: JudgePrompt(
        name=mmbu.NAME,
        fill=mmbu.fill,
        read_verdict=mmbu.read_verdict,
        sha256=mmbu.PROMPT_SHA256,
        template=mmbu.template,
    )
}
"""By name. A benchmark without a judge never asks, so it may have any."""


def load(name: str) -> JudgePrompt:
    """The prompt of that name; MMBU's for '', since some prompt must stand in a judge's identity. Raises
    ConfigError for a name that a plug-in made up."""
    prompt = PROMPTS.get(name or mmbu.NAME)
    if prompt is None:
        raise ConfigError(
            f"the benchmark asks for the judge's prompt '{name}', which does not exist; known are: "
            f"{', '.join(PROMPTS)}."
        )
    # Before the run: in its middle there may be no file descriptor for it.
    prompt.template()
    return prompt
