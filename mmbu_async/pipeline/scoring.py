"""Scores from stored facts: derived, repeatable, free."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from mmbu_async.model import Answer, Benchmark, Json, JudgeItem, Prompt, Score, ScoreItem, Verdict
from mmbu_async.store import Replaced, RunRecord, ScoreInput, Store

CHUNK = 256
"""Rows scored at once. They are in memory together, up to 10 KB each; the IoU kernel needs no more than some
hundred for its arrays to be worth their making."""

Scored = tuple[ScoreInput, Answer, Score]
Fill = Callable[[JudgeItem], Prompt]


def prompt_sha(prompt: Prompt) -> bytes:
    """Key under which a verdict on this filled judge prompt is found again."""
    return hashlib.sha256(prompt.text.encode("utf-8", "surrogatepass")).digest()


def score_run(
    store: Store,
    run: RunRecord,
    benchmark: Benchmark,
    fill: Fill,
    *,
    judge_id: int | None,
    only_stale: bool,
    package_version: str,
    publish: Mapping[str, Json] | None = None,
) -> Replaced:
    """Write the score of each row that has a reply. Nothing is bought.

    A verdict counts only where it answers the prompt that today's reading of the reply would ask; else the
    row is unjudged until a rejudge. With `publish` judge and settings of the run change with the scores.
    """
    if judge_id is not None:
        store.derive_verdicts(run.id, judge_id)
    inputs = store.score_inputs(run.id, judge_id, only_stale=only_stale)
    return store.replace_scores(
        run.id,
        judge_id,
        scored(inputs, benchmark, fill),
        package_version=package_version,
        now=time.time(),
        publish=publish,
        while_judge=publish is None,
    )


def any_to_ask(
    store: Store, run: RunRecord, benchmark: Benchmark, fill: Fill, judge_id: int, *, judged: bool
) -> bool:
    """Whether any row with a reply lacks a usable verdict of the judge; `judged`: or has one on another
    reading of the reply."""
    for row in store.score_inputs(run.id, judge_id):
        item = benchmark.judge_item(row.sample, benchmark.read(row.sample, row.completion))
        if item is None:
            continue
        if row.verdict is None or row.verdict.correct is None:
            return True
        if judged and row.prompt_sha != prompt_sha(fill(item)):
            return True
    return False


def scored(inputs: Iterator[ScoreInput], benchmark: Benchmark, fill: Fill) -> Iterator[Scored]:
    """Rows with what their replies and verdicts are worth today, in the order in which they come."""
    while chunk := list(islice(inputs, CHUNK)):
        items = [_item(one, benchmark, fill) for one in chunk]
        for one, item, score in zip(chunk, items, benchmark.score(items), strict=True):
            yield one, item.answer, score


def _item(one: ScoreInput, benchmark: Benchmark, fill: Fill) -> ScoreItem:
    answer = benchmark.read(one.sample, one.completion)
    verdict = one.verdict
    if verdict is not None and verdict.correct is not None:
        asked = benchmark.judge_item(one.sample, answer)
        if asked is not None and prompt_sha(fill(asked)) != one.prompt_sha:
            verdict = Verdict(correct=None, reply="", judge=verdict.judge)
    return ScoreItem(sample=one.sample, answer=answer, verdict=verdict, image_scale=one.image_scale)
