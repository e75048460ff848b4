"""Answers of measured replies, scored: does a server that is full answer as well as one that is not?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mmbu_async.bench.ask import Ask
from mmbu_async.bench.record import Record, Sent
from mmbu_async.model import Benchmark, ScoreItem


class Scorer:
    """Gathers replies while a stage runs and scores them after it: scoring takes time that is not the
    endpoint's. Rows that need a judge stay unscored."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark
        self._replies: list[tuple[Ask, Sent]] = []

    def keep(self, ask: Ask, sent: Sent) -> None:
        if ask.row is not None and sent.reply is not None and sent.record.ok:
            self._replies.append((ask, sent))

    def score(self, records: Sequence[Record]) -> tuple[Record, ...]:
        """The records with what became of their answers; the replies are forgotten."""
        replies, self._replies = self._replies, []
        found: dict[int, Record] = {}
        items: list[ScoreItem] = []
        numbers: list[int] = []
        for ask, sent in replies:
            if ask.row is None or sent.reply is None:
                continue
            number = sent.record.number
            found[number] = replace(sent.record, text=sent.reply.text)
            sample = ask.row.sample
            answer = self._benchmark.read(sample, sent.reply)
            if self._benchmark.judge_item(sample, answer) is None:
                items.append(ScoreItem(sample=sample, answer=answer, image_scale=ask.image_scale))
                numbers.append(number)
        for number, score in zip(numbers, self._benchmark.score(items) if items else [], strict=True):
            found[number] = replace(found[number], correct=score.correct)
        return tuple(found.get(record.number, record) for record in records)
