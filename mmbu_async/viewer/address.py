"""What a page shows, to and from its address: an address can be kept, sent on and opened again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, unquote, urlencode

from mmbu_async.model import Finish
from mmbu_async.store import RowFilter
from mmbu_async.store.listed import FLIPPED, FLIPS, OUTCOMES

OUTCOME_WORDS: Mapping[str, str] = {
    "right": "Right",
    "wrong": "Wrong",
    "unjudged": "Unjudged",
    "ungraded": "Ungraded",
    "failed": "Failed",
    "pending": "Pending",
}
FINISH_WORDS: Mapping[str, str] = {
    Finish.STOP: "came to its end",
    Finish.LENGTH: "truncated by the token limit",
    Finish.REFUSAL: "refused",
    Finish.OTHER: "other",
}
FLIP_WORDS: Mapping[str, str] = {
    FLIPPED: "flipped",
    "gained": "gained",
    "lost": "lost",
    "both right": "both right",
    "both wrong": "both wrong",
}
_DIFFER = "differ"
_NAMES = frozenset(
    {
        *("run", "beside", "q", "family", "stratum", "outcome", "how", "finish", "judges", "flip"),
        *("pictures", "after", "before", "key", "n", "size"),
    }
)
_NOT_CARRIED = re.compile("[%\x00-\x1f\x7f]")
LARGEST_KEY = 2**63 - 1


class BadAddressError(Exception):
    """An address that means no page. Its text is a sentence for the reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Everything that an address of the browser can say."""

    run: str
    beside: str | None = None
    """Name of the run whose rows stand beside these."""
    wanted: RowFilter = field(default_factory=RowFilter)
    pictures: bool = True
    """Whether a list shows small images."""
    after: int = 0
    """A page of a list begins behind this key, or ends before that one."""
    before: int | None = None

    def rows(self, **changes: Any) -> str:
        """Where the list is; changes go to the filter and set it back to its first page."""
        return self._moved(changes).here

    def without(self, attribute: str, value: str) -> str:
        """The list with one stratum less to hold."""
        return self.rows(strata=tuple(pair for pair in self.wanted.strata if pair != (attribute, value)))

    def row(self, key: int) -> str:
        """Where a row is, with the filter that next and previous follow."""
        return f"row?{_encoded([*self._pairs(), ('key', str(key))])}"

    def image(self, key: int, index: int, *, small: bool = False) -> str:
        pairs = [("run", self.run), ("beside", self.beside or ""), ("key", str(key)), ("n", str(index))]
        pairs.append(("size", "small" if small else ""))
        return f"image?{_encoded([pair for pair in pairs if pair[1]])}"

    def paged(self, *, after: int = 0, before: int | None = None) -> str:
        return replace(self, after=after, before=before).here

    def with_runs(self, run: str, beside: str | None) -> str:
        """The same filter over other runs. Keys are of a dataset, so a list begins at its beginning."""
        changed = replace(self, run=run, beside=beside, after=0, before=None)
        if beside is None and self.wanted.flip is not None:
            changed = replace(changed, wanted=replace(changed.wanted, flip=None))
        return changed.here

    def with_pictures(self, pictures: bool) -> str:
        return replace(self, pictures=pictures).here

    def around(self, key: int, after: int) -> str:
        """The page of the list, behind `after`, on which a row is."""
        return f"{self.paged(after=after)}#row-{key}"

    @property
    def cleared(self) -> str:
        return replace(self, wanted=RowFilter(), after=0, before=None).here

    @property
    def here(self) -> str:
        pairs = self._pairs()
        if self.before is not None:
            pairs.append(("before", str(self.before)))
        elif self.after:
            pairs.append(("after", str(self.after)))
        return f"./?{_encoded(pairs)}"

    def hidden(self, *leave_out: str) -> list[tuple[str, str]]:
        """What a form must carry along beside its own fields."""
        return [pair for pair in self._pairs() if pair[0] not in leave_out]

    def _moved(self, changes: Mapping[str, Any]) -> Address:
        return replace(self, wanted=replace(self.wanted, **changes), after=0, before=None)

    def _pairs(self) -> list[tuple[str, str]]:
        wanted = self.wanted
        pairs = [
            ("run", self.run),
            ("beside", self.beside),
            ("outcome", wanted.outcome),
            ("flip", wanted.flip),
            ("q", wanted.text or None),
            ("family", token(wanted.family)),
            *(("stratum", stratum_text(*pair)) for pair in wanted.strata),
            ("how", token(wanted.how)),
            ("finish", wanted.finish),
            ("judges", _DIFFER if wanted.disputed else None),
            ("pictures", None if self.pictures else "0"),
        ]
        return [(name, value) for name, value in pairs if value is not None]


def stratum_text(attribute: str, value: str) -> str:
    """`attribute=value`; an `=` of the attribute's own is encoded."""
    return f"{token(attribute).replace('=', '%3D')}={token(value)}"


def token(value: str | None) -> Any:
    """A value as a form can carry it: a field would lose NUL and change line ends."""
    return None if value is None else _NOT_CARRIED.sub(lambda found: f"%{ord(found[0]):02X}", value)


def read_address(pairs: Iterable[tuple[str, str]], runs: Sequence[str]) -> Address:
    """Raises BadAddressError where it means nothing. `runs` are those that are there, the default first."""
    single: dict[str, str] = {}
    strata: dict[tuple[str, str], None] = {}
    for name, value in pairs:
        if name not in _NAMES:
            raise BadAddressError(f"The address has a part “{name}”, which means nothing here.")
        if not value:
            continue
        if name == "stratum":
            attribute, mark, wanted = value.partition("=")
            if not mark:
                raise BadAddressError(f"“{value}” is no stratum: write attribute=value.")
            strata[unquote(attribute), unquote(wanted)] = None
        else:
            single[name] = value
    run = single.get("run", runs[0])
    others = [name for name in runs if name != run]
    beside: str | None = single.get("beside", others[0] if others else None)
    for name in filter(None, (run, beside)):
        if name not in runs:
            raise BadAddressError(f"This browser was not started for a run “{name}”.")
    beside = None if beside == run else beside
    if beside is None and "flip" in single:
        raise BadAddressError("Rows flip between two runs, and there is only one here.")
    return Address(
        run=run,
        beside=beside,
        wanted=RowFilter(
            # NUL ends a pattern, and nobody types it.
            text=single.get("q", "").replace("\0", ""),
            family=_untoken(single, "family"),
            strata=tuple(strata),
            outcome=_one_of(OUTCOMES, single, "outcome"),
            how=_untoken(single, "how"),
            finish=_one_of(tuple(Finish), single, "finish"),
            disputed=True if _one_of((_DIFFER,), single, "judges") else None,
            flip=_one_of((*FLIPS, FLIPPED), single, "flip"),
        ),
        pictures=single.get("pictures") != "0",
        after=read_number(single, "after") or 0,
        before=read_number(single, "before"),
    )


def read_number(single: Mapping[str, str], name: str) -> int | None:
    """A key or an index. Raises BadAddressError where it is no number that could be one."""
    text = single.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= LARGEST_KEY):
        raise BadAddressError(f"“{text}” is no number that “{name}” can have.")
    return int(text)


def _untoken(single: Mapping[str, str], name: str) -> str | None:
    return unquote(single[name]) if name in single else None


def _one_of(known: Sequence[str], single: Mapping[str, str], name: str) -> str | None:
    value = single.get(name)
    if value is not None and value not in known:
        raise BadAddressError(f"“{value}” is nothing that “{name}” can be: it is one of {', '.join(known)}.")
    return value


def _encoded(pairs: Sequence[tuple[str, str]]) -> str:
    return urlencode(pairs, quote_via=quote, safe="=")
