"""A store with runs in it, for tests of every level: made through the store's own doors, in real files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from mmbu_async.model import (
    Attempt,
    Completion,
    Failure,
    FailureKind,
    Finish,
    ImageRef,
    Sample,
    Timing,
    Usage,
    Verdict,
)
from mmbu_async.store import CallRecord, LeaseOwner, RunRecord, Store, VerdictRecord

# No test is timed: a busy machine proves nothing.
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("suite", _COMMON, derandomize=True)
# `HYPOTHESIS_PROFILE=search` looks for what nobody has met yet: other examples at each run.
settings.register_profile("search", _COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

OWNER = LeaseOwner(host="workstation", boot="boot/pid:[1]", pid=1, process="1")


def a_sample(position: int, **changes: Any) -> Sample:
    values: dict[str, Any] = {
        "id": f"row-{position}",
        "position": position,
        "question": "How many nuclei are there?",
        "answer": "7",
        "options": ("3", "7"),
        "route": "single_answer",
        "images": (ImageRef(locator=f"images/{position}.png"),),
        "strata": {"task": ("counting", "cells"), "stain": ("H&E",)},
        "fields": {"unique_id": f"row-{position}", "microns_per_pixel": 0.25},
    }
    return Sample(**(values | changes))


class StoreKit:
    """One store file, and short names for what tests put into it."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path = path
        self._stack = stack

    def open(self, **options: Any) -> Store:
        """The store, closed when the test ends."""
        return self._stack.enter_context(Store.open(self.path, **options))

    def begin(
        self, store: Store, rows: int = 10, *, name: str = "night", limit: int | None = None
    ) -> tuple[RunRecord, int]:
        """A run over the first `limit` of `rows` rows, with a judge; and a session of it."""
        samples = ((a_sample(position), "counting") for position in range(rows))
        dataset = store.register_dataset("mmbu-public", "a folder", f"stamp {rows}", samples, now=1.0)
        judge = store.judge("claude-sonnet-5", {"model": "claude-sonnet-5"}, now=1.0)
        run = store.create_run(
            name=name,
            benchmark="mmbu-public",
            dataset_id=dataset.id,
            model="test-vlm",
            endpoint="openai",
            host="api.example.org",
            identity={"model": "test-vlm", "max_tokens": 2048},
            config={"limit": limit},
            package_version="0.1.0",
            now=2.0,
            judge_id=judge.id,
        )
        store.select(run.id, None, limit)
        return run, self.session(store, run, now=3.0)

    def session(self, store: Store, run: RunRecord, *, now: float, kind: str = "run") -> int:
        return store.begin_session(
            run.id, kind=kind, owner=OWNER, package_version="0.1.0", config={"rpm": 10}, now=now
        )

    def reply(
        self, run: RunRecord, session: int, key: int, text: str = "<answer>7</answer>", **changes: Any
    ) -> CallRecord:
        """A reply of the model under test. `attempt`, `cost` and `usage` are of the attempt, the rest of the
        record."""
        completion = Completion(
            text=text,
            finish=Finish.STOP,
            finish_raw="stop",
            usage=changes.pop("usage", Usage(input_tokens=1000, output_tokens=50, reasoning_tokens=20)),
            model="test-vlm-2026",
            request_id=f"req-{key}",
        )
        return self._call(run, session, key, completion, changes)

    def failure(
        self, run: RunRecord, session: int, key: int, kind: FailureKind = FailureKind.TIMEOUT, **changes: Any
    ) -> CallRecord:
        failure = Failure(kind=kind, message=f"it was {kind}", status=changes.pop("status", None))
        # As the client has it: an error costs nothing, a reply lost on its way nobody knows how much.
        cost = None if failure.status is None else 0.0
        return self._call(run, session, key, failure, {"cost": cost} | changes)

    def verdict(
        self, run: RunRecord, key: int, correct: bool | None, *, sha: bytes = b"p" * 32, **changes: Any
    ) -> VerdictRecord:
        assert run.judge is not None
        values: dict[str, Any] = {"judge_id": run.judge.id, "prompt_sha": sha} | changes
        reply = values.pop("reply", f"As listed. [RESULT] {int(bool(correct))}")
        return VerdictRecord(
            run_id=run.id, sample_key=key, verdict=Verdict(correct=correct, reply=reply), **values
        )

    def _call(
        self,
        run: RunRecord,
        session: int,
        key: int,
        outcome: Completion | Failure,
        changes: dict[str, Any],
    ) -> CallRecord:
        attempt = Attempt(
            number=changes.pop("attempt", 1),
            timing=Timing(started_at=1000.0 + key, total_s=1.5, first_token_s=0.1),
            outcome=outcome,
            cost_usd=changes.pop("cost", 0.01),
        )
        values: dict[str, Any] = {"final": True} | changes
        return CallRecord(run_id=run.id, session_id=session, sample_key=key, attempt=attempt, **values)


@pytest.fixture
def kit(tmp_path: Path) -> Iterator[StoreKit]:
    with ExitStack() as stack:
        yield StoreKit(tmp_path / "store.sqlite", stack)
