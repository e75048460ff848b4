"""Which rows the last re-score changed, and for which cause."""

from __future__ import annotations

from mmbu_async.model import Status
from mmbu_async.report.model import ChangedRows, Rescoring
from mmbu_async.store import Cause, RunRecord, ScoreChange, Store

NAMED = 10
"""Row ids that a report names; the store has them all."""


def rescoring(store: Store, run: RunRecord) -> Rescoring | None:
    """None where no re-score of this run has changed anything."""
    last = store.last_rescore(run.id)
    if last is None:
        return None
    counted = {cause: Changed() for cause in Cause}
    named: list[str] = []
    for change in store.score_changes(last.id):
        counted[change.cause].add(change)
        if len(named) < NAMED:
            named.append(change.row_id)
    causes = tuple(found.rows_of(cause) for cause, found in counted.items() if found.rows)
    return Rescoring(
        at=last.at,
        package_version=last.package_version,
        rows=sum(cause.rows for cause in causes),
        causes=causes,
        row_ids=tuple(named),
    )


class Changed:
    """Changed rows, counted by what they were and what they are now."""

    def __init__(self) -> None:
        self.rows = 0
        self.right_to_wrong = 0
        self.wrong_to_right = 0
        self.now_open = 0

    def add(self, change: ScoreChange) -> None:
        was, now = change.score.correct, change.correct_now
        self.rows += 1
        self.right_to_wrong += was is True and now is False
        self.wrong_to_right += was is False and now is True
        self.now_open += was is not None and change.status_now is Status.UNJUDGED

    def rows_of(self, cause: Cause) -> ChangedRows:
        return ChangedRows(
            cause=cause.value,
            rows=self.rows,
            right_to_wrong=self.right_to_wrong,
            wrong_to_right=self.wrong_to_right,
            now_open=self.now_open,
        )
