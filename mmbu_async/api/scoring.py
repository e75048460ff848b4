"""Scores from stored replies: when asked for, and where a reader needs them up to date."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mmbu_async.pipeline.opening import Rules, config_of, open_existing, rules_of
from mmbu_async.pipeline.scoring import score_run
from mmbu_async.report.panel import tied
from mmbu_async.store import Replaced, RunCounts, RunRecord, Store
from mmbu_async.version import VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """What a re-score did."""

    rows: int
    changed: tuple[str, ...]
    """Ids of rows whose answer or score is another one now; a row's first score is no change."""
    right_to_wrong: int = 0
    wrong_to_right: int = 0


def rescore(run: str, *, store: Path = Path("mmbu.sqlite")) -> Rescored:
    """Read and score every stored reply anew; buys nothing. Reports then tell which rows changed."""
    with open_existing(store) as opened:
        found = opened.run(run)
        done = _score(opened, found, rules_of(config_of(found, store)), only_stale=False)
        changes = [] if done.rescore is None else list(opened.score_changes(done.rescore))
        moves = [(change.score.correct, change.correct_now) for change in changes]
        return Rescored(
            rows=done.rows,
            changed=tuple(change.row_id for change in changes),
            right_to_wrong=moves.count((True, False)),
            wrong_to_right=moves.count((False, True)),
        )


def with_current_scores(store: Store, run: RunRecord, path: Path) -> RunRecord:
    """The run with scores that are up to date."""
    bring_up_to_date(store, run, path)
    return store.run(run.name)


def bring_up_to_date(store: Store, run: RunRecord, path: Path) -> None:
    judge_id = run.judge.id if run.judge is not None else None
    if judge_id is not None:
        store.derive_verdicts(run.id, judge_id)
    if store.scores_stale(run.id, judge_id):
        _score(store, run, rules_of(config_of(run, path)), only_stale=True)
    now = store.run(run.name)
    if (now.judge.id if now.judge is not None else None) != judge_id:
        # A rejudge has ended meanwhile: what was scored is not taken.
        bring_up_to_date(store, now, path)


def still_tied(store: Store, run: RunRecord, counts: RunCounts) -> int:
    """The votes are read only where rows are open under a verdict."""
    return tied(store, run) if counts.completed > counts.scored else 0


def _score(store: Store, run: RunRecord, rules: Rules, *, only_stale: bool) -> Replaced:
    return score_run(
        store,
        run,
        rules.benchmark,
        rules.fill,
        judge_id=run.judge.id if run.judge is not None else None,
        only_stale=only_stale,
        package_version=VERSION,
    )
