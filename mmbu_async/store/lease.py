"""One process at a run: a lease with a heartbeat.

A lease lies in the run's row. Its owner is known by host, process id and the start time of the process, so
that a process id used again is not taken for its first user. Where the owner can be looked at (the same
boot, the same namespace of process ids) a dead one loses the lease at once, and a living one never does. Of
another machine, or another container, only the heartbeat is known: silence for `EXPIRY_S` ends the lease.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from mmbu_async.errors import StoreLockedError
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import transaction

EXPIRY_S = 60.0
"""Silence after which another machine's lease is void."""

BEAT_S = 10.0
"""How often an owner should give a sign of life."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseOwner:
    """A process, told apart from every other one that has had its number."""

    host: str
    boot: str
    """Boot id and namespace of process ids; '' where the system names none."""
    pid: int
    process: str
    """Start time of the process in the kernel's clock ticks; '' where the system names none."""

    @classmethod
    def current(cls) -> Self:
        """This process."""
        pid = os.getpid()
        return cls(host=socket.gethostname(), boot=_boot(), pid=pid, process=_start_of(pid) or "")

    def values(self) -> tuple[Any, ...]:
        return (self.host, self.boot, self.pid, self.process)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A process's hold on a run."""

    run_id: int
    run: str
    owner: LeaseOwner
    since: float
    beat: float
    """The last sign of life."""
    alive: bool
    """False: the owner is dead, or of another machine and silent; the next process takes the run over."""


def leases(connection: sqlite3.Connection, asker: LeaseOwner, now: float) -> list[Lease]:
    """Every run that is held, or was when its process died."""
    found = []
    for run_id, run, host, boot, pid, process, since, beat in connection.execute(query("leases")):
        owner = LeaseOwner(host=host, boot=boot, pid=pid, process=process)
        alive = holds(owner, asker, silent_s=now - beat)
        found.append(Lease(run_id=run_id, run=run, owner=owner, since=since, beat=beat, alive=alive))
    return found


def acquire(connection: sqlite3.Connection, run_id: int, owner: LeaseOwner, now: float) -> None:
    """Take the lease of a run, or raise StoreLockedError saying who has it.

    A run has one session at a time, so whatever session is still open when the lease changes hands has died:
    it is closed with the last sign of life as its end.
    """
    with transaction(connection):
        name, host, boot, pid, process, since, beat = connection.execute(
            query("lease"), {"run": run_id}
        ).fetchone()
        if host is not None:
            holder = LeaseOwner(host=host, boot=boot, pid=pid, process=process)
            if holds(holder, owner, silent_s=now - beat):
                raise StoreLockedError(
                    f"run '{name}' is held by process {pid} on {host} since {_clock(since)} (last sign "
                    f"of life {max(now - beat, 0):.0f} s ago); wait for it, or stop it and try again."
                )
        connection.execute(query("close_dead_sessions"), {"run": run_id})
        connection.execute(
            query("take_lease"),
            {
                "run": run_id,
                "host": owner.host,
                "boot": owner.boot,
                "pid": owner.pid,
                "process": owner.process,
                "now": now,
            },
        )
        # What was asked of the process before is over; whoever asks from here on asks this one.
        connection.execute(query("begin_control"), {"run": run_id, "now": now})


def renew(connection: sqlite3.Connection, run_id: int, owner: LeaseOwner, now: float) -> bool:
    """Give a sign of life. False: another process has taken the run over."""
    return connection.execute(query("beat"), (now, run_id, *owner.values())).rowcount == 1


def release(connection: sqlite3.Connection, run_id: int, owner: LeaseOwner) -> None:
    """Give the lease back. Nothing happens where another process has it."""
    connection.execute(query("release_lease"), (run_id, *owner.values()))


def holds(holder: LeaseOwner, asker: LeaseOwner, *, silent_s: float) -> bool:
    """Whether the holder's lease still counts, after so many seconds without a sign of life."""
    if holder.boot == asker.boot and holder.host == asker.host and sys.platform != "win32":
        return _alive(holder.pid, holder.process)
    return silent_s < EXPIRY_S


def _alive(pid: int, process: str) -> bool:
    """Whether this very process lives, not a later one of the same number."""
    if process:
        return _start_of(pid) == process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start_of(pid: int) -> str | None:
    """Start time of a process, None where it is dead (or a zombie) or the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The command's name stands in brackets and may itself hold brackets and blanks.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _boot() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
