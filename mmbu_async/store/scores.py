"""What scores are made from, and where they go. Scores are derived: they can be made again at any time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, cast

from mmbu_async.model import Answer, Completion, Json, Sample, Score, Verdict
from mmbu_async.store import changes, codec
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import insert_page, transaction

ROWS_A_PAGE = 250
"""Rows in memory at once, each with its sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreInput:
    """A row with a reply, and the judge's word on it where there is one."""

    key: int
    sample: Sample
    family: str
    completion: Completion
    image_scale: float
    verdict: Verdict | None
    prompt_sha: bytes | None
    """Of the prompt that the verdict answers: where the committed answer is read differently today, the
    prompt is another one and the verdict does not count."""


class Replaced(NamedTuple):
    """What came of a scoring."""

    rows: int
    """Scores written."""
    rescore: int | None
    """Under which the changed ones' former values are kept; None: no row had another score before."""


def inputs(
    connection: sqlite3.Connection, run_id: int, judge_id: int | None, *, only_stale: bool
) -> Iterator[ScoreInput]:
    """Rows with a reply in order of position; with `only_stale` those whose score is missing, was made with
    another judge, or before the present verdict."""
    after = 0
    while True:
        page = connection.execute(
            query("score_page"),
            {"run": run_id, "judge": judge_id, "stale": only_stale, "after": after, "n": ROWS_A_PAGE},
        ).fetchall()
        if not page:
            return
        yield from map(_input_from, page)
        after = page[-1][0]


def _input_from(values: tuple[Any, ...]) -> ScoreInput:
    middle = 1 + codec.SAMPLE_WIDTH
    end = middle + codec.COMPLETION_WIDTH
    sample, family = codec.sample_from(values[1:middle])
    image_scale, judged, correct, reply, prompt_sha, judge = values[end:]
    return ScoreInput(
        key=values[0],
        sample=sample,
        family=family,
        completion=codec.completion_from(values[middle:end]),
        image_scale=image_scale,
        verdict=None if judged is None else verdict_from(correct, reply, judge),
        prompt_sha=prompt_sha,
    )


def verdict_from(correct: int | None, reply: str, judge: str) -> Verdict:
    return Verdict(correct=None if correct is None else bool(correct), reply=reply, judge=judge)


def replace(
    connection: sqlite3.Connection,
    run_id: int,
    judge_id: int | None,
    scores: Iterable[tuple[ScoreInput, Answer, Score]],
    *,
    package_version: str,
    now: float,
    publish: Mapping[str, Json] | None = None,
    while_judge: bool = False,
) -> Replaced:
    """Store scores, all or none of them. Rows that are not among them keep theirs.

    They gather in a temporary table of this connection, so that scoring may take its time without holding
    up a run that is writing; only the last step locks the store. `publish` are settings: in that same step
    they become the run's, and the judge the run's judge, so that nobody ever sees one without the others.
    `while_judge` stores nothing where another judge has become the run's meanwhile.
    """
    connection.execute(query("new_scores"))
    stream = iter(scores)
    count = 0
    try:
        while page := list(islice(stream, ROWS_A_PAGE)):
            values = [_values(run_id, judge_id, *one) for one in page]
            insert_page(connection, query("put_new_score"), values)
            count += len(page)
        with transaction(connection):
            if while_judge and _judge_of(connection, run_id) != judge_id:
                return Replaced(rows=0, rescore=None)
            rescore = changes.keep(connection, run_id, package_version=package_version, now=now)
            connection.execute(query("publish_scores"))
            connection.execute(query("note_scoring"), {"run": run_id, "version": package_version, "now": now})
            if publish is not None:
                connection.execute(query("set_run_judge"), {"run": run_id, "judge": judge_id})
                config = codec.dump(dict(publish))
                connection.execute(query("set_run_config"), {"run": run_id, "config": config})
    finally:
        connection.execute(query("drop_new_scores"))
    return Replaced(rows=count, rescore=rescore)


def _judge_of(connection: sqlite3.Connection, run_id: int) -> int | None:
    (found,) = connection.execute(query("judge_of_run"), {"run": run_id}).fetchone()
    return cast("int | None", found)


def _values(
    run_id: int, judge_id: int | None, source: ScoreInput, answer: Answer, score: Score
) -> tuple[Any, ...]:
    verdict = source.verdict.correct if source.verdict else None
    return (
        run_id,
        source.key,
        judge_id,
        None if verdict is None else int(verdict),
        source.prompt_sha,
        answer.text,
        answer.how,
        score.status.value,
        None if score.correct is None else int(score.correct),
        score.tp,
        score.fp,
        score.fn,
        codec.dump(dict(score.detail)),
    )


def stale(connection: sqlite3.Connection, run_id: int, judge_id: int | None) -> bool:
    """Whether a row has a reply or verdict that its score does not know of."""
    (found,) = connection.execute(query("scores_stale"), {"run": run_id, "judge": judge_id}).fetchone()
    return bool(found)
