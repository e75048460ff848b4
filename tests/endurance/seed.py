"""A seed from beginning to end: an undisturbed run, a disturbed one, and whether they say the same."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from mmbu_async.simulator.demo import draw_split
from tests.endurance import invariants
from tests.endurance.commands import Commands
from tests.endurance.disk import Disk
from tests.endurance.endpoint import Endpoint, mark
from tests.endurance.ledger import Books, Terms, new_calls
from tests.endurance.plan import Blow, Episode, Plan
from tests.endurance.program import Clock
from tests.endurance.session import Played, Stage

MEMORY_MB = 400.0
"""Above what any session of this size may need; that memory does not grow with rows is measured elsewhere."""
LAST_RESUMES = 2
END_S = 600.0


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What a seed showed."""

    seed: int
    rows: int
    sessions: int = 0
    blows: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    exit_codes: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    repeated_calls: int = 0
    unread_replies: int = 0
    lost_replies: int = 0
    unstored_requests: int = 0
    unknown_cost: int = 0
    usd_matched: float = 0.0
    lost_rows: int = 0
    most_memory_mb: float = 0.0
    seconds: float = 0.0
    disk: str = ""
    clock: str = ""
    broken: list[str] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        """As JSON has it."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in values.items()}


class Seed:
    """Plays one plan in a folder of its own."""

    def __init__(self, plan: Plan, folder: Path, *, mutation: str = "") -> None:
        self._plan = plan
        self._folder = folder.absolute()
        self._mutation = mutation
        self._outcome = Outcome(seed=plan.seed, rows=plan.rows)
        self._books = Books()
        self._last_call = 0
        self._history = ""

    def play(self) -> Outcome:
        """Everything that the plan has; nothing is left running or mounted."""
        began = time.monotonic()
        outcome, plan = self._outcome, self._plan
        self._folder.mkdir(parents=True, exist_ok=True)
        self._commands = Commands(plan, _draw(plan, self._folder / "data"))
        # A program with a defect need not be compared: its calls give it away.
        expected = None if self._mutation else self._undisturbed()
        disk = Disk(self._folder / "disk")
        clock = Clock(self._folder)
        outcome.disk, outcome.clock = disk.kind, clock.kind
        endpoint = Endpoint(self._folder, plan)
        stage = Stage(
            folder=self._folder, plan=plan, disk=disk, endpoint=endpoint, clock=clock, mutation=self._mutation
        )
        try:
            for number, episode in enumerate(plan.episodes):
                self._session(stage, f"session-{number:02d}", episode)
            self._finish(stage, expected)
        finally:
            endpoint.stop()
            if outcome.broken or self._books.broken:
                shutil.copytree(disk.folder, self._folder / "kept", dirs_exist_ok=True)
            disk.close()
        self._sum_up(time.monotonic() - began)
        return outcome

    # ------------------------------------------------------------ sessions

    def _undisturbed(self) -> tuple[invariants.Scores, invariants.Scores]:
        """Scores and replies of a run that nothing happens to."""
        folder = self._folder / "undisturbed"
        folder.mkdir(exist_ok=True)
        plan, endpoint = self._plan, Endpoint(folder, self._plan)
        stage = Stage(
            folder=folder,
            plan=plan,
            disk=_Plain(folder),
            endpoint=endpoint,
            clock=Clock(folder),
            mutation="",
        )
        endpoint.begin("undisturbed", None)
        try:
            program = stage.start("undisturbed", self._commands.run(stage, limit=plan.rows))
            program.wait(END_S)
            program.end()
        finally:
            endpoint.stop()
        if program.code != 0:
            raise RuntimeError(f"the undisturbed run ended with {program.code}: {program.err}")
        with invariants.reading(stage.store) as connection:
            return invariants.scores(connection), invariants.replies(connection)

    def _session(self, stage: Stage, name: str, episode: Episode) -> None:
        named = Blow.NAMES in {strike.blow for strike in episode.strikes}
        if not self._begun(stage):
            arguments = self._commands.run(stage, limit=episode.limit, named=named)
        elif episode.rejudge:
            arguments = self._commands.rejudge(stage, named=named)
        else:
            arguments = self._commands.resume(stage, limit=episode.limit, named=named)
        self._close(stage, stage.play(name, arguments, episode))

    def _finish(self, stage: Stage, expected: tuple[invariants.Scores, invariants.Scores] | None) -> None:
        """Resume without any trouble, then look whether all is as if there had been none."""
        # Each restart of the endpoint takes the same port, so the address in the store still holds.
        quiet = Episode(
            strikes=(),
            faults=(),
            server_seed=self._plan.seed * 1000 + 999,
            retry_after_s=0.1,
            retry_after_style="seconds",
            stall_s=0.0,
            slow_commit_s=0.0,
            readers=False,
            rejudge=False,
            limit=self._plan.rows,
        )
        for number in range(LAST_RESUMES):
            command = self._commands.resume if self._begun(stage) else self._commands.run
            played = stage.play(f"last-{number}", command(stage, limit=self._plan.rows), quiet)
            self._close(stage, played)
            if number and played.log:
                self._broken(f"{len(played.log)} calls of a resume that had nothing left to do")
        if played.code != 0:
            self._broken(f"the last resume ended with exit code {played.code}")
        with invariants.reading(stage.store) as connection:
            for words in invariants.complete(connection, self._plan.rows):
                self._broken(words)
            for words in invariants.bought_once(connection):
                self._broken(words)
            scores, replies = invariants.scores(connection), invariants.replies(connection)
        self._outcome.lost_rows = self._plan.rows - len(replies)
        expected = expected or (scores, replies)
        for what, found, wanted in (("scores", scores, expected[0]), ("replies", replies, expected[1])):
            if found != wanted:
                first = next((pair for pair in zip(found, wanted, strict=False) if pair[0] != pair[1]), None)
                self._broken(f"{what} differ from those of the undisturbed run: {first}")
        self._check(stage)
        if self._plan.exports:
            self._export(stage, expected[1])

    def _check(self, stage: Stage) -> None:
        """The program's own look through the store, beside ours."""
        program = stage.start("store-check", ("store", "check", "--store", str(stage.store)))
        program.wait(END_S)
        program.end()
        if program.code != 0:
            self._broken(f"mmbu store check: exit code {program.code}: {program.out}{program.err}")

    def _export(self, stage: Stage, expected: invariants.Scores) -> None:
        files = [self._folder / f"rows.{ending}" for ending in ("jsonl", "csv", "parquet")]
        for file in files:
            program = stage.start(file.name, ("export", "r", "--store", str(stage.store), "--out", str(file)))
            program.wait(END_S)
            program.end()
            if program.code != 0:
                self._broken(f"export to {file.name}: exit code {program.code}")
                return
        for words in invariants.exported(files, expected):
            self._broken(words)

    # ------------------------------------------------------------ after each session

    def _close(self, stage: Stage, played: Played) -> None:
        """Add a session to the outcome, and look at the store it left."""
        outcome = self._outcome
        outcome.sessions += 1
        outcome.blows.update(blow.value for blow in played.blows)
        outcome.faults.update(played.faults)
        outcome.exit_codes[str(played.code)] += 1
        outcome.most_memory_mb = max(outcome.most_memory_mb, played.most_memory_mb)
        outcome.broken += played.broken
        if played.most_memory_mb > MEMORY_MB:
            self._broken(f"{played.name}: {played.most_memory_mb:.0f} MB of memory")
        if not self._begun(stage):
            return
        with invariants.reading(stage.store) as connection:
            for words in invariants.sound(connection):
                self._broken(f"{played.name}: {words}")
            if self._history and invariants.history(connection, self._last_call) != self._history:
                self._broken(f"{played.name}: calls of earlier sessions changed or went away")
            calls = new_calls(connection, self._last_call)
            self._last_call = max((call.id for call in calls), default=self._last_call)
            self._history = invariants.history(connection, self._last_call)
        gone = {Blow.RESTART, Blow.FILES, Blow.NAMES} & set(played.blows)
        terms = Terms(
            orderly=played.orderly,
            server_gone=bool(gone),
            concurrency=self._plan.concurrency,
            judge_concurrency=self._plan.judge_concurrency * (1 + self._plan.panel),
            frozen=Blow.STOP in played.blows,
        )
        self._books.close(played.name, calls, played.log, terms)

    def _sum_up(self, seconds: float) -> None:
        outcome, books = self._outcome, self._books
        outcome.broken += books.broken
        outcome.requests = books.requests
        outcome.unread_replies, outcome.lost_replies = books.unread, books.lost
        outcome.repeated_calls = books.unread + books.lost
        outcome.unstored_requests = books.unstored
        outcome.unknown_cost = books.unknown_cost
        outcome.usd_matched = round(books.usd_matched, 6)
        outcome.seconds = round(seconds, 1)

    def _broken(self, words: str) -> None:
        self._outcome.broken.append(words)

    def _begun(self, stage: Stage) -> bool:
        """Whether there is a run to be resumed: a session may die before it made one."""
        if not stage.store.exists():
            return False
        with invariants.reading(stage.store) as connection:
            tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'run'").fetchone()
            return tables == (1,) and bool(connection.execute("SELECT 1 FROM run").fetchone())


class _Plain(Disk):
    """A folder and nothing more."""

    def _mount(self) -> bool:
        return False


def _draw(plan: Plan, folder: Path) -> Path:
    """A small split whose marked rows can be told by their question."""
    draw_split(folder, rows=plan.rows, seed=plan.seed)
    (folder / "metadata.tsv").unlink()
    table = folder / "metadata.jsonl"
    rows: list[dict[str, Any]] = [json.loads(line) for line in table.read_text("utf-8").split("\n") if line]
    for row in plan.marked:
        rows[row]["question"] += f" {mark(row)}"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder


def blows_of(plans: Sequence[Plan]) -> Counter[str]:
    """How often each kind of blow is planned."""
    return Counter(strike.blow.value for plan in plans for one in plan.episodes for strike in one.strikes)
