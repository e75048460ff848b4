"""The letters that stand for a question's options."""

from __future__ import annotations

from string import ascii_uppercase


def letters(options: int) -> str:
    """`ABCD` for four options. A question has 2 to 26; ValueError otherwise."""
    if not 2 <= options <= len(ascii_uppercase):
        raise ValueError(f"has {options} options, where a choice needs 2 to {len(ascii_uppercase)}")
    return ascii_uppercase[:options]
