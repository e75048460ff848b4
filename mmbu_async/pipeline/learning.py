"""What the store's replies teach about the tokens of the next ones, before a run begins.

Means by family of rows, since a family's rows have alike prompts, images and answers: a rule for images that
is wrong by a factor, as it is for most servers, is then of no matter. How often a judge will be asked follows
from how often rows with the same question and truth were answered alike.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Self

from mmbu_async.config import RunConfig
from mmbu_async.errors import StoreError
from mmbu_async.model import Benchmark, Usage
from mmbu_async.pipeline.identity import differences, judge_identity, run_identity
from mmbu_async.store import JudgedPrompt, RunRecord, Store, UsageRecord

FEWEST = 10
"""Replies below which the rules are trusted more."""
MOST = 500
"""Replies that are read of a side."""
FEWEST_OF_FAMILY = 3
"""Replies below which a family is taken to be like the mean of all."""
PRIOR_PAIRS = 2
"""Pairs of rows that what is believed without having seen any weighs as much as."""
MOST_PROMPTS = 5000
"""Rows whose prompts to a judge are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """Mean usage of a side's replies."""

    replies: int
    overall: tuple[float, float]
    """Input and output tokens of a reply."""
    families: dict[str, tuple[float, float]]
    cached: float
    """Share of the input tokens that came from a cache."""
    cache_written: float

    @classmethod
    def of(cls, records: Sequence[UsageRecord]) -> Self | None:
        """None where there are too few."""
        if len(records) < FEWEST:
            return None
        grouped: defaultdict[str, list[Usage]] = defaultdict(list)
        for record in records:
            grouped[record.family].append(record.usage)
        everything = [record.usage for record in records]
        given = max(1, sum(usage.input_tokens for usage in everything))
        return cls(
            replies=len(records),
            overall=_means(everything),
            families={
                name: _means(usages) for name, usages in grouped.items() if len(usages) >= FEWEST_OF_FAMILY
            },
            cached=sum(usage.cached_tokens for usage in everything) / given,
            cache_written=sum(usage.cache_write_tokens for usage in everything) / given,
        )

    def expect(self, family: str) -> tuple[float, float]:
        """Input and output tokens of the reply to a row of this family."""
        return self.families.get(family, self.overall)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What is known of one side; `usual` None: nothing, and the rules are all there is."""

    usual: Usual | None = None
    prompts: dict[str, JudgedPrompt] = field(default_factory=dict)
    """Of rows that a judge has a verdict on, by their id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lessons:
    """What one store teaches."""

    model: Lesson
    judges: tuple[Lesson, ...]
    """In the order of the configuration's judges."""
    unread: str = ""
    """Why the store could not be read; '' where it could, or there is none."""


def learn(config: RunConfig, benchmark: Benchmark, judge_prompt_sha256: str) -> Lessons:
    """Read the store as it is. Nothing is written, and a store that cannot be read stops no dry run."""
    nothing = tuple(Lesson() for _ in config.judges)
    if not config.store.exists():
        return Lessons(model=Lesson(), judges=nothing)
    try:
        with Store.open(config.store, create=False, read_only=True) as store:
            newest = [run for run in reversed(store.runs()) if run.benchmark == benchmark.name]
            own = [run for run in newest if _alike(run, config, benchmark)]
            judges = []
            for settings in config.judges:
                key = store.known_judge(judge_identity(settings, judge_prompt_sha256))
                judges.append(Lesson() if key is None else _judge(store, key, newest, own))
            return Lessons(model=Lesson(usual=_usual(store, own, None)), judges=tuple(judges))
    except StoreError as error:
        return Lessons(model=Lesson(), judges=nothing, unread=str(error))


def distinct_prompts(groups: Iterable[int], alike: float) -> float:
    """Prompts expected of groups of rows of these sizes, whose members differ by their answer alone.

    `alike`: the chance that two rows of a group are answered in the same words. Answers are taken to be
    spread over 1 / `alike` equally likely ones.
    """
    return sum((1 - (1 - alike) ** size) / alike if alike > 0 else size for size in groups)


def answered_alike(groups: Collection[Sequence[JudgedPrompt]]) -> float:
    """The chance that two rows of one group were put to the judge in the same words.

    Pairs that were seen decide it. Few pairs, or none, leave it near the chance that both are right, since
    right answers to one question are mostly worded alike.
    """
    pairs = same = right = rows = 0
    for prompts in groups:
        rows += len(prompts)
        right += sum(prompt.correct for prompt in prompts)
        pairs += comb(len(prompts), 2)
        same += sum(comb(count, 2) for count in Counter(prompt.sha for prompt in prompts).values())
    both_right = (right / rows) ** 2 if rows else 0.0
    return (same + PRIOR_PAIRS * both_right) / (pairs + PRIOR_PAIRS)


def _alike(run: RunRecord, config: RunConfig, benchmark: Benchmark) -> bool:
    """Whether a run asked the same model at the same host in the same way; about which rows is no matter."""
    identity = run_identity(config, benchmark, fingerprint="", image_policy={})
    free = {"dataset": "", "images": {}}
    return run.host == config.host and not differences({**run.identity, **free}, {**identity, **free})


def _judge(store: Store, key: int, newest: Sequence[RunRecord], own: Sequence[RunRecord]) -> Lesson:
    prompts: dict[str, JudgedPrompt] = {}
    for run in own:
        left = MOST_PROMPTS - len(prompts)
        if left <= 0:
            break
        prompts = store.judged_prompts(run.id, key, left) | prompts
    return Lesson(usual=_usual(store, newest, key), prompts=prompts)


def _usual(store: Store, runs: Sequence[RunRecord], judge: int | None) -> Usual | None:
    records: list[UsageRecord] = []
    for run in runs:
        if len(records) >= MOST:
            break
        records += store.usages(run.id, judge, MOST - len(records))
    return Usual.of(records)


def _means(usages: Sequence[Usage]) -> tuple[float, float]:
    return (
        sum(usage.input_tokens for usage in usages) / len(usages),
        sum(usage.output_tokens for usage in usages) / len(usages),
    )
