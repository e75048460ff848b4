"""A judge, asked in batches.

Everything is read from the store: rows with a reply and no usable verdict, and replies of this judge to the
same filled prompt, which are taken rather than bought. Of rows with the same prompt one is asked; the others
find its verdict in the store when the batch is back.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from mmbu_async.endpoints.batches.format import without_stream
from mmbu_async.endpoints.tokens import text_tokens
from mmbu_async.model import Attempt, Completion, Failure, Verdict
from mmbu_async.pipeline.batch_source import Draft, Feed, Kept
from mmbu_async.pipeline.judging import ASKS, LOOKUP, JudgeStage, JudgeTask, Waiting, why_unjudged
from mmbu_async.pipeline.panel import Panel
from mmbu_async.store import BatchItem, CallRecord, Fate, VerdictRecord

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Unjudged:
    """Rows that wait for judges, told to whoever watches: a row is done when all that it met have ended."""

    waiting: Waiting
    _open: Counter[int] = field(default_factory=Counter)
    _met: set[tuple[int, int]] = field(default_factory=set)
    _barren: set[int] = field(default_factory=set)

    def meet(self, key: int, judge: int) -> None:
        if (key, judge) in self._met:
            return
        self._met.add((key, judge))
        self._open[key] += 1
        if self._open[key] == 1:
            self.waiting.begin_again(key, 1)

    def end(self, key: int, judge: int, *, usable: bool) -> None:
        if (key, judge) not in self._met:
            return
        self._met.discard((key, judge))
        self._open[key] -= 1
        if not usable:
            self._barren.add(key)
        if self._open[key] == 0:
            del self._open[key]
            self.waiting.end(key, usable=key not in self._barren)
            self._barren.discard(key)


@dataclass(slots=True, kw_only=True)
class JudgeSource:
    """See `batch_source.Source`."""

    stage: JudgeStage
    panel: Panel
    feed: Feed
    unjudged: Unjudged
    run_id: int
    rejudge: bool
    """Look also at rows whose verdict answers another reading of their reply."""
    label: str = field(init=False)
    judge_id: int = field(init=False)
    _seen: int = -1
    """Version of the feed at the last look."""
    _news: bool = True
    _tried: dict[str, int] = field(default_factory=dict)
    """Attempts of this session on prompts that came to nothing so far."""
    _unusable: Counter[str] = field(default_factory=Counter)
    _given_up: dict[str, str] = field(default_factory=dict)
    """Prompt -> the last reply, of prompts that are not asked again in this session."""
    _without: set[int] = field(default_factory=set)
    """Rows that go without a verdict."""

    def __post_init__(self) -> None:
        self.label = f"judge {self.stage.label}"
        self.judge_id = self.stage.judge_id

    def news(self) -> bool:
        return self._news or self.feed.version > self._seen

    async def drafts(self) -> AsyncGenerator[Draft, None]:
        self._news, self._seen = False, self.feed.version
        stage, position = self.stage, -1
        settings = without_stream(stage.client.settings)
        asked = await stage.reader.open_batch_shas(self.run_id, self.judge_id)
        while page := await stage.reader.to_judge(
            self.run_id, (self.judge_id,), position, LOOKUP, judged=self.rejudge
        ):
            position = page[-1].stored.sample.position
            tasks = []
            for row in page:
                task = self.panel.task(row.stored, row.completion)
                if task is None or row.stored.key in self._without:
                    continue
                if row.usable.get(self.judge_id, b"") != task.prompt_sha:
                    tasks.append(task)
            for task in await self._unknown(tasks):
                sha = task.prompt_sha.hex()
                if sha in asked:
                    continue
                asked.add(sha)
                yield Draft(
                    key=task.key,
                    row_id=task.row_id,
                    body=stage.client.wire.body(settings, task.prompt, ()),
                    raw_input=text_tokens(task.prompt.text),
                    attempt=self._tried.get(sha, 0) + 1,
                    prompt_sha=sha,
                )

    async def _unknown(self, tasks: list[JudgeTask]) -> list[JudgeTask]:
        """The tasks without an answer in the store; the others get theirs."""
        if not tasks:
            return []
        stage, unknown, records = self.stage, [], []
        stored = await stage.reader.judge_replies(self.judge_id, [task.prompt_sha for task in tasks])
        for task in tasks:
            self.unjudged.meet(task.key, self.judge_id)
            usable = next(
                (
                    (verdict, reply)
                    for reply in stored.get(task.prompt_sha, ())
                    if (verdict := stage.read_verdict(reply)) is not None
                ),
                None,
            )
            sha = task.prompt_sha.hex()
            if usable is not None:
                records.append(self._verdict(task.key, sha, usable[0], usable[1], shared=True))
            elif sha in self._given_up:
                records.append(self._verdict(task.key, sha, None, self._given_up[sha], shared=True))
            else:
                unknown.append(task)
        if records:
            stage.monitor.shared_verdicts += len(records)
            await stage.recorder.writer.write(*records)
        return unknown

    async def more(self) -> bool:
        return self._news or await self.feed.after(self._seen)

    def keep(self, item: BatchItem, attempt: Attempt, *, final: bool) -> Kept:
        stage, outcome, sha = self.stage, attempt.outcome, item.prompt_sha
        call = CallRecord(
            run_id=self.run_id,
            session_id=stage.recorder.session_id,
            sample_key=item.sample_key,
            judge_id=self.judge_id,
            attempt=attempt,
            final=final,
            prompt_sha=bytes.fromhex(sha),
        )
        if not isinstance(outcome, Completion):
            if not final:
                return Kept(records=(call,), fate=Fate.AGAIN, useful=False)
            self._give_up(sha, outcome)
            verdict = self._verdict(item.sample_key, sha, None, "", shared=False)
            return Kept(records=(call, verdict), fate=Fate.FAILED, useful=False)
        stage.estimator.learn(item.raw_input, outcome)
        word = stage.read_verdict(outcome.text)
        if word is None:
            self._unusable[sha] += 1
            if self._unusable[sha] < ASKS:
                return Kept(records=(call,), fate=Fate.AGAIN, useful=False)
            self._give_up(sha, outcome)
        verdict = self._verdict(item.sample_key, sha, word, outcome.text, shared=False)
        return Kept(records=(call, verdict), fate=Fate.REPLY, useful=word is not None)

    def again(self, item: BatchItem, *, tried: bool) -> None:
        self._news = True
        if tried:
            self._tried[item.prompt_sha] = item.attempt

    def turned_over(self) -> None:
        # Rows with the same prompt find the verdict now.
        self._news = True

    def _verdict(self, key: int, sha: str, word: bool | None, reply: str, *, shared: bool) -> VerdictRecord:
        if word is None:
            self._without.add(key)
        self.unjudged.end(key, self.judge_id, usable=word is not None)
        return VerdictRecord(
            run_id=self.run_id,
            sample_key=key,
            judge_id=self.judge_id,
            verdict=Verdict(correct=word, reply=reply),
            prompt_sha=bytes.fromhex(sha),
            shared=shared,
        )

    def _give_up(self, sha: str, last: Completion | Failure) -> None:
        self._given_up[sha] = last.text if isinstance(last, Completion) else ""
        log.warning("unjudged: %s", why_unjudged(last))
