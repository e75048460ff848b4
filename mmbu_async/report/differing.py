"""In which settings two runs are not alike: a difference of their scores may be a difference of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mmbu_async.model import Json
from mmbu_async.report import words
from mmbu_async.store import JudgeRecord, RunRecord

EXPECTED = frozenset({"benchmark", "dataset", "model"})
"""Not named: the first two are alike, or the runs are refused, and the model is what is compared."""
WIDEST = 60
"""Characters of a value that are shown."""


def differing(first: RunRecord, second: RunRecord) -> tuple[str, ...]:
    """A few words for each: sampling, prompts, images, judge, the version of the package that scored."""
    return (
        *_settings("", first.identity, second.identity),
        *_judges(first.judge, second.judge),
        *_versions(first, second),
    )


def _settings(prefix: str, first: Mapping[str, Json], second: Mapping[str, Json]) -> Iterator[str]:
    for name in sorted(first.keys() | second.keys()):
        one, other = first.get(name), second.get(name)
        if one == other or (not prefix and name in EXPECTED):
            continue
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _settings(f"{prefix}{name}.", one, other)
        elif prefix.startswith("prompts."):
            yield f"prompt {name}"
        else:
            yield f"{prefix}{name} ({_shown(one)} against {_shown(other)})"


def _judges(first: JudgeRecord | None, second: JudgeRecord | None) -> Iterator[str]:
    names = [judge.name if judge else "none" for judge in (first, second)]
    if names[0] != names[1]:
        yield f"judge ({_shown(names[0])} against {_shown(names[1])})"


def _versions(first: RunRecord, second: RunRecord) -> Iterator[str]:
    if first.scored_version != second.scored_version and first.scored_version and second.scored_version:
        yield f"scored by version ({first.scored_version} against {second.scored_version})"


def _shown(value: Json) -> str:
    text = words.setting(value)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
