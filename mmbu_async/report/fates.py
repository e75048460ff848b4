"""Where answers were lost: each row once, under the first thing that went wrong with it."""

from __future__ import annotations

from collections import Counter, defaultdict

from mmbu_async.model import Finish, Status
from mmbu_async.report.groups import Counts, Figures, Group
from mmbu_async.stats import Pattern
from mmbu_async.store import Outcome

UNTAGGED = "untagged"
"""How an answer was found where the reply had no complete answer tag."""

FATES = (
    *("pending", "failed", "unjudged"),
    *("refused", "truncated", "empty", "guessed", UNTAGGED),
)
"""In the order in which they are looked for. A row to which none applies committed to an answer, and its fate
is how that was found."""


def fate(row: Outcome) -> str:
    """What became of a row."""
    if row.score is None or row.status in _OPEN:
        return _OPEN[row.status]
    if row.finish is Finish.REFUSAL:
        return "refused"
    if row.finish is Finish.LENGTH:
        return "truncated"
    if not row.answered:
        return "empty"
    if row.score.detail.get("guess"):
        return "guessed"
    return row.how or UNTAGGED


_OPEN = {Status.PENDING: "pending", Status.FAILED: "failed", Status.UNJUDGED: "unjudged"}


class Fates:
    """Counts rows by their fate."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counts] = defaultdict(Counter)

    def add(self, row: Outcome, outcome: Pattern | None) -> None:
        """One row that counts in figures; None where it is open."""
        self._counts[fate(row)][outcome] += 1

    def groups(self, figures: Figures) -> tuple[Group, ...]:
        """Answers that were committed to first, by how they were found and the most frequent first; then the
        fates from least to most severe."""
        found = figures.groups(self._counts)
        severity = {name: place for place, name in enumerate(reversed(FATES), start=1)}
        return tuple(sorted(found, key=lambda group: severity.get(group.name or "", 0)))
