"""The table that MMMU's own evaluation prints: each discipline, its subjects below it, all at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mmbu_async.report.model import OfficialLine
from mmbu_async.stats import Pattern

ORDER = (
    *("Art and Design", "Business", "Science", "Health and Medicine"),
    *("Humanities and Social Science", "Tech and Engineering"),
)
"""Disciplines as the official table has them; others follow in the order of their rows."""
AFTER_LITERATURE = ("Sociology", "Psychology")
"""The only two subjects that are not in the order of the alphabet within their discipline."""


class Official:
    """Counts rows by discipline and subject."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], Counter[bool | None]] = {}

    def add(self, strata: Mapping[str, Sequence[str]], outcome: Pattern | None) -> None:
        """One row, None where it is open; rows that do not have both strata are passed over."""
        disciplines, subjects = strata.get("discipline"), strata.get("subject")
        if disciplines and subjects:
            counts = self._counts.setdefault((disciplines[0], subjects[0]), Counter())
            counts[None if outcome is None else outcome.correct] += 1

    def lines(self) -> tuple[OfficialLine, ...]:
        """Empty where no row has both strata."""
        if not self._counts:
            return ()
        disciplines = sorted(dict.fromkeys(name for name, _ in self._counts), key=_place)
        lines = []
        for discipline in disciplines:
            inside = {subject: found for (name, subject), found in self._counts.items() if name == discipline}
            lines.append(_line(f"Overall-{discipline}", 1, inside.values()))
            lines += [_line(name, 2, (inside[name],)) for name in sorted(inside, key=_subject_place)]
        return (*lines, _line("Overall", 0, self._counts.values()))


def _line(name: str, level: int, parts: Iterable[Counter[bool | None]]) -> OfficialLine:
    total: Counter[bool | None] = Counter()
    for part in parts:
        total.update(part)
    n = total.total()
    return OfficialLine(
        name=name, level=level, n=n, right=total[True], accuracy=None if total[None] else total[True] / n
    )


def _place(discipline: str) -> int:
    return ORDER.index(discipline) if discipline in ORDER else len(ORDER)


def _subject_place(subject: str) -> tuple[int, str]:
    return (AFTER_LITERATURE.index(subject) + 1, "") if subject in AFTER_LITERATURE else (0, subject)
