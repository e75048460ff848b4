"""The judge's stages: what is known already, what another row is asking just now, and what must be bought.

Rows with the same filled prompt need one call. A verdict is looked for among those of this session, then in
the store (earlier sessions and other runs with the same judge), then a row that is being asked about is
waited for; only what is left is asked.
"""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from mmbu_async.endpoints.client import EndpointClient
from mmbu_async.endpoints.gate import Draining
from mmbu_async.endpoints.tokens import Estimator, text_tokens
from mmbu_async.errors import EndpointDownError, EndpointError
from mmbu_async.model import Attempt, Completion, Failure, Finish, Prompt, Verdict
from mmbu_async.pipeline.beside import Beside
from mmbu_async.pipeline.channel import Channel
from mmbu_async.pipeline.explain import concerns_every_row, explain
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.pipeline.records import Recorder
from mmbu_async.pipeline.stop import Stop
from mmbu_async.store import Reader

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


class Waiting:
    """Rows between their reply and the last of their verdicts, for whoever watches."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._left: dict[int, int] = {}
        """Judges that have not answered, of rows that wait for more than one."""
        self._barren: set[int] = set()
        """Rows of which a judge gave no usable verdict."""

    def needless(self) -> None:
        """A row with a reply needs no judge."""
        self._monitor.done += 1

    def begin(self, key: int, judges: int) -> None:
        """A row with a reply goes to so many judges."""
        self._monitor.judge_waiting += 1
        if judges > 1:
            self._left[key] = judges

    def begin_again(self, key: int, judges: int) -> None:
        """The same for a row that counted as done."""
        self._monitor.done_before -= 1
        self.begin(key, judges)

    def end(self, key: int, *, usable: bool) -> None:
        """A judge has been asked about a row."""
        if not usable:
            self._barren.add(key)
        left = self._left.pop(key, 1) - 1
        if left:
            self._left[key] = left
            return
        self._monitor.judge_waiting -= 1
        self._monitor.done += 1
        if key in self._barren:
            self._barren.discard(key)
            self._monitor.unjudged += 1


@dataclass(slots=True, kw_only=True)
class JudgeStage:
    """Everything between a stored reply and one judge's stored verdict on it."""

    judge_id: int
    client: EndpointClient
    reader: Reader
    recorder: Recorder
    read_verdict: Callable[[str], bool | None]
    estimator: Estimator
    monitor: Monitor
    waiting: Waiting
    stop: Stop
    queue: Channel[JudgeTask]
    asks: Channel[JudgeTask]
    label: str
    """What the judge is called among those of the run."""
    beside: Beside | None = None
    """Other runs, which may be asking the judge the same; None: there are none."""
    _known: OrderedDict[bytes, tuple[bool, str]] = field(default_factory=OrderedDict)
    _asking: dict[bytes, list[JudgeTask]] = field(default_factory=dict)
    _barren: int = 0
    replied: bool = False
    """Whether the judge has replied in this session."""

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

    async def ask(self, task: JudgeTask, *, patience_s: float = math.inf) -> bool | None:
        """Buy a verdict for a prompt and give it to every row that waits for it."""
        if self.beside is None:
            return await self._buy(task, patience_s)
        async with self.beside.turn((self.judge_id, task.prompt_sha)) as waited:
            if waited and (found := (await self._stored([task])).get(task.prompt_sha)) is not None:
                self._settle(task.prompt_sha, *found, bought=False)
                return found[0]
            return await self._buy(task, patience_s)

    async def _buy(self, task: JudgeTask, patience_s: float) -> bool | None:
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

        here = f"{task.row_id} at judge {self.label}"
        self.monitor.under_way[here] = time.monotonic()
        try:
            for _ in range(ASKS):
                expected = self.estimator.expect(raw_input)
                last = await self.client.call(body, expected, keep, patience_s=patience_s)
                if isinstance(last, Failure):
                    break
                self.replied = True
                self.estimator.learn(raw_input, last)
                if verdict is not None:
                    self._barren = 0
                    return verdict
        except Draining:
            return None
        finally:
            del self.monitor.under_way[here]
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
        stored = await self._stored(new)
        unknown = []
        for task in new:
            if task.prompt_sha in stored:
                self._settle(task.prompt_sha, *stored[task.prompt_sha], bought=False)
            else:
                unknown.append(task)
        return unknown

    async def _stored(self, tasks: list[JudgeTask]) -> dict[bytes, tuple[bool, str]]:
        """Usable verdicts on these prompts that any run has bought, with their replies."""
        stored = await self.reader.judge_replies(self.judge_id, [task.prompt_sha for task in tasks])
        found: dict[bytes, tuple[bool, str]] = {}
        for sha, replies in stored.items():
            for reply in replies:
                if (verdict := self.read_verdict(reply)) is not None:
                    found[sha] = verdict, reply
                    break
        return found

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
        self.monitor.shared_verdicts += shared
        self.waiting.end(task.key, usable=verdict is not None)

    def _give_up(self, task: JudgeTask, last: Completion | Failure | None) -> None:
        """No usable verdict: the rows are unjudged, which is not wrong."""
        words = why_unjudged(last)
        reply = last.text if isinstance(last, Completion) else ""
        for waiting in self._asking.pop(task.prompt_sha, ()):
            self._write(waiting, None, reply, shared=waiting is not task)
        log.warning("unjudged: %s", words, extra={"row": task.row_id})
        settings = self.client.settings
        self._barren += 1
        if isinstance(last, Failure) and concerns_every_row(last, settings, proven=self.replied):
            self.stop.request(EndpointError(explain(last, settings)))
        elif self._barren >= WINDOW:
            self.stop.request(
                EndpointDownError(
                    f"the judge {self.label} at {settings.host} gave no usable verdict for "
                    f"{self._barren} rows in a row ({words}); stopped, everything so far is kept."
                )
            )


def why_unjudged(last: Completion | Failure | None) -> str:
    """Why there is no verdict: a limit that was spent on thinking can be raised, a refusal can not."""
    match last:
        case Failure():
            return last.message
        case Completion(finish=Finish.LENGTH):
            return "the token limit ended the judge's reply before its verdict; raise --judge-max-tokens"
        case Completion(finish=Finish.REFUSAL):
            return "the judge refused to answer"
        case _:
            return "no verdict in the judge's reply"
