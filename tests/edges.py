"""Runs at the edges: nothing in them, one row, all alike, no judge. Every form of a report must be true of
them.

`EDGES` maps a name to how the run is made and what must be said of it; `edge_run(make_run, name)` makes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mmbu_async.store import RunRecord, Store
from tests.stored_run import MakeRun, Row


@dataclass(frozen=True, kw_only=True)
class Edge:
    rows: Sequence[Row]
    first_line: str
    selected: int
    scored: int
    right: int = 0
    open: int = 0
    """Rows without a score that could have one: failed, unjudged, pending."""
    ungraded: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def accuracy(self) -> float | None:
        """None where it is not known: rows are open, or there is none."""
        counted = self.selected - self.ungraded
        return None if self.open or not counted else self.right / counted


STRATA = {"task": ("nuclei",), "metadata_modality": ("microscopy",)}
RIGHT: Row = {"reply": "<answer>nucleus</answer>", "committed": "nucleus", "judged": True, "strata": STRATA}
WRONG: Row = {
    "reply": "<answer>ribosome</answer>",
    "committed": "ribosome",
    "judged": False,
    "strata": STRATA,
}
UNANSWERED: Row = {"reply": "<answer></answer>", "committed": "", "correct": False, "strata": STRATA}
FAILED: Row = {"failures": ["timeout", "bad_request"], "strata": STRATA}
UNJUDGED: Row = {"reply": "nucleus", "how": "untagged", "judged": None, "strata": STRATA}
PENDING: Row = {"strata": STRATA}
BY_RULE: Row = {
    "route": "choice",
    "reply": "A",
    "committed": "A",
    "correct": True,
    "strata": STRATA,
    "detail": {"chance": 0.5},
}
UNGRADED: Row = {
    "route": "choice",
    "reply": "A",
    "committed": "A",
    "answer": "",
    "ungraded": True,
    "strata": STRATA,
}
BARE: Row = {"reply": "nucleus", "judged": True, "strata": {}, "fields": {}}
BLANK: Row = {
    "reply": "nucleus",
    "judged": False,
    "strata": {"task": ("",), "metadata_modality": ()},
    "fields": {"task": "", "metadata_modality": None},
    "question": "",
    "images": (),
    "options": (),
}
CLOSED = {"judge": None, "benchmark": "mmbu-closed"}


def _distinct(*rows: Row) -> tuple[Row, ...]:
    return tuple({**row, "id": f"row-{number}"} for number, row in enumerate(rows))


EDGES: Mapping[str, Edge] = {
    "empty": Edge(rows=_distinct(RIGHT), selected=0, scored=0, first_line="EMPTY", options={"limit": 0}),
    "not begun": Edge(
        rows=_distinct(*[PENDING] * 3), selected=3, scored=0, open=3, first_line="INCOMPLETE: 3 of 3"
    ),
    "one row, right": Edge(
        rows=_distinct(RIGHT), selected=1, scored=1, right=1, first_line="COMPLETE: 1 of 1"
    ),
    "one row, wrong": Edge(rows=_distinct(WRONG), selected=1, scored=1, first_line="COMPLETE: 1 of 1"),
    "one row, failed": Edge(
        rows=_distinct(FAILED), selected=1, scored=0, open=1, first_line="INCOMPLETE: 1 of 1"
    ),
    "all right": Edge(
        rows=_distinct(*[RIGHT] * 5), selected=5, scored=5, right=5, first_line="COMPLETE: 5 of 5"
    ),
    "all wrong": Edge(rows=_distinct(*[WRONG] * 5), selected=5, scored=5, first_line="COMPLETE: 5 of 5"),
    "all unanswered": Edge(
        rows=_distinct(*[UNANSWERED] * 5), selected=5, scored=5, first_line="COMPLETE: 5 of 5"
    ),
    "all failed": Edge(
        rows=_distinct(*[FAILED] * 5), selected=5, scored=0, open=5, first_line="INCOMPLETE: 5 of 5"
    ),
    "all unjudged": Edge(
        rows=_distinct(*[UNJUDGED] * 5), selected=5, scored=0, open=5, first_line="INCOMPLETE: 5 of 5"
    ),
    "some of each": Edge(
        rows=_distinct(RIGHT, WRONG, UNANSWERED, FAILED, UNJUDGED, PENDING),
        selected=6,
        scored=3,
        right=1,
        open=3,
        first_line="INCOMPLETE: 3 of 6",
    ),
    "no judge": Edge(
        rows=_distinct(BY_RULE, {**BY_RULE, "correct": False}),
        selected=2,
        scored=2,
        right=1,
        first_line="COMPLETE: 2 of 2",
        options=CLOSED,
    ),
    "missing metadata": Edge(
        rows=_distinct(BARE, BLANK, RIGHT), selected=3, scored=3, right=2, first_line="COMPLETE: 3 of 3"
    ),
    "no metadata at all": Edge(
        rows=_distinct(BARE, BARE), selected=2, scored=2, right=2, first_line="COMPLETE: 2 of 2"
    ),
    "ungraded": Edge(
        rows=_distinct(*[UNGRADED] * 3),
        selected=3,
        scored=0,
        ungraded=3,
        first_line="UNGRADED: 3 rows",
        options={"judge": None, "benchmark": "mmmu-test"},
    ),
    "ungraded, one failed": Edge(
        rows=_distinct(UNGRADED, UNGRADED, {**FAILED, "route": "choice"}),
        selected=3,
        scored=0,
        open=1,
        ungraded=2,
        first_line="INCOMPLETE: 1 of 3",
        options={"judge": None, "benchmark": "mmmu-test"},
    ),
}


def edge_run(make_run: MakeRun, edge: str, /, **options: Any) -> tuple[Store, RunRecord]:
    """The run of that name among EDGES. `options` go to `make_run` and win."""
    found = EDGES[edge]
    return make_run(found.rows, **({**found.options} | options))
