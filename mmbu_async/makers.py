"""Who made a model, as far as its name tells: a judge may favour models of its own maker.

That judges do is measured in Panickssery, Bowman and Feng, LLM Evaluators Recognize and Favor Their Own
Generations, 2024 (arXiv:2404.13076). The names stand in makers.toml.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from typing import NamedTuple


class _Beginning(NamedTuple):
    text: str
    pattern: re.Pattern[str]
    maker: str


class _Table(NamedTuple):
    owners: dict[str, str]
    beginnings: tuple[_Beginning, ...]
    """The longest first."""


def makers(model: str) -> frozenset[str]:
    """The maker that a model's name begins with, and the one that stands before it as its owner. Usually one;
    none where the name says nothing."""
    table = _table()
    parts = [part for part in re.split(r"[/:@]", model.strip().lower()) if part]
    pieces = {piece for part in parts for piece in (part, *part.split("."))}
    found = {table.owners[piece] for piece in pieces if piece in table.owners}
    found |= {one.maker for piece in pieces for one in _beginning(piece, table)}
    return frozenset(found)


def same_makers(model: str, judges: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Judges that share a maker with the model, each with one that they share."""
    own = makers(model)
    for judge in dict.fromkeys(judges):
        shared = own & makers(judge)
        if shared:
            yield judge, min(shared)


def warning(model: str, judge: str, maker: str) -> str:
    """One sentence for reports and logs."""
    return (
        f"the judge {judge} and the model under test, {model}, are both by {maker}: a judge may favour "
        "models of its own maker; `mmbu rejudge` with a judge of another one shows how much that matters."
    )


def _beginning(piece: str, table: _Table) -> Iterator[_Beginning]:
    fit = next((one for one in table.beginnings if one.pattern.match(piece)), None)
    if fit is not None:
        yield fit


@cache
def _table() -> _Table:
    """Read once: a constant of the package."""
    text = resources.files("mmbu_async").joinpath("makers.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text)["maker"]
    beginnings = [
        _Beginning(text, _pattern(text), entry["name"]) for entry in entries for text in entry["models"]
    ]
    return _Table(
        owners={owner: entry["name"] for entry in entries for owner in entry["owners"]},
        beginnings=tuple(sorted(beginnings, key=lambda one: -len(one.text))),
    )


def _pattern(beginning: str) -> re.Pattern[str]:
    after = "[a-z0-9]" if beginning[-1].isdigit() else "[a-z]"
    return re.compile(f"{re.escape(beginning)}(?!{after})")
