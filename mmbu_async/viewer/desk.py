"""What the pages read from: browsers over the store, kept near to what a run writes, and each run's rules.

A browser is made in a thread and takes its time (about a second over 78,000 rows). A page never waits for a
newer one: it gets what there is, and where the store has been written to meanwhile the next one is under way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mmbu_async.config import RunConfig
from mmbu_async.errors import MmbuError
from mmbu_async.pipeline.opening import Rules, config_of, open_existing, rules_of
from mmbu_async.pipeline.scoring import score_run
from mmbu_async.store import Browser, RunRecord, Store
from mmbu_async.version import VERSION
from mmbu_async.viewer.workers import Workers

T = TypeVar("T")

REFRESH_S = 5.0
"""At least so long one browser is used."""
REST = 10
"""And so many times as long as making it took: reading a run over and over must not slow it down."""
BROWSERS = 4
"""Pairs of runs whose browsers are kept."""

Pair = tuple[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRules:
    """How a run's rows are asked and judged, or why that is not known."""

    config: RunConfig | None
    rules: Rules | None
    problem: str
    """'' where it is known."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Held:
    browser: Browser
    problem: str
    """Why scores may be behind; '' where they are not."""
    users: int = 0
    retired: bool = False


@dataclass(slots=True, kw_only=True)
class _Shelf:
    """The browser of one pair of runs."""

    held: _Held | None = None
    making: asyncio.Task[_Held] | None = None


class Desk:
    """Reads one store for the pages of some runs."""

    def __init__(
        self,
        store: Path,
        runs: Sequence[RunRecord],
        *,
        refresh_s: float = REFRESH_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.runs = {run.name: run for run in runs}
        self._refresh_s = refresh_s
        self._clock = clock
        self._workers = Workers(2, "row browser")
        self._shelves: dict[Pair, _Shelf] = {}
        self._rules: dict[str, RunRules] = {}

    def close(self) -> None:
        """Does not wait for what is under way."""
        for shelf in self._shelves.values():
            if shelf.making is not None:
                shelf.making.cancel()
            if shelf.held is not None:
                self._workers.post(shelf.held.browser.close)
        self._workers.close()

    async def read(self, pair: Pair, job: Callable[[Browser], T]) -> T:
        """Do a piece of reading in a thread."""
        held = await self._hold(pair)
        held.users += 1
        try:
            return await self._workers.run(lambda: job(held.browser))
        finally:
            held.users -= 1
            self._close_idle(held)

    def problem(self, pair: Pair) -> str:
        """Why what was read last may be behind; '' where it is not."""
        shelf = self._shelves.get(pair)
        return "" if shelf is None or shelf.held is None else shelf.held.problem

    async def rules(self, run: str) -> RunRules:
        """Read once a run."""
        if run not in self._rules:
            self._rules[run] = await self._workers.run(lambda: rules_for(self.runs[run], self.store))
        return self._rules[run]

    async def _hold(self, pair: Pair) -> _Held:
        shelf = self._shelf(pair)
        if shelf.held is None:
            # Shielded: others may wait for it too.
            return await asyncio.shield(self._make(pair, shelf))
        if await self._is_due(shelf.held.browser):
            self._make(pair, shelf)
        return shelf.held

    def _shelf(self, pair: Pair) -> _Shelf:
        shelf = self._shelves.pop(pair, None) or _Shelf()
        self._shelves[pair] = shelf
        if len(self._shelves) > BROWSERS:
            oldest = self._shelves.pop(next(iter(self._shelves)))
            if oldest.held is not None:
                self._retire(oldest.held)
        return shelf

    async def _is_due(self, browser: Browser) -> bool:
        age = self._clock() - browser.made_at
        if age < max(self._refresh_s, REST * browser.took_s):
            return False
        return await self._workers.run(lambda: browser.behind)

    def _make(self, pair: Pair, shelf: _Shelf) -> asyncio.Task[_Held]:
        """One at a time for a pair."""
        if shelf.making is None or shelf.making.done():
            shelf.making = asyncio.create_task(self._replace(pair, shelf), name="row browser")
        return shelf.making

    async def _replace(self, pair: Pair, shelf: _Shelf) -> _Held:
        earlier = shelf.held
        browser = None if earlier is None else earlier.browser
        try:
            shelf.held = await self._workers.run(lambda: _made(self.store, *pair, browser, self._clock))
        except MmbuError as error:
            if earlier is None:
                raise
            earlier.problem = str(error)
            return earlier
        if earlier is not None:
            self._retire(earlier)
        return shelf.held

    def _retire(self, held: _Held) -> None:
        held.retired = True
        self._close_idle(held)

    def _close_idle(self, held: _Held) -> None:
        """Closed by the last of its users."""
        if held.retired and not held.users:
            self._workers.post(held.browser.close)


def rules_for(run: RunRecord, store: Path) -> RunRules:
    """A benchmark that is described in a file may be gone, and a setting may come from another version."""
    try:
        config = config_of(run, store)
        return RunRules(config=config, rules=rules_of(config), problem="")
    except MmbuError as error:
        return RunRules(config=None, rules=None, problem=str(error))


def _made(
    store: Path, run: str, beside: str | None, earlier: Browser | None, clock: Callable[[], float]
) -> _Held:
    names = [run] if beside is None else [run, beside]
    problems = [_bring_up_to_date(store, name) for name in names]
    # Read anew: a run may have got another judge.
    with Store.open(store, create=False, read_only=True) as opened:
        records = [opened.run(name) for name in names]
    browser = Browser.open(store, *records, earlier=earlier, clock=clock)
    return _Held(browser=browser, problem=" ".join(filter(None, problems)))


def _bring_up_to_date(store: Path, name: str) -> str:
    """Score what came since the last scoring, as every report does. Returns why it could not, '' where it
    did: a store on a read-only disk is still worth looking at."""
    try:
        with open_existing(store) as opened:
            run = opened.run(name)
            judge = None if run.judge is None else run.judge.id
            if opened.scores_stale(run.id, judge):
                _score(opened, run, judge, rules_of(config_of(run, store)))
    except MmbuError as error:
        return f"Scores of run “{name}” could not be brought up to date: {error}"
    return ""


def _score(store: Store, run: RunRecord, judge: int | None, rules: Rules) -> None:
    score_run(
        store,
        run,
        rules.benchmark,
        rules.fill,
        judge_id=judge,
        only_stale=True,
        package_version=VERSION,
    )
