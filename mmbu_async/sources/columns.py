"""Which columns of a table mean what, where copies of a benchmark name them differently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mmbu_async.errors import DataError


def columns(
    found: Iterable[str],
    wanted: Mapping[str, Sequence[str]],
    where: str,
    *,
    optional: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Meaning -> the table's column. The first candidate that is there wins, whatever its case or spacing.

    A meaning of `optional` that has no column is left out; one of `wanted` is a DataError that says what was
    looked for and what was found.
    """
    names = list(found)
    spelt = {_plain(name): name for name in reversed(names)} | {name: name for name in names}
    mapping: dict[str, str] = {}
    missing: list[str] = []
    for meaning, candidates in {**wanted, **(optional or {})}.items():
        column = next(
            (spelt[key] for name in candidates for key in (name, _plain(name)) if key in spelt), None
        )
        if column is not None:
            mapping[meaning] = column
        elif meaning in wanted:
            missing.append(f"{meaning} (looked for {', '.join(candidates)})")
    if missing:
        raise DataError(
            f"{where}: has no column for {'; none for '.join(missing)}; its columns are "
            f"{', '.join(names) or 'none'}: rename them, or give another copy of the data."
        )
    return mapping


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
