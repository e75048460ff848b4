"""Before a long run one row goes to the model and its answer to each judge; all is kept like any other.

Somebody may be waiting for it, so that it is short: a minute or two of tries and, since an endpoint that is
slow is no dead one, the time limit of the attempt that is under way then, of the model and of the judges.
Only an endpoint that asks to be left alone (Retry-After) is waited for longer.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator

from mmbu_async.errors import EndpointDownError
from mmbu_async.model import TRANSIENT_KINDS, Answer, Completion, Failure
from mmbu_async.pipeline.inferring import PAGE, InferStage
from mmbu_async.pipeline.judging import JudgeStage
from mmbu_async.pipeline.panel import Panel
from mmbu_async.pipeline.placement import ReadyRow
from mmbu_async.store import StoredSample

TRIES = 3
"""Rows that may be refused (a content policy) or get no verdict before the run is not begun."""
PATIENCE_S = 120.0
"""Seconds from the first row on after which no further attempt is made."""
SEARCHED = 4
"""Pages searched for a row that needs the judge."""


async def preflight_of_judges(panel: Panel, run_id: int, *, before_session: int | None, judged: bool) -> None:
    """Before verdicts alone are bought: requests the stop when a judge does not answer at all. What it
    answers says nothing here, for the first rows may be those on which it never gave a verdict."""
    until = time.monotonic() + PATIENCE_S
    asked = await panel.first_rows(run_id, before_session=before_session, judged=judged)
    async with asyncio.TaskGroup() as group:
        tried = [(stage, group.create_task(_judged(stage, until))) for stage in asked]
    dead = [stage.label for stage, task in tried if not task.result() and not stage.replied]
    if dead and not panel.stop:
        panel.stop.request(
            EndpointDownError(
                f"preflight: the judge {', '.join(dead)} did not answer the first row; everything so far is "
                "kept: try again when it is up (`mmbu doctor` says more)."
            )
        )


async def preflight(infer: InferStage) -> None:
    """Requests the stop of the run when the model or a judge cannot answer."""
    until = math.inf
    tried = 0
    # Judges that have given no verdict on any of the rows; None before the first reply.
    silent: list[str] | None = None
    async for row in _candidates(infer):
        if infer.stop:
            return
        prepared = next(iter(await infer.placement.prepare([row])), None)
        # On a cluster whose jobs wait in a queue, the first row is prepared when the first of them runs.
        until = min(until, time.monotonic() + PATIENCE_S)
        if not isinstance(prepared, ReadyRow):
            # A broken image says nothing of the endpoint. The run meets the row again and records it.
            continue
        outcome = await infer.ask(prepared, patience_s=until - time.monotonic())
        if isinstance(outcome, Completion):
            now = await _silent(infer.panel, until)
            silent = now if silent is None else [label for label in silent if label in now]
        judged = silent == []
        tried += 1
        if judged or tried == TRIES or time.monotonic() > until:
            break
    else:
        return
    if judged or infer.stop or (infer.breaker.proven and _refused(outcome)):
        return
    what = f"the judge {', '.join(silent or ())} gave no verdict on"
    why = ""
    if isinstance(outcome, Failure):
        what = "the model did not answer"
        why = f" ({outcome.message})"
    rows = f"{tried} rows" if tried > 1 else "row"
    infer.stop.request(
        EndpointDownError(
            f"preflight: {what} the first {rows}{why}; `mmbu doctor` says more, "
            "--no-preflight runs all the same."
        )
    )


def _refused(outcome: Completion | Failure | None) -> bool:
    """Whether the endpoint is there and would not take this row: a resume meets such rows first."""
    return isinstance(outcome, Failure) and outcome.kind not in TRANSIENT_KINDS


async def _silent(panel: Panel, until: float) -> list[str]:
    """Judges that gave the row just answered no verdict, where it needs one. They are asked side by side: a
    panel of dead ones costs the time of one."""
    async with asyncio.TaskGroup() as group:
        asked = [(stage.label, group.create_task(_judged(stage, until))) for stage in panel.stages]
    return [label for label, task in asked if not task.result()]


async def _judged(judge: JudgeStage, until: float) -> bool:
    if not len(judge.queue):
        return True
    task = await judge.next_unknown()
    return task is None or await judge.ask(task, patience_s=until - time.monotonic()) is not None


async def _candidates(infer: InferStage) -> AsyncIterator[StoredSample]:
    """Open rows, those that need the judge first."""
    others: list[StoredSample] = []
    position, pages = -1, 0
    probe = Answer(text="probe", how="tag")
    while pages < SEARCHED and (page := await infer.reader.pending(infer.run_id, position, PAGE)):
        position = page[-1].sample.position
        pages += 1
        for row in page:
            if infer.panel.benchmark.judge_item(row.sample, probe) is not None:
                yield row
            elif len(others) < TRIES:
                others.append(row)
    for row in others:
        yield row
