"""Scores from stored facts: derived, repeatable, free."""

from __future__ import annotations

import hashlib

from mmbu_async.model import Prompt

CHUNK = 4096
"""Rows scored at once: the IoU kernel's arrays stay in cache."""


def prompt_sha(prompt: Prompt) -> bytes:
    """Key under which a verdict on this filled judge prompt is found again."""
    return hashlib.sha256(prompt.text.encode("utf-8", "surrogatepass")).digest()
