"""Runs for the long form: each as its own judge sees it, and on demand as every other judge would."""

from __future__ import annotations

from collections.abc import Iterator

from mmbu_async.pipeline.opening import Rules
from mmbu_async.pipeline.scoring import scored
from mmbu_async.report.take import Take
from mmbu_async.store import JudgeRecord, LongRow, RunRecord, ScoreInput, Store


def takes(store: Store, run: RunRecord, *, others: Rules | None) -> Iterator[Take]:
    """`others`: the rules by which verdicts of further judges are scored; None: only the run's own judge."""
    attributes = store.attributes(run.id)
    own = run.judge
    yield Take(run=run, judge=own.name if own else None, attributes=attributes, rows=store.long_rows(run.id))
    if others is None:
        return
    for judge in store.judges(run.id):
        if own is None or judge.id != own.id:
            rows = _under(store, run, judge, others)
            yield Take(run=run, judge=judge.name, attributes=attributes, rows=rows)


def _under(store: Store, run: RunRecord, judge: JudgeRecord, rules: Rules) -> Iterator[LongRow]:
    """The rows with the scores that this judge's verdicts give. Both streams are in the order of keys."""
    scores = scored(store.score_inputs(run.id, judge.id), rules.benchmark, rules.fill)
    found = next(scores, None)
    for row in store.long_rows(run.id):
        if found is None or found[0].key != row.key:
            # Without a reply there is nothing that a judge could see otherwise.
            yield row
            continue
        source, _, score = found
        yield row._replace(
            status=score.status,
            correct=score.correct,
            tp=score.tp,
            fp=score.fp,
            fn=score.fn,
            judged=_is_judged(source),
        )
        found = next(scores, None)


def _is_judged(source: ScoreInput) -> bool:
    return source.verdict is not None and source.verdict.correct is not None
