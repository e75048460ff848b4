"""A run in batches that is killed again and again: `python -m tests.endurance.batches --rows 3147 --kills 9`.

The real program works against the simulator's batch endpoints, which are slow, lose answers, list late, let
requests expire and fail some. It dies by SIGKILL at random times, and right at the moments that matter: with
a batch stored and not yet sent, with a batch just accepted, in the middle of the results. Afterwards every
row has one reply, no request that was answered was ever asked again, every batch that the provider took is
known, all that it charged for is stored, and the scores are those of an undisturbed run without batches.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from mmbu_async.simulator.demo import draw_split
from tests.acceptance.program import Simulated, simulator
from tests.endurance import invariants
from tests.endurance.program import Program

KINDS = ("time", "submitting", "accepted", "fetching")
"""When a kill comes: after a while, with a batch stored and unsent, just taken, half stored."""
TROUBLES = (
    *("--batch-expire", "0.03", "--batch-lost-answers", "0.2", "--batch-listing-lag-s", "0.2"),
    *("--fault", "server_error@model=0.03", "--fault", "overloaded@judge=0.03"),
    *("--vision-cache", "100000"),
)
MINUTES = 20


@dataclass(kw_only=True)
class Play:
    """One run through all its deaths."""

    folder: Path
    endpoint: str
    rows: int
    kills: int
    seed: int
    latency: str
    size: int
    blows: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    sessions: int = 0

    def play(self) -> dict[str, Any]:
        began = time.monotonic()
        data = self.folder / "data"
        if not data.exists():
            draw_split(data, self.rows, self.seed)
        calm, store = self.folder / "calm.sqlite", self.folder / "batches.sqlite"
        flags = (*TROUBLES, "--batch-latency", self.latency, "--seed", str(self.seed))
        # One server for both: what it has seen in an image it remembers, so that batches take their own time.
        with simulator(self.folder / "requests.jsonl", *flags) as server:
            self._end(self._start(server, calm, data, "calm", batch=False))
            expected = server.requests()
            self._die(server, store, data)
            asked = server.requests()[len(expected) :]
        self._check(store, calm, asked, expected)
        return self._figures(store, asked, time.monotonic() - began)

    # ------------------------------------------------------------ the program

    def _start(self, server: Simulated, store: Path, data: Path, name: str, *, batch: bool) -> Program:
        arguments = ["run", "mmbu-public", "--data", str(data), "--store", str(store), "--name", "r"]
        arguments += ["--model", "m", *server.flags(self.endpoint), "--no-preflight"]
        if batch:
            arguments += ["--batch", "--batch-poll", "0.6", "--batch-size", str(self.size)]
        self.sessions += 1
        return Program(arguments, said=self.folder / name, environment={})

    def _end(self, program: Program) -> None:
        if not program.wait(60 * MINUTES) or program.code != 0:
            self.broken.append(f"a session ended with {program.code}: {program.err[-1500:]}")
        program.end()

    def _die(self, server: Simulated, store: Path, data: Path) -> None:
        random = Random(self.seed)
        for number in range(self.kills):
            kind = random.choice(KINDS)
            program = self._start(server, store, data, f"killed-{number}", batch=True)
            moment = self._moment(kind, server, store)
            pause = random.uniform(0.5, 12.0) if kind == "time" else random.choice((0.0, 0.0, 0.02, 0.1))
            if kind != "time" and not program.wait_until(moment, 15):
                kind = "missed"
            program.wait(pause)
            if program.code is not None:
                self.blows["came too late"] += 1
                program.end()
                break
            program.signal(signal.SIGKILL)
            program.end()
            self.blows[kind] += 1
        self._end(self._start(server, store, data, "last", batch=True))

    def _moment(self, kind: str, server: Simulated, store: Path) -> Callable[[], bool]:
        before = _submits(server.requests())

        def submitting() -> bool:
            return bool(_ask(store, "SELECT count(*) FROM batch WHERE state = 'submitting'"))

        def accepted() -> bool:
            return len(_submits(server.requests())) > len(before)

        def fetching() -> bool:
            return bool(
                _ask(
                    store,
                    "SELECT count(*) FROM batch WHERE state = 'submitted' AND EXISTS "
                    "(SELECT 1 FROM batch_item WHERE batch_id = batch.id AND fate IS NOT NULL)",
                )
            )

        return {"submitting": submitting, "accepted": accepted, "fetching": fetching}.get(kind, lambda: False)

    # ------------------------------------------------------------ what must hold

    def _check(
        self, store: Path, calm: Path, asked: list[dict[str, Any]], expected: list[dict[str, Any]]
    ) -> None:
        with invariants.reading(store) as here, invariants.reading(calm) as there:
            self.broken += invariants.sound(here)
            self.broken += invariants.complete(here, self.rows)
            self.broken += invariants.bought_once(here)
            for what, look in (("scores", invariants.scores), ("replies", invariants.replies)):
                if look(here) != look(there):
                    self.broken.append(f"{what} differ from those of the undisturbed run")
            known = {name for (name,) in here.execute("SELECT remote_id FROM batch WHERE remote_id <> ''")}
            ends = dict(here.execute("SELECT state, count(*) FROM batch GROUP BY state").fetchall())
            stored = here.execute(
                "SELECT sum(input_tokens), sum(output_tokens), count(*) FROM call WHERE ok"
            ).fetchone()
            open_items = here.execute("SELECT count(*) FROM batch_item WHERE fate IS NULL").fetchone()[0]
        if open_items or ends.keys() - {"fetched", "refused", "lost"}:
            self.broken.append(f"something is still out: {open_items} requests, batches {ends}")
        submits = _submits(asked)
        markers = Counter(submit["custom_id"] for submit in submits)
        if twice := [marker for marker, count in markers.items() if count > 1]:
            self.broken.append(f"batches submitted twice: {twice[:3]}")
        if orphans := {submit["batch"] for submit in submits} - known:
            self.broken.append(f"batches that the provider took and nobody knows: {sorted(orphans)[:3]}")
        items = [record for record in asked if record["role"] in ("model", "judge")]
        if twice := [name for name, count in Counter(r["custom_id"] for r in items).items() if count > 1]:
            self.broken.append(f"requests that were asked twice: {twice[:3]}")
        wanted = Counter(r["content"] for r in expected if r["role"] == "model" and r["charged"])
        got = Counter(r["content"] for r in items if r["role"] == "model" and r["charged"])
        if got != wanted:
            self.broken.append(
                f"rows bought otherwise than once: {len(got - wanted)} more, {len(wanted - got)} less"
            )
        charged = [record for record in items if record["charged"]]
        sums = tuple(sum(r[name] for r in charged) for name in ("input_tokens", "output_tokens"))
        if (*sums, len(charged)) != tuple(stored):
            self.broken.append(f"charged {sums} in {len(charged)} replies, stored {stored}")

    def _figures(self, store: Path, asked: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
        submits = _submits(asked)
        with invariants.reading(store) as here:
            states = dict(here.execute("SELECT state, count(*) FROM batch GROUP BY state").fetchall())
            fates = dict(here.execute("SELECT fate, count(*) FROM batch_item GROUP BY fate").fetchall())
        return {
            "endpoint": self.endpoint,
            "rows": self.rows,
            "seed": self.seed,
            "sessions": self.sessions - 1,
            "kills": dict(self.blows),
            "batches_taken": len(submits),
            "answers_lost": sum(submit["status"] == 0 for submit in submits),
            "batches_by_state": states,
            "requests_by_fate": fates,
            "seconds": round(seconds, 1),
            "broken": self.broken,
        }


def _submits(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Batches that the provider took, whether its answer arrived or not."""
    return [record for record in records if record["role"] == "batch" and record["batch"]]


def _ask(store: Path, sql: str) -> Any:
    """0 where there is no store, or not such a table, yet."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchone()[0]
    return 0


def main() -> int:
    flags = argparse.ArgumentParser(prog="python -m tests.endurance.batches", description=__doc__)
    flags.add_argument("--rows", type=int, default=3147)
    flags.add_argument("--kills", type=int, default=20)
    flags.add_argument("--seed", type=int, default=0)
    flags.add_argument("--endpoint", choices=("openai", "anthropic", "both"), default="both")
    flags.add_argument("--latency", default="uniform:1,6", help="seconds that a batch takes")
    flags.add_argument("--size", type=int, default=400, help="most requests in a batch")
    flags.add_argument("--folder", type=Path, default=None, help="where to play; kept")
    given = flags.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="batches-"))
    code = 0
    for endpoint in ("openai", "anthropic") if given.endpoint == "both" else (given.endpoint,):
        place = folder / endpoint
        place.mkdir(parents=True, exist_ok=True)
        play = Play(
            folder=place,
            endpoint=endpoint,
            rows=given.rows,
            kills=given.kills,
            seed=given.seed,
            latency=given.latency,
            size=given.size,
        )
        figures = play.play()
        sys.stdout.write(json.dumps(figures) + "\n")
        sys.stdout.flush()
        code = code or int(bool(figures["broken"]))
    if given.folder is None and code == 0:
        shutil.rmtree(folder)
    return code


if __name__ == "__main__":
    sys.exit(main())
