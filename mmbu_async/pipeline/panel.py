"""The judges of a session, one or several: a row goes to each of them and is done when all have answered.

A judge of a panel is a stage of its own, with its own client, limits and queue. A slow one holds the others
back, since a row must end with every verdict before its place is free: that keeps memory bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from mmbu_async.model import Benchmark, Completion, JudgeItem, Prompt
from mmbu_async.pipeline.judging import LOOKUP, JudgeStage, JudgeTask, Waiting
from mmbu_async.pipeline.scoring import prompt_sha
from mmbu_async.pipeline.stop import Stop
from mmbu_async.store import Reader, StoredSample


@dataclass(slots=True, kw_only=True)
class Panel:
    """What stands before the judges' queues."""

    stages: tuple[JudgeStage, ...]
    waiting: Waiting
    reader: Reader
    benchmark: Benchmark
    fill: Callable[[JudgeItem], Prompt]
    stop: Stop
    _ids: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._ids = tuple(stage.judge_id for stage in self.stages)

    async def offer(self, row: StoredSample, completion: Completion) -> None:
        """Take a row with a reply; it is done at once where its benchmark needs no judge for it."""
        # Judges that ask in batches come later, and read from the store.
        task = self.task(row, completion) if self.stages else None
        if task is None:
            self.waiting.needless()
            return
        self.waiting.begin(task.key, len(self.stages))
        for stage in self.stages:
            await stage.queue.put(task)

    def task(self, row: StoredSample, completion: Completion) -> JudgeTask | None:
        answer = self.benchmark.read(row.sample, completion)
        item = self.benchmark.judge_item(row.sample, answer)
        if item is None:
            return None
        prompt = self.fill(item)
        return JudgeTask(key=row.key, row_id=row.sample.id, prompt=prompt, prompt_sha=prompt_sha(prompt))

    async def backlog(self, run_id: int, *, before_session: int | None, judged: bool) -> None:
        """Queue rows whose reply is from an earlier session for each judge that gave no usable verdict.

        `judged` looks also at verdicts that are usable: of rows whose reply is read differently today.
        """
        position = -1
        while not self.stop:
            page = await self.reader.to_judge(
                run_id, self._ids, position, LOOKUP, judged=judged, before_session=before_session
            )
            if not page:
                return
            for row in page:
                task = self.task(row.stored, row.completion)
                if task is None:
                    continue
                asked = [stage for stage in self.stages if _lacks(stage, task, row.usable, judged=judged)]
                if not asked:
                    continue
                self.waiting.begin_again(task.key, len(asked))
                for stage in asked:
                    await stage.queue.put(task)
            position = page[-1].stored.sample.position

    async def first_rows(self, run_id: int, *, before_session: int | None, judged: bool) -> list[JudgeStage]:
        """Queue one row for each judge that has to be asked about any of the first ones: see `backlog`."""
        chosen: dict[str, JudgeTask] = {}
        page = await self.reader.to_judge(
            run_id, self._ids, -1, LOOKUP, judged=judged, before_session=before_session
        )
        for row in page:
            task = self.task(row.stored, row.completion)
            if task is None:
                continue
            for stage in self.stages:
                if stage.label not in chosen and _lacks(stage, task, row.usable, judged=judged):
                    chosen[stage.label] = task
        for key, judges in Counter(task.key for task in chosen.values()).items():
            self.waiting.begin_again(key, judges)
        asked = [stage for stage in self.stages if stage.label in chosen]
        for stage in asked:
            await stage.queue.put(chosen[stage.label])
        return asked

    def close(self) -> None:
        """No row will come any more."""
        for stage in self.stages:
            stage.queue.close()


def _lacks(stage: JudgeStage, task: JudgeTask, usable: dict[int, bytes | None], *, judged: bool) -> bool:
    if stage.judge_id not in usable:
        return True
    return judged and usable[stage.judge_id] != task.prompt_sha
