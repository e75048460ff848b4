"""The judge's stages: what is known already, what another row is asking just now, and what must be bought.

Rows with the same filled prompt need one call. A verdict is looked for among those of this session, then in
the store (earlier sessions and other runs with the same judge), then a row that is being asked about is
waited for; only what is left is asked.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from mmbu_async.endpoints.client import EndpointClient
from mmbu_async.endpoints.gate import Draining
from mmbu_async.endpoints.tokens import Estimator, text_tokens
from mmbu_async.errors import EndpointDownError, EndpointError
from mmbu_async.model import (
    FATAL_KINDS,
    Attempt,
    Benchmark,
    Completion,
    Failure,
    JudgeItem,
    Prompt,
    Verdict,
)
from mmbu_async.pipeline.channel import Channel
from mmbu_async.pipeline.explain import explain
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.records import Recorder
from mmbu_async.pipeline.scoring import prompt_sha
from mmbu_async.pipeline.stop import Stop
from mmbu_async.store import Reader, StoredSample

ASKS = 2
"""Times a judge is asked before the row is unjudged."""
WINDOW = 10
"""Rows in a row without a usable verdict after which the run stops."""
REMEMBERED = 1024
"""Verdicts of this session kept in memory: those on their way to the disk, and some more. Older ones are
looked up in the store."""
LOOKUP = 64
"""Rows looked up in the store at once."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeTask:
    """One row that needs a verdict."""

    key: int
    row_id: str
    prompt: Prompt
    prompt_sha: bytes


@dataclass(slots=True, kw_only=True)
class JudgeStage:
    """Everything between a stored reply and its stored verdict."""

    judge_id: int
    client: EndpointClient
    reader: Reader
    recorder: Recorder
    benchmark: Benchmark
    fill: Callable[[JudgeItem], Prompt]
    read_verdict: Callable[[str], bool | None]
    estimator: Estimator
    monitor: Monitor
    stop: Stop
    queue: Channel[JudgeTask]
    asks: Channel[JudgeTask]
    _known: OrderedDict[bytes, tuple[bool, str]] = field(default_factory=OrderedDict)
    _asking: dict[bytes, list[JudgeTask]] = field(default_factory=dict)
    _barren: int = 0

    async def offer(self, row: StoredSample, completion: Completion) -> None:
        """Take a row with a reply; it is done at once where its benchmark needs no judge for it."""
        task = self.task(row, completion)
        if task is None:
            self.monitor.done += 1
            return
        self.monitor.judge_waiting += 1
        await self.queue.put(task)

    def task(self, row: StoredSample, completion: Completion) -> JudgeTask | None:
        answer = self.benchmark.read(row.sample, completion)
        item = self.benchmark.judge_item(row.sample, answer)
        if item is None:
            return None
        prompt = self.fill(item)
        return JudgeTask(key=row.key, row_id=row.sample.id, prompt=prompt, prompt_sha=prompt_sha(prompt))

    async def backlog(self, run_id: int, *, before_session: int | None, judged: bool) -> None:
        """Queue rows whose reply is from an earlier session and that have no usable verdict of this judge.

        `judged` looks also at rows that have one, for those whose reply is read differently today.
        """
        position = -1
        while not self.stop:
            page = await self.reader.to_judge(
                run_id, self.judge_id, position, LOOKUP, judged=judged, before_session=before_session
            )
            if not page:
                return
            for row in page:
                task = self.task(row.stored, row.completion)
                if task is not None and task.prompt_sha != row.prompt_sha:
                    self.monitor.done_before -= 1
                    self.monitor.judge_waiting += 1
                    await self.queue.put(task)
            position = page[-1].stored.sample.position

    async def next_unknown(self) -> JudgeTask | None:
        """The next queued row, where its verdict must be bought."""
        unknown = await self._unknown(await self.queue.get_many(1))
        return unknown[0] if unknown else None

    async def sort(self) -> None:
        """The single reader of `queue`: answer what is known, and pass on the first of each new prompt."""
        while tasks := await self.queue.get_many(LOOKUP):
            for task in await self._unknown(tasks):
                await self.asks.put(task)
        self.asks.close(discard=bool(self.stop))

    async def ask_all(self) -> None:
        """One of many workers."""
        async for task in self.asks:
            await self.ask(task)

    async def ask(self, task: JudgeTask) -> bool | None:
        """Buy a verdict for a prompt and give it to every row that waits for it."""
        body = self.client.wire.body(self.client.settings, task.prompt, ())
        raw_input = text_tokens(task.prompt.text)
        verdict: bool | None = None
        last: Completion | Failure | None = None

        async def keep(attempt: Attempt, final: bool) -> None:
            nonlocal verdict
            self.monitor.attempt(attempt, final=final)
            stored = self.recorder.judging(task.key, task.prompt_sha, attempt, final=final)
            if isinstance(attempt.outcome, Completion):
                verdict = self.read_verdict(attempt.outcome.text)
                if verdict is not None:
                    self._settle(task.prompt_sha, verdict, attempt.outcome.text)
                await stored

        for _ in range(ASKS):
            try:
                last = await self.client.call(body, self.estimator.expect(raw_input), keep)
            except Draining:
                return None
            if isinstance(last, Failure):
                break
            self.estimator.learn(raw_input, last)
            if verdict is not None:
                self._barren = 0
                return verdict
        self._give_up(task, last)
        return None

    async def _unknown(self, tasks: list[JudgeTask]) -> list[JudgeTask]:
        """The tasks for which nobody has or is buying a verdict; the rest is settled or set to wait."""
        new: list[JudgeTask] = []
        for task in tasks:
            known = self._known.get(task.prompt_sha)
            waiting = self._asking.get(task.prompt_sha)
            if known is not None:
                self._write(task, *known, shared=True)
            elif waiting is not None:
                waiting.append(task)
            else:
                self._asking[task.prompt_sha] = [task]
                new.append(task)
        if not new:
            return []
        stored = await self.reader.judge_replies(self.judge_id, [task.prompt_sha for task in new])
        unknown = []
        for task in new:
            usable = next(
                (
                    (verdict, reply)
                    for reply in stored.get(task.prompt_sha, ())
                    if (verdict := self.read_verdict(reply)) is not None
                ),
                None,
            )
            if usable is None:
                unknown.append(task)
            else:
                self._settle(task.prompt_sha, *usable, bought=False)
        return unknown

    def _settle(self, sha: bytes, verdict: bool, reply: str, *, bought: bool = True) -> None:
        """Write the verdict for the row that asked and for all that waited."""
        self._known[sha] = (verdict, reply)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        for number, task in enumerate(self._asking.pop(sha, ())):
            self._write(task, verdict, reply, shared=number > 0 or not bought)

    def _write(self, task: JudgeTask, verdict: bool | None, reply: str, *, shared: bool) -> None:
        word = Verdict(correct=verdict, reply=reply)
        self.recorder.verdict(task.key, word, task.prompt_sha, shared=shared)
        self.monitor.judge_waiting -= 1
        self.monitor.done += 1
        self.monitor.shared_verdicts += shared
        self.monitor.unjudged += verdict is None

    def _give_up(self, task: JudgeTask, last: Completion | Failure | None) -> None:
        """No usable verdict: the rows are unjudged, which is not wrong."""
        words = last.message if isinstance(last, Failure) else "no verdict in the judge's reply"
        reply = last.text if isinstance(last, Completion) else ""
        for waiting in self._asking.pop(task.prompt_sha, ()):
            self._write(waiting, None, reply, shared=waiting is not task)
        log.warning("unjudged: %s", words, extra={"row": task.row_id})
        settings = self.client.settings
        self._barren += 1
        if isinstance(last, Failure) and last.kind in FATAL_KINDS:
            self.stop.request(EndpointError(explain(last, settings)))
        elif self._barren >= WINDOW:
            self.stop.request(
                EndpointDownError(
                    f"the judge {settings.model} at {settings.host} gave no usable verdict for "
                    f"{self._barren} rows in a row ({words}); stopped, everything so far is kept."
                )
            )
