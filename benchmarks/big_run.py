"""A finished run as large as the full benchmark, made without a model: for whatever reads a store.

Rows come out by chance under a fixed seed: the figures of such a run mean nothing, their number does.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

from mmbu_async.model import (
    Answer,
    Attempt,
    Completion,
    Failure,
    FailureKind,
    Finish,
    ImageRef,
    Json,
    Sample,
    Score,
    Status,
    Timing,
    Usage,
    Verdict,
)
from mmbu_async.store import (
    CallRecord,
    LeaseOwner,
    RunRecord,
    ScoreInput,
    Store,
    VerdictRecord,
    Writer,
)

ROWS = 78_000
NAME = "big"

VALUES_OF = {
    "task": 60,
    "question_type": 3,
    "metadata_medical_domain": 15,
    "metadata_modality": 14,
    "metadata_submodality": 35,
    "metadata_specimen": 80,
    "metadata_body_part": 45,
    "metadata_topic": 60,
    "microns_per_pixel": 120,
    "metadata_stain": 18,
    "VQA_type": 2,
    "context_template": 3,
    "source_dataset": 55,
}
"""Thirteen attributes, and how many values each has."""

FAMILIES = (
    *("object detection", "classification", "counting"),
    *("fine-grained classification (from detection)", "fine-grained classification (from segmentation)"),
)
JUDGE = {
    "model": "claude-sonnet-5",
    "endpoint": "anthropic",
    "max_tokens": 512,
    "prompt": "c24a05faadcb87e6d5ad4eecf6e5697f6ba50a7d8dc7614fc510e6a491f8cd7b",
}
CONFIG: dict[str, Json] = {
    "data": None,
    "limit": None,
    "task": [],
    "where": {},
    "judge": {"model": "claude-sonnet-5", "endpoint": "anthropic", "base_url": None},
}
REPLY = "The nuclei are counted field by field, and the darker ones belong to lymphocytes. " * 4
PAGE = 2_000


def big_run(path: Path, *, rows: int = ROWS, name: str = NAME, seed: int = 0) -> RunRecord:
    """The run of that name in the store at `path`; made where it is not there yet. Runs of equal `rows` are
    over the same dataset, and come out differently under different seeds."""
    with Store.open(path, synchronous="normal") as store:
        if found := next((run for run in store.runs() if run.name == name), None):
            return found
        dataset = store.register_dataset(
            "mmbu-public", "made for a benchmark", f"{rows} rows", _samples(rows), now=1.0
        )
        judge = store.judge("claude-sonnet-5", JUDGE, now=1.0)
        run = store.create_run(
            name=name,
            benchmark="mmbu-public",
            dataset_id=dataset.id,
            model=f"big-vlm-{seed}",
            endpoint="openai",
            host="api.example.org",
            identity={"model": f"big-vlm-{seed}", "max_tokens": 2048, "prompts": {"system": "5" * 64}},
            config=CONFIG,
            package_version="0.1.0",
            now=1_800_000_000.0,
            judge_id=judge.id,
        )
        store.select(run.id, None, None)
        owner = LeaseOwner.current()
        session = store.begin_session(
            run.id, kind="run", owner=owner, package_version="0.1.0", config=CONFIG, now=1_800_000_000.0
        )
        outcomes = Outcomes(seed)
        first = next(store.rows(run.id)).key
        asyncio.run(_write(store.path, _records(run.id, session, judge.id, first, rows, outcomes)))
        store.end_session(session, "done", now=1_800_000_000.0 + rows / 20)
        store.replace_scores(
            run.id,
            judge.id,
            (outcomes.scored(source) for source in store.score_inputs(run.id, judge.id)),
            package_version="0.1.0",
            now=1_800_100_000.0,
        )
        return store.run(name)


def _samples(rows: int) -> Iterator[tuple[Sample, str]]:
    random = Random(1)
    for position in range(rows):
        family = random.choices(FAMILIES, (2, 5, 2, 4, 3))[0]
        strata = {
            name: (f"{name.removeprefix('metadata_')} {int(random.random() ** 2 * most)}",)
            for name, most in VALUES_OF.items()
            if random.random() > 0.1
        }
        fields: dict[str, Json] = {
            **{name: values[0] for name, values in strata.items()},
            "task": f"{family} | {strata.get('task', ('',))[0]}",
            "unique_id": f"row-{position}",
        }
        yield (
            Sample(
                id=f"row-{position}",
                position=position,
                question="Which structure does the red box enclose in this image?",
                answer="nucleus",
                options=("nucleus", "nucleolus", "mitochondrion", "background"),
                route="object_detection" if family == "object detection" else "single_answer",
                images=(ImageRef(locator=f"images/{position}.png"),),
                strata=strata,
                fields=fields,
            ),
            family,
        )


class Outcomes:
    """How each row comes out: the same for a row whenever it is asked."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def of(self, position: int) -> Random:
        return Random(self._seed * 1_000_003 + position)

    def right(self, position: int) -> bool:
        # What a row is like weighs more than the seed: two runs over the same rows agree on most.
        return 0.8 * Random(position).random() + 0.2 * self.of(position).random() < 0.6

    def scored(self, source: ScoreInput) -> tuple[ScoreInput, Answer, Score]:
        position = source.sample.position
        right, random = self.right(position), self.of(position)
        how = "untagged" if random.random() < 0.05 else "tag"
        detail: dict[str, Json] = {}
        if source.family == "object detection":
            iou = 0.5 + random.random() / 2 if right else max(0.0, random.random() - 0.5)
            box = [10.0, 10.0, 24.0, 24.0]
            detail = {"max_iou": iou, "predicted": [box], "truth": [box] * 3, "offered": 1}
            detail |= {"box_tp": int(right), "box_fp": int(not right), "box_fn": 3 - int(right)}
        score = Score(
            status=Status.SCORED,
            correct=right,
            tp=int(right),
            fp=int(not right),
            fn=int(not right),
            detail=detail,
        )
        return source, Answer(text="nucleus" if right else "nucleolus", how=how), score


def _records(
    run: int, session: int, judge: int, first: int, rows: int, outcomes: Outcomes
) -> Iterator[CallRecord | VerdictRecord]:
    for position in range(rows):
        random, key = outcomes.of(position), first + position
        yield from _model_calls(run, session, key, random)
        right = outcomes.right(position)
        sha = hashlib.sha256(b"%d" % position).digest()
        reply = f"Rationale: as listed. [RESULT] {int(right)}"
        judged = Completion(
            text=reply, finish=Finish.STOP, usage=Usage(input_tokens=700, output_tokens=90), model="judge"
        )
        yield CallRecord(
            run_id=run,
            session_id=session,
            sample_key=key,
            judge_id=judge,
            final=True,
            prompt_sha=sha,
            attempt=Attempt(
                number=1, timing=Timing(started_at=1.8e9, total_s=2.0), outcome=judged, cost_usd=0.003
            ),
        )
        yield VerdictRecord(
            run_id=run,
            sample_key=key,
            judge_id=judge,
            verdict=Verdict(correct=right, reply=reply),
            prompt_sha=sha,
        )


def _model_calls(run: int, session: int, key: int, random: Random) -> Iterator[CallRecord]:
    number = 1
    if random.random() < 0.05:
        yield _call(
            run, session, key, 1, Failure(kind=FailureKind.RATE_LIMIT, message="slow down", status=429), 0.1
        )
        number = 2
    usage = Usage(
        input_tokens=int(random.lognormvariate(7, 0.3)),
        output_tokens=int(random.lognormvariate(5, 0.8)),
        reasoning_tokens=int(random.lognormvariate(4, 1)) if random.random() < 0.7 else 0,
    )
    reply = Completion(
        text=REPLY + "<answer>nucleus</answer>",
        finish=Finish.LENGTH if random.random() < 0.02 else Finish.STOP,
        finish_raw="stop",
        usage=usage,
        model="big-vlm-2026-11",
        request_id=f"req_{key:024d}",
    )
    yield _call(run, session, key, number, reply, random.lognormvariate(0.5, 0.6))


def _call(
    run: int, session: int, key: int, number: int, outcome: Completion | Failure, total_s: float
) -> CallRecord:
    timing = Timing(started_at=1.8e9 + key / 20, total_s=total_s, first_token_s=total_s / 4)
    return CallRecord(
        run_id=run,
        session_id=session,
        sample_key=key,
        final=isinstance(outcome, Completion),
        attempt=Attempt(
            number=number,
            timing=timing,
            outcome=outcome,
            cost_usd=0.002 if isinstance(outcome, Completion) else 0.0,
        ),
    )


async def _write(path: Path, records: Iterator[CallRecord | VerdictRecord]) -> None:
    async with Writer.open(path, synchronous="normal") as writer:
        while page := list(islice(records, PAGE)):
            await writer.write(*_verdicts_last(page))


def _verdicts_last(page: Sequence[CallRecord | VerdictRecord]) -> list[CallRecord | VerdictRecord]:
    """Records of one kind one after the other: they go in many a statement."""
    return sorted(page, key=lambda one: isinstance(one, VerdictRecord))
