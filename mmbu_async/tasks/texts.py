"""Prompt texts that the package carries, and their hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Protocol, runtime_checkable


def prompt_text(name: str) -> str:
    """The text of `prompts/NAME.txt`, byte for byte."""
    return (resources.files("mmbu_async.tasks") / "prompts" / f"{name}.txt").read_bytes().decode()


def hashes(prompts: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of each text, hexadecimal."""
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in prompts.items()}


@runtime_checkable
class TellsPrompts(Protocol):
    """A benchmark that gives out the texts behind its hashes, for whoever must repeat a run. Ours all do; a
    benchmark of a plug-in may."""

    def prompt_texts(self) -> Mapping[str, str]:
        """The texts of `prompt_hashes`, by the same names."""
