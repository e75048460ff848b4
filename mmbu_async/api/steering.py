"""Where runs stand, and words to those at work."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mmbu_async.api.scoring import still_tied
from mmbu_async.pipeline.asking import Asked, ask_limits, ask_pause
from mmbu_async.pipeline.looking import open_to_look
from mmbu_async.pipeline.opening import leased, open_existing
from mmbu_async.store import BatchRecord, Lease, LeaseOwner, Limits, RunCounts, RunRecord, RunTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """Where a run stands, and what it has taken so far."""

    run: RunRecord
    counts: RunCounts
    totals: RunTotals
    process: Lease | None = None
    """Who works on it at the moment; None: nobody."""
    paused: bool = False
    """Whether that process starts no call for now."""
    tied: int = 0
    """Rows that stay unjudged because all of the panel have voted and no side has won."""
    batches: tuple[BatchRecord, ...] = ()
    """All that were handed to a provider."""


def status(run: str | None = None, *, store: Path = Path("mmbu.sqlite")) -> list[RunStatus]:
    """Where a run stands, or all runs of a store, oldest first."""
    with open_to_look(store) as opened:
        found = opened.runs() if run is None else [opened.run(run)]
        leases = {lease.run_id: lease for lease in opened.leases(time.time()) if lease.alive}
        counts = {one.id: opened.counts(one.id) for one in found}
        return [
            RunStatus(
                run=one,
                counts=counts[one.id],
                totals=opened.totals(one.id),
                process=leases.get(one.id),
                paused=one.id in leases and opened.control(one.id).paused,
                tied=still_tied(opened, one, counts[one.id]),
                batches=tuple(opened.batches(one.id)),
            )
            for one in found
        ]


def limit(run: str, *, store: Path = Path("mmbu.sqlite"), limits: Limits | None = None) -> Asked:
    """Change how fast a run may call: of the process at work on it at once, and for later sessions.

    `limits` maps `""` (the model under test), `judge` or a judge's name to any of `concurrency`, `rpm` and
    `tpm` (None: no limit). Without it, says what holds. Raises ConfigError for a limit that cannot be.
    """
    with open_existing(store) as opened:
        return ask_limits(opened, opened.run(run), limits or {})


def pause(run: str, *, store: Path = Path("mmbu.sqlite")) -> Asked:
    """Let the process at work on a run start no further call until `continue_run`; calls under way finish.
    Raises ConfigError where nobody is at work."""
    with open_existing(store) as opened:
        return ask_pause(opened, opened.run(run), paused=True)


def continue_run(run: str, *, store: Path = Path("mmbu.sqlite")) -> Asked:
    """Let a paused run go on. Raises ConfigError where nobody is at work."""
    with open_existing(store) as opened:
        return ask_pause(opened, opened.run(run), paused=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBatches:
    """Batches of a run, oldest first."""

    batches: tuple[BatchRecord, ...]
    judges: Mapping[int, str]
    """Number of a judge in the store -> its name."""


def batches(run: str, *, store: Path = Path("mmbu.sqlite")) -> RunBatches:
    """Every batch of a run that was, or was about to be, handed to a provider."""
    with open_existing(store) as opened:
        found = opened.batches(opened.run(run).id)
        return RunBatches(batches=tuple(found), judges=opened.judge_names())


def forget_batches(run: str, *, store: Path = Path("mmbu.sqlite")) -> int:
    """Give the rows of a run's batches that are out back to be asked anew, whatever the provider still does
    and charges with them; returns how many batches that were. For batches that can never be fetched."""
    with open_existing(store) as opened:
        found = opened.run(run)
        with leased(opened, found, LeaseOwner.current()):
            return opened.forget_batches(found.id, now=time.time())
