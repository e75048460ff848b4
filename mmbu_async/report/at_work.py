"""Whether a process is at work on a run, in the same words wherever a run is spoken of."""

from __future__ import annotations

import time

from mmbu_async.report import words
from mmbu_async.store import Lease, RunRecord, SessionRecord, Store

DIED = "ended without a word"
"""Of a session whose process is gone and that nobody closed."""


def process_of(store: Store, run: RunRecord, now: float | None = None) -> Lease | None:
    """The living process that holds the run; None: nobody does. `now`: seconds since 1970, None for this
    moment; it matters for processes of other machines only."""
    held = store.leases(time.time() if now is None else now)
    return next((lease for lease in held if lease.alive and lease.run_id == run.id), None)


def said(process: Lease, *, paused: bool = False) -> str:
    """`at work (process 12 on host, since …)`."""
    who = f"process {process.owner.pid} on {process.owner.host}, since {words.moment(process.since)}"
    return f"paused: no call is started ({who})" if paused else f"at work ({who})"


def note(store: Store, run: RunRecord) -> str:
    """A sentence for a page whose figures will change; '' where nobody is at work."""
    process = process_of(store, run)
    if process is None:
        return ""
    return f"run {run.name} is {said(process, paused=store.control(run.id).paused)}: its figures may change."


def died(sessions: tuple[SessionRecord, ...]) -> str:
    """A sentence on a last session that nobody closed, where nobody is at work; '' where there is none."""
    if not sessions or sessions[-1].ended_at is not None:
        return ""
    return f"the session begun {words.moment(sessions[-1].started_at)} {DIED}."
