"""One session of the program: it starts, blows fall, it ends, and its books are closed."""

from __future__ import annotations

import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.endurance.disk import Disk
from tests.endurance.endpoint import Endpoint
from tests.endurance.plan import Blow, Episode, Plan, Strike
from tests.endurance.program import Clock, Program
from tests.endurance.readers import reading_all_the_while

PATIENCE_S = 45.0
"""A session that goes on for longer is asked to end; the breaker alone may pause for 30 s."""
DRAIN_S = 30.0
"""From SIGTERM to the end: calls under way end by their own time limits of a few seconds."""
SIGNALS = {Blow.TERM: signal.SIGTERM, Blow.INT: signal.SIGINT, Blow.HUP: signal.SIGHUP}
BUSY_S = 60.0
"""So long the program waits for a transaction of another process; a stopped one may be in its middle."""
LOCKED = 7
"""Exit code where another process is at work on the run."""
INTERRUPTED = 130
CODES = frozenset({0, 2, 3, 4, 5, 6, 7, 130})


@dataclass(slots=True, kw_only=True)
class Played:
    """What became of a session."""

    name: str
    code: int = 0
    blows: list[Blow] = field(default_factory=list)
    """Those that fell while it ran."""
    log: Sequence[dict[str, Any]] = ()
    most_memory_mb: float = 0.0
    seconds: float = 0.0
    broken: list[str] = field(default_factory=list)

    @property
    def orderly(self) -> bool:
        """It ended by itself and its store worked to the end."""
        return self.code >= 0 and self.code != LOCKED and Blow.ABORT not in self.blows

    @property
    def faults(self) -> Counter[str]:
        return Counter(record["fault"] for record in self.log if record["fault"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What all sessions of a seed share."""

    folder: Path
    plan: Plan
    disk: Disk
    endpoint: Endpoint
    clock: Clock
    mutation: str

    @property
    def store(self) -> Path:
        return self.disk.folder / "store.sqlite"

    @property
    def names_down(self) -> Path:
        return self.folder / "names-down"

    def start(self, name: str, arguments: Sequence[str], episode: Episode | None = None) -> Program:
        """The program, with what is to go wrong in its environment."""
        blows = {strike.blow for strike in episode.strikes} if episode else set()
        environment = {"ENDURANCE_MUTATION": self.mutation}
        if episode and Blow.CLOCK in blows:
            environment |= self.clock.environment(below_python=episode.server_seed % 2 == 0)
        if Blow.NAMES in blows:
            environment["ENDURANCE_NAMES"] = str(self.names_down)
        if episode and episode.slow_commit_s:
            environment["ENDURANCE_SLOW_COMMIT"] = str(episode.slow_commit_s)
        return Program(arguments, said=self.folder / name, environment=environment)

    def play(self, name: str, arguments: Sequence[str], episode: Episode) -> Played:
        """Run one session with its troubles, to its end."""
        played = Played(name=name)
        began = time.monotonic()
        self.endpoint.begin(name, episode)
        self.clock.jump(0.0)
        blows = [strike.blow for strike in episode.strikes]
        if Blow.NAMES in blows:
            self.names_down.touch()
        if Blow.READ_ONLY in blows and self.disk.can_be_read_only:
            self.disk.set_read_only(True)
            played.blows.append(Blow.READ_ONLY)
        program = self.start(name, arguments, episode)
        try:
            with ExitStack() as stack:
                if episode.readers and not played.blows and self.store.exists():
                    refused = stack.enter_context(reading_all_the_while(self.store))
                    stack.callback(lambda: played.broken.extend(f"{name}: {words}" for words in refused))
                _Blows(self, program, played, Random(episode.server_seed)).fall(episode.strikes)
                if not program.wait(PATIENCE_S):
                    program.signal(signal.SIGTERM)
                    if not program.wait(DRAIN_S):
                        played.broken.append(f"{name}: it did not end after SIGTERM")
        finally:
            program.end()
            if Blow.READ_ONLY in played.blows:
                self.disk.set_read_only(False)
            self.disk.free()
            self.names_down.unlink(missing_ok=True)
            self.endpoint.stop()
        self._examine(program, played)
        played.log = self.endpoint.records()
        played.seconds = time.monotonic() - began
        return played

    def _examine(self, program: Program, played: Played) -> None:
        played.code = program.code if program.code is not None else -signal.SIGKILL
        played.most_memory_mb = program.most_memory_mb
        if "Traceback" in program.err:
            played.broken.append(f"{played.name}: a traceback instead of a sentence")
        if played.code >= 0 and played.code not in CODES:
            played.broken.append(f"{played.name}: exit code {played.code}")
        first = program.out.partition("\n")[0]
        if played.code == 0 and not first.startswith("COMPLETE"):
            played.broken.append(f"{played.name}: exit code 0, and the report begins with {first!r}")
        # A signal can come when the last row has just been done.
        if played.code > 0 and played.code != INTERRUPTED and first.startswith("COMPLETE"):
            played.broken.append(f"{played.name}: exit code {played.code}, and the report says {first!r}")


@dataclass(frozen=True, slots=True)
class _Blows:
    """What falls on one running program."""

    stage: Stage
    program: Program
    played: Played
    random: Random

    def fall(self, strikes: Sequence[Strike]) -> None:
        how: dict[Blow, Callable[[Strike], None]] = {
            Blow.STOP: self._stop,
            Blow.CLOCK: lambda strike: self.stage.clock.jump(strike.seconds),
            Blow.RESTART: self._restart,
            Blow.FILES: self._files,
            Blow.NAMES: self._names,
            Blow.FILL: self._fill,
            Blow.FSIZE: self._file_size,
            Blow.READ_ONLY: lambda strike: None,
            Blow.KILL: lambda strike: self._signal(signal.SIGKILL),
            Blow.ABORT: self._abort,
        }
        for strike in strikes:
            if strike.after and not self._reached(strike.after):
                return
            # A fraction of a call's time, so that moments lie anywhere.
            self.program.wait(0.05 * strike.variant)
            if self.program.code is not None and strike.blow is not Blow.READ_ONLY:
                return
            if strike.blow in SIGNALS:
                self._signal(SIGNALS[strike.blow])
            else:
                how[strike.blow](strike)
            if strike.blow is not Blow.READ_ONLY:
                self.played.blows.append(strike.blow)

    def _reached(self, requests: int) -> bool:
        return self.program.wait_until(lambda: self.stage.endpoint.ended >= requests, PATIENCE_S)

    def _signal(self, number: signal.Signals) -> None:
        self.program.signal(number)
        self.program.wait(0.0 if number is not signal.SIGKILL else DRAIN_S)

    def _abort(self, strike: Strike) -> None:
        self.program.signal(signal.SIGINT)
        self.program.wait(0.1 * strike.variant)
        self.program.signal(signal.SIGINT)

    def _stop(self, strike: Strike) -> None:
        self.program.signal(signal.SIGSTOP)
        try:
            time.sleep(strike.seconds)
            if strike.variant < 0.25:
                self._try_to_take_over()
        finally:
            self.program.signal(signal.SIGCONT)

    def _try_to_take_over(self) -> None:
        """A process that is stopped lives: nobody else may work on its run."""
        name = f"{self.played.name}-intruder"
        other = self.stage.start(name, ("resume", "r", "--store", str(self.stage.store)))
        other.wait(2 * DRAIN_S + BUSY_S)
        other.end()
        if other.code != LOCKED:
            self.played.broken.append(f"{name}: exit code {other.code} where the run is held")

    def _restart(self, strike: Strike) -> None:
        self.stage.endpoint.stop(kill=strike.variant < 0.5)
        self.program.wait(strike.seconds)
        self.stage.endpoint.start()

    def _files(self, strike: Strike) -> None:
        self.program.limit(resource.RLIMIT_NOFILE, self.program.open_files() + self.random.randrange(0, 3))
        self.program.wait(strike.seconds)
        self.program.limit(resource.RLIMIT_NOFILE, None)

    def _names(self, strike: Strike) -> None:
        self.program.wait(strike.seconds)
        self.stage.names_down.unlink(missing_ok=True)

    def _fill(self, strike: Strike) -> None:
        if self.stage.disk.own:
            self.stage.disk.fill()
        else:
            self._file_size(strike)

    def _file_size(self, strike: Strike) -> None:
        sizes = [file.stat().st_size for file in self.stage.disk.folder.glob("store.sqlite*")]
        self.program.limit(resource.RLIMIT_FSIZE, max(sizes) + int(20_000 * strike.variant))
