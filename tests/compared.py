"""Runs over one dataset, written as a character a row: what tests of comparisons begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mmbu_async.store import RunRecord, Store
from tests.stored_run import MakeRun, Row

OUTCOMES: dict[str, Row] = {
    "+": {"reply": "x", "committed": "nucleus", "judged": True},
    "-": {"reply": "x", "committed": "nucleolus", "judged": False},
    "0": {"reply": "x", "committed": "", "correct": False},  # unanswered: one FN, no FP
    "?": {"failures": ["timeout"]},
    "u": {"reply": "x", "committed": "nucleus", "judged": None},
    "g": {"reply": "x", "committed": "nucleus", "ungraded": True},
}

Shape = Callable[[int], Row]
"""What the dataset has in the row of this number: family, strata, id."""


def rows(outcomes: str, shape: Shape | None = None) -> list[Row]:
    return [{**(shape(number) if shape else {}), **OUTCOMES[one]} for number, one in enumerate(outcomes)]


def make_runs(
    make_run: MakeRun,
    *outcomes: str,
    shape: Shape | None = None,
    options: Sequence[dict[str, Any]] = (),
) -> tuple[Store, list[RunRecord]]:
    """A run for each text, named a, b, c …; `options` go to `make_run`, one mapping a run."""
    made = []
    for place, text in enumerate(outcomes):
        given = options[place] if place < len(options) else {}
        store, run = make_run(rows(text, shape), **({"name": "abcdefgh"[place]} | given))
        made.append(run)
    return store, made
