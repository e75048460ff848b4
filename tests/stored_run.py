"""Stores with runs in them, filled through the store's own doors: what every test of reports begins with."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from mmbu_async.model import (
    Answer,
    Attempt,
    Completion,
    Failure,
    FailureKind,
    Finish,
    ImageRef,
    Sample,
    Score,
    Status,
    Timing,
    Usage,
    Verdict,
)
from mmbu_async.store import CallRecord, LeaseOwner, RunRecord, Store, VerdictRecord, Writer

Row = Mapping[str, Any]
"""May hold:

id, question, answer, options, route, family, strata, fields, images: of the sample;
reply, finish, reasoning, model, request_id, usage, cost: of the reply; failures: kinds of the attempts before
it, failure_message: what they say; unfinished: the last attempt is not final;
image_scale, image_note: of all its calls;
judged: the verdict (True, False, None), judge_reply, shared; others: verdicts of further judges by model;
committed, how: of the answer; correct, tp, fp, fn, detail: of the score, made where `correct` is given, or
the row was judged; ungraded: its answer is not public.
"""
MakeRun = Callable[..., tuple[Store, RunRecord]]

OWNER = LeaseOwner(host="workstation", boot="b", pid=1, process="1")
IDENTITY = {
    "benchmark": "mmbu-public",
    "dataset": "f" * 64,
    "prompts": {"system": "5" * 64, "suffix_single_answer": "6" * 64},
    "images": {"max_edge": 8000},
    "model": "test-vlm-1",
    "endpoint": "openai",
    "max_tokens": 2048,
    "temperature": 0.0,
    "seed": None,
    "params": {},
}
OFFICIAL_JUDGE = {
    "model": "claude-sonnet-5",
    "endpoint": "anthropic",
    "max_tokens": 512,
    "prompt": "c24a05faadcb87e6d5ad4eecf6e5697f6ba50a7d8dc7614fc510e6a491f8cd7b",
}
CONFIG: Mapping[str, Any] = {
    "model": "test-vlm-1",
    "data": None,
    "limit": None,
    "task": [],
    "where": {},
    "judge": {"model": "claude-sonnet-5", "endpoint": "anthropic", "base_url": None},
}


class RunMaker:
    """Makes runs in one store file; runs over equal rows of a benchmark share its dataset."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path = path
        self._stack = stack

    def __call__(
        self,
        rows: Sequence[Row],
        *,
        judge: Mapping[str, Any] | None = OFFICIAL_JUDGE,
        config: Mapping[str, Any] = CONFIG,
        identity: Mapping[str, Any] = IDENTITY,
        limit: int | None = None,
        name: str = "test-run",
        benchmark: str = "mmbu-public",
        model: str = "test-vlm-1",
        host: str = "api.example.org",
        source: str = "mmbu/mmbu-public, split train",
        scored: bool = True,
    ) -> tuple[Store, RunRecord]:
        store = self._stack.enter_context(Store.open(self.path))
        config = {"benchmark": benchmark, **config}
        dataset = store.register_dataset(benchmark, source, f"stamp {name}", _samples(rows), now=1000.0)
        judge_id = store.judge(str(judge["model"]), judge, now=1000.0).id if judge else None
        run = store.create_run(
            name=name,
            benchmark=benchmark,
            dataset_id=dataset.id,
            model=model,
            endpoint="openai",
            host=host,
            identity=identity,
            config=config,
            package_version="0.1.0",
            now=1_800_000_000.0,
            judge_id=judge_id,
        )
        store.select(run.id, None, limit)
        session = store.begin_session(
            run.id, kind="run", owner=OWNER, package_version="0.1.0", config=config, now=2000.0
        )
        chosen = list(rows)[:limit]
        models = dict.fromkeys(model for row in chosen for model in row.get("others", ()))
        others = {model: store.judge(model, {"model": model}, now=1000.0).id for model in models}
        asyncio.run(_write(store.path, run.id, session, judge_id, others, chosen))
        store.end_session(session, "done", now=2100.0)
        if scored:
            _score(store, run.id, judge_id, chosen)
        return store, store.run(name)


def _samples(rows: Sequence[Row]) -> Iterator[tuple[Sample, str]]:
    for position, row in enumerate(rows):
        sample = Sample(
            id=row.get("id", f"row-{position}"),
            position=position,
            question=row.get("question", "What is shown?"),
            answer=row.get("answer", "nucleus"),
            options=row.get("options", ("nucleus", "nucleolus")),
            route=row.get("route", "single_answer"),
            images=tuple(ImageRef(locator=name) for name in row.get("images", ("images/a.png",))),
            strata=row.get("strata", {}),
            fields=row.get("fields", {}),
        )
        yield sample, row.get("family", "classification")


def _keys(path: Path, run: int) -> list[int]:
    """By which calls and verdicts name the selected rows."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT sample_id FROM selection WHERE run_id = ? ORDER BY sample_id", (run,)
        )
        return [key for (key,) in found]


async def _write(
    path: Path, run: int, session: int, judge: int | None, others: Mapping[str, int], rows: Sequence[Row]
) -> None:
    async with Writer.open(path, synchronous="normal") as writer:
        for key, row in zip(_keys(path, run), rows, strict=True):
            common = {
                "run_id": run,
                "session_id": session,
                "sample_key": key,
                "image_scale": row.get("image_scale", 1.0),
                "image_note": row.get("image_note", ""),
            }
            attempts = _attempts(row)
            last = len(attempts)
            for attempt in attempts:
                final = attempt.number == last and not row.get("unfinished")
                await writer.write(CallRecord(**common, attempt=attempt, final=final))
            if "judged" not in row or judge is None:
                continue
            prompt = row.get("id", str(key)).encode("utf-8", "surrogatepass")
            sha = hashlib.sha256(prompt).digest()
            reply = row.get("judge_reply", f"Rationale: as listed. [RESULT] {int(bool(row['judged']))}")
            if not row.get("shared"):
                attempt = _attempt(
                    1, Completion(text=reply, finish=Finish.STOP, usage=_usage(200, 20)), 0.001
                )
                call = CallRecord(**common, judge_id=judge, prompt_sha=sha, attempt=attempt, final=True)
                await writer.write(call)
            said = {judge: row["judged"]} | {
                others[model]: held for model, held in row.get("others", {}).items()
            }
            for judge_id, correct in said.items():
                await writer.write(
                    VerdictRecord(
                        run_id=run,
                        sample_key=key,
                        judge_id=judge_id,
                        verdict=Verdict(correct=correct, reply=reply),
                        prompt_sha=sha,
                        shared=bool(row.get("shared")),
                    )
                )


def _attempts(row: Row) -> list[Attempt]:
    attempts = [
        _attempt(
            number,
            Failure(kind=FailureKind(kind), message=row.get("failure_message", f"it was {kind}"), status=429),
            0.0,
        )
        for number, kind in enumerate(row.get("failures", ()), start=1)
    ]
    if row.get("reply") is not None:
        reply = Completion(
            text=row["reply"],
            finish=Finish(row.get("finish", "stop")),
            finish_raw=row.get("finish_raw", row.get("finish", "stop")),
            reasoning=row.get("reasoning", ""),
            usage=row.get("usage", _usage(1000, 50)),
            model=row.get("model", "test-vlm-1-2026-11"),
            request_id=row.get("request_id", "req-1"),
        )
        attempts.append(_attempt(len(attempts) + 1, reply, row.get("cost", 0.01)))
    return attempts


def _attempt(number: int, outcome: Completion | Failure, cost: float | None) -> Attempt:
    timing = Timing(started_at=2000.0 + number, total_s=1.5, first_token_s=0.25)
    return Attempt(number=number, timing=timing, outcome=outcome, cost_usd=cost)


def _usage(input_tokens: int, output_tokens: int) -> Usage:
    return Usage(input_tokens=input_tokens, output_tokens=output_tokens)


def _score(store: Store, run: int, judge: int | None, rows: Sequence[Row]) -> None:
    def scores() -> Iterator[Any]:
        for source in store.score_inputs(run, judge):
            row = rows[source.sample.position]
            text = row.get("committed", row["reply"])
            yield source, Answer(text=text, how=row.get("how", "tag")), _row_score(row, text)

    store.replace_scores(run, judge, scores(), package_version="0.1.0", now=2200.0)


def _row_score(row: Row, text: str) -> Score:
    detail = row.get("detail", {})
    if row.get("ungraded"):
        return Score(status=Status.UNGRADED, detail=detail)
    correct = row.get("correct", row.get("judged"))
    if correct is None:
        return Score(status=Status.UNJUDGED)
    answered = bool(text.strip())
    return Score(
        status=Status.SCORED,
        correct=correct,
        tp=row.get("tp", int(correct)),
        fp=row.get("fp", int(not correct and answered)),
        fn=row.get("fn", int(not correct)),
        detail=detail,
    )
