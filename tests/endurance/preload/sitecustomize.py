"""Loaded by Python before the program under test, where its folder is on PYTHONPATH: trouble from outside.

The program itself is not changed. Variables of the environment say what is to go wrong:

ENDURANCE_CLOCK        a file with seconds by which `time.time` is shifted; where libfaketime is not used
ENDURANCE_NAMES        a file: names that end in .test resolve to this machine, and to nothing while it exists
ENDURANCE_SLOW_COMMIT  seconds that each transaction of the writer takes longer, as on a busy disk
ENDURANCE_MUTATION     a defect put into the program, to see whether the suite finds it:
                       `early-ack`, the writer acknowledges before the transaction ends;
                       `no-resume-filter`, a resume asks again for rows that have their reply
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

Patch = Callable[[Any], None]


class _Patched(Loader):
    """Runs a module, then the patches for it."""

    def __init__(self, inner: Loader, patches: Sequence[Patch]) -> None:
        self._inner = inner
        self._patches = patches

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._inner.exec_module(module)
        for patch in self._patches:
            patch(module)


class _Finder(MetaPathFinder):
    def __init__(self, patches: dict[str, list[Patch]]) -> None:
        self._patches = patches

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._patches:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Patched(spec.loader, self._patches[name])
        return spec


def _shift_clock(file: Path) -> None:
    real = time.time

    def shifted() -> float:
        try:
            return real() + float(file.read_text("ascii") or 0)
        except (OSError, ValueError):
            # The file is being written at this moment.
            return real()

    time.time = shifted


def _names_fail_while(down: Path) -> Patch:
    """uvloop asks the C library itself, so the event loop is where a look-up can be made to fail."""

    def patch(uvloop: Any) -> None:
        import socket

        real = uvloop.Loop.getaddrinfo

        async def getaddrinfo(loop: Any, host: Any, port: Any, **options: Any) -> Any:
            if isinstance(host, str) and host.endswith(".test"):
                if os.path.exists(down):  # noqa: ASYNC240, PTH110 - a look at a file in memory
                    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
                host = "127.0.0.1"
            return await real(loop, host, port, **options)

        uvloop.Loop.getaddrinfo = getaddrinfo

    return patch


def _slow_commits(seconds: float) -> Patch:
    def patch(batches: Any) -> None:
        real = batches.Batch.commit

        def commit(batch: Any, connection: Any) -> None:
            # libfaketime breaks `time.sleep`, not this.
            threading.Event().wait(seconds)
            real(batch, connection)

        batches.Batch.commit = commit

    return patch


def _acknowledge_early(writer: Any) -> None:
    async def run(self: Any) -> None:
        while not (self._closing and not self._batch.futures):
            await self._wake.wait()
            self._wake.clear()
            batch, self._batch = self._batch, writer.Batch()
            batch.acknowledge()
            await self._connection.run_in_thread(batch.commit)

    assert writer.Writer._run
    writer.Writer._run = run


def _forget_replies(reader: Any) -> None:
    real = reader.query

    def query(name: str) -> str:
        sql: str = real(name)
        if name != "pending":
            return sql
        changed = sql.replace("call.ok = 1 AND call.judge_id IS NULL)", "0)", 1)
        assert changed != sql
        return changed

    reader.query = query


def _install(environment: dict[str, str]) -> None:
    patches: dict[str, list[Patch]] = {}
    if clock := environment.get("ENDURANCE_CLOCK"):
        _shift_clock(Path(clock))
    if names := environment.get("ENDURANCE_NAMES"):
        patches["uvloop"] = [_names_fail_while(Path(names))]
    if slow := environment.get("ENDURANCE_SLOW_COMMIT"):
        patches["mmbu_async.store.batches"] = [_slow_commits(float(slow))]
    match environment.get("ENDURANCE_MUTATION"):
        case "early-ack":
            patches["mmbu_async.store.writer"] = [_acknowledge_early]
        case "no-resume-filter":
            patches["mmbu_async.store.reader"] = [_forget_replies]
    if patches:
        sys.meta_path.insert(0, _Finder(patches))


_install(dict(os.environ))
