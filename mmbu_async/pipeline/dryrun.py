"""Everything that can be known before the first call: rows, images, prompts, tokens, money, time."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice

from mmbu_async.config import CallSettings, RunConfig
from mmbu_async.endpoints.batches.prices import batch_price
from mmbu_async.endpoints.prices import Price, Prices
from mmbu_async.endpoints.tokens import (
    FIRST_OUTPUT_GUESS,
    Estimator,
    most_output_tokens,
    text_tokens,
)
from mmbu_async.errors import ImageError
from mmbu_async.images import ImageLimits, prepare, verify
from mmbu_async.model import Answer, Benchmark, JudgeItem, PreparedImage, Prompt, Sample, Usage
from mmbu_async.pipeline.learning import Lesson, Lessons, answered_alike, distinct_prompts
from mmbu_async.pipeline.scoring import prompt_sha
from mmbu_async.pipeline.selecting import keeper
from mmbu_async.sources import Source, samples
from mmbu_async.store import JudgedPrompt

ASSUMED_CALL_S = 5.0
"""Seconds a call is taken to last where nothing has been measured yet."""
BATCH_S = 24 * 3600.0
"""Seconds within which both makers answer a batch; most are back much sooner."""
JUDGE_REPLY_TOKENS = 40
"""One line with a rationale and a result."""
SHOWN_PROBLEMS = 20
_CHUNK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class SideEstimate:
    """What one side, the model or a judge, is expected to take."""

    name: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """None: no price is known."""
    price_source: str
    replies: int
    """Of this side in the store, from which the tokens were learnt; 0: they are by rules alone."""
    seconds: float
    """At the configured concurrency and limits, a call taken to last ASSUMED_CALL_S; in batches BATCH_S."""
    batched: bool = False


@dataclass(slots=True, kw_only=True)
class DryRun:
    """What a dry run found. `problems` empty: the run can start."""

    rows: int = 0
    """Of the selection."""
    dataset_rows: int = 0
    left_out: int = 0
    """Rows of the data that are none of the benchmark's."""
    families: Counter[str] = field(default_factory=Counter)
    blemishes: Counter[str] = field(default_factory=Counter)
    converted: Counter[str] = field(default_factory=Counter)
    """Why images will not be sent as they are."""
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    prompts: dict[str, Prompt] = field(default_factory=dict)
    """One filled prompt of each route."""
    judge_prompt: Prompt | None = None
    """One filled judge prompt, the truth standing in for the model's answer."""
    model: SideEstimate | None = None
    judges: tuple[SideEstimate, ...] = ()
    """As they are asked, the judge first."""
    store: str = ""
    """Name of the file that was learnt from."""
    unread: str = ""
    """Why the store could not be learnt from; '' where it could, or there is none."""

    def problem(self, text: str) -> None:
        self.problem_count += 1
        if len(self.problems) < SHOWN_PROBLEMS:
            self.problems.append(text)


@dataclass(slots=True, kw_only=True)
class _Load:
    """Running sums for one side."""

    lesson: Lesson
    rows: int = 0
    input_tokens: float = 0
    output_tokens: float = 0
    groups: Counter[bytes] = field(default_factory=Counter)
    """Rows by their prompt to a judge, the truth standing in for the answer."""
    answered: defaultdict[bytes, list[JudgedPrompt]] = field(default_factory=lambda: defaultdict(list))
    """What the store's rows of such a group were really put to the judge as."""

    def add(self, family: str, by_rules: tuple[int, int]) -> None:
        """A row, and the input and output tokens that the rules expect for it."""
        usual = self.lesson.usual
        given, made = by_rules if usual is None else usual.expect(family)
        self.rows += 1
        self.input_tokens += given
        self.output_tokens += made

    def group(self, row_id: str, sha: bytes) -> None:
        self.groups[sha] += 1
        if (real := self.lesson.prompts.get(row_id)) is not None:
            self.answered[sha].append(real)

    @property
    def calls(self) -> int:
        """As many as rows where nothing is known of the answers: at most so many."""
        if not self.answered:
            return self.rows
        return math.ceil(distinct_prompts(self.groups.values(), answered_alike(self.answered.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunner:
    """Validates every selected row and image and adds up what a run would take. Makes no call."""

    config: RunConfig
    benchmark: Benchmark
    source: Source
    limits: ImageLimits
    fill: Callable[[JudgeItem], Prompt]
    lessons: Lessons

    def run(self) -> DryRun:
        """Raises DataError when rows cannot be used at all; images that cannot are listed as problems."""
        found = DryRun(store=self.config.store.name, unread=self.lessons.unread)
        model = _Load(lesson=self.lessons.model)
        judges = [_Load(lesson=lesson) for lesson in self.lessons.judges]
        with ThreadPoolExecutor(thread_name_prefix="verify") as pool:
            for chunk in _chunks(self._selected(found), _CHUNK):
                prepared = pool.map(self._images, (sample for sample, _ in chunk))
                for (sample, family), images in zip(chunk, prepared, strict=True):
                    self._row(found, sample, family, images, model, judges)
        found.model = _estimate(self.config.model, self.config, model)
        found.judges = tuple(
            _estimate(one.label, one, load) for one, load in zip(self.config.judges, judges, strict=True)
        )
        return found

    def _selected(self, found: DryRun) -> Iterator[tuple[Sample, str]]:
        keep = keeper(self.config.task, self.config.where)

        def left_out() -> None:
            found.left_out += 1

        for sample, family in samples(self.source, self.benchmark, left_out=left_out):
            found.dataset_rows += 1
            if keep is not None and not keep(sample):
                continue
            if self.config.limit is not None and found.rows >= self.config.limit:
                continue
            found.rows += 1
            found.families[family] += 1
            yield sample, family

    def _images(self, sample: Sample) -> list[PreparedImage] | str:
        """The images as they would be sent, or what is wrong with one."""
        prepared = []
        for ref in sample.images:
            try:
                data = self.source.read_image(ref)
                verify(data)
                prepared.append(replace(prepare(data, self.limits), data=b""))
            except ImageError as error:
                return f"row {sample.id}, {ref.locator}: {error}"
        return prepared

    def _row(
        self,
        found: DryRun,
        sample: Sample,
        family: str,
        images: list[PreparedImage] | str,
        model: _Load,
        judges: list[_Load],
    ) -> None:
        found.blemishes.update(self.benchmark.blemishes(sample))
        if isinstance(images, str):
            found.problem(images)
            return
        found.converted.update(image.converted for image in images if image.converted)
        prompt = self.benchmark.prompt(sample)
        found.prompts.setdefault(self.benchmark.shown_route(sample), prompt)
        given = text_tokens(prompt.system or "") + text_tokens(prompt.text)
        given += Estimator.of(self.config).raw_input((), tuple(images))
        model.add(family, (given, min(FIRST_OUTPUT_GUESS, most_output_tokens(self.config))))
        item = self.benchmark.judge_item(sample, Answer(text=sample.answer, how="tag"))
        if item is not None:
            filled = self.fill(item)
            found.judge_prompt = found.judge_prompt or filled
            sha = prompt_sha(filled)
            for judge in judges:
                judge.add(family, (text_tokens(filled.text), JUDGE_REPLY_TOKENS))
                judge.group(sample.id, sha)


def _estimate(name: str, settings: CallSettings, load: _Load) -> SideEstimate:
    price: Price | None = batch_price(settings) if settings.batch else Prices().find(settings)
    usual = load.lesson.usual
    calls = load.calls
    # Rows that share a prompt are bought once.
    bought = calls / load.rows if load.rows else 0.0
    given = round(load.input_tokens * bought)
    usage = Usage(
        input_tokens=given,
        output_tokens=round(load.output_tokens * bought),
        cached_tokens=0 if usual is None else round(given * usual.cached),
        cache_write_tokens=0 if usual is None else round(given * usual.cache_written),
    )
    seconds = [calls * ASSUMED_CALL_S / settings.concurrency]
    if settings.batch:
        # Limits of calls do not hold in batches, and how long those wait is the provider's affair.
        seconds = [BATCH_S if calls else 0.0]
    elif settings.rpm:
        seconds.append(calls / settings.rpm * 60)
    if settings.tpm and not settings.batch:
        seconds.append((usage.input_tokens + usage.output_tokens) / settings.tpm * 60)
    return SideEstimate(
        name=name,
        calls=calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        # Tiered prices depend on the size of one call, so the sum is priced as that many calls of mean size.
        cost_usd=None if price is None else _cost(price, usage, calls),
        price_source=price.source if price is not None else "",
        replies=0 if usual is None else usual.replies,
        seconds=max(seconds),
        batched=bool(settings.batch),
    )


def _cost(price: Price, usage: Usage, calls: int) -> float:
    if calls == 0:
        return 0.0
    mean = Usage(
        input_tokens=round(usage.input_tokens / calls),
        output_tokens=round(usage.output_tokens / calls),
        cached_tokens=usage.cached_tokens // calls,
        cache_write_tokens=usage.cache_write_tokens // calls,
    )
    return price.cost(mean) * calls


def _chunks(rows: Iterator[tuple[Sample, str]], size: int) -> Iterator[list[tuple[Sample, str]]]:
    while chunk := list(islice(rows, size)):
        yield chunk
