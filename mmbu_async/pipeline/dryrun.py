"""Everything that can be known before the first call: rows, images, prompts, tokens, money, time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice

from mmbu_async.config import CallSettings, RunConfig
from mmbu_async.endpoints.prices import Price, Prices
from mmbu_async.endpoints.tokens import (
    FIRST_OUTPUT_GUESS,
    image_tokens,
    most_output_tokens,
    text_tokens,
)
from mmbu_async.errors import ImageError
from mmbu_async.images import ImageLimits, prepare, verify
from mmbu_async.model import Answer, Benchmark, JudgeItem, PreparedImage, Prompt, Sample, Usage
from mmbu_async.pipeline.selecting import keeper
from mmbu_async.sources import Source, samples

ASSUMED_CALL_S = 5.0
"""Seconds a call is taken to last where nothing has been measured yet."""
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
    seconds: float
    """At the configured concurrency and limits, a call taken to last ASSUMED_CALL_S."""


@dataclass(slots=True, kw_only=True)
class DryRun:
    """What a dry run found. `problems` empty: the run can start."""

    rows: int = 0
    """Of the selection."""
    dataset_rows: int = 0
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

    def problem(self, text: str) -> None:
        self.problem_count += 1
        if len(self.problems) < SHOWN_PROBLEMS:
            self.problems.append(text)


@dataclass(slots=True, kw_only=True)
class _Load:
    """Running sums for one side."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, input_tokens: int, output_tokens: int) -> None:
        self.calls += 1
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunner:
    """Validates every selected row and image and adds up what a run would take. Makes no call."""

    config: RunConfig
    benchmark: Benchmark
    source: Source
    limits: ImageLimits
    fill: Callable[[JudgeItem], Prompt]

    def run(self) -> DryRun:
        """Raises DataError when rows cannot be used at all; images that cannot are listed as problems."""
        found = DryRun()
        model, judge = _Load(), _Load()
        with ThreadPoolExecutor(thread_name_prefix="verify") as pool:
            for chunk in _chunks(self._selected(found), _CHUNK):
                for sample, images in zip(chunk, pool.map(self._images, chunk), strict=True):
                    self._row(found, sample, images, model, judge)
        found.model = _estimate(self.config.model, self.config, model)
        found.judges = tuple(_estimate(one.label, one, judge) for one in self.config.judges)
        return found

    def _selected(self, found: DryRun) -> Iterator[Sample]:
        keep = keeper(self.config.task, self.config.where)
        for sample, family in samples(self.source, self.benchmark):
            found.dataset_rows += 1
            if keep is not None and not keep(sample):
                continue
            if self.config.limit is not None and found.rows >= self.config.limit:
                continue
            found.rows += 1
            found.families[family] += 1
            yield sample

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
        self, found: DryRun, sample: Sample, images: list[PreparedImage] | str, model: _Load, judge: _Load
    ) -> None:
        found.blemishes.update(self.benchmark.blemishes(sample))
        if isinstance(images, str):
            found.problem(images)
            return
        found.converted.update(image.converted for image in images if image.converted)
        prompt = self.benchmark.prompt(sample)
        found.prompts.setdefault(self.benchmark.shown_route(sample), prompt)
        model.add(
            text_tokens(prompt.system or "")
            + text_tokens(prompt.text)
            + sum(image_tokens(self.config.endpoint, image.width, image.height) for image in images),
            min(FIRST_OUTPUT_GUESS, most_output_tokens(self.config)),
        )
        item = self.benchmark.judge_item(sample, Answer(text=sample.answer, how="tag"))
        if item is not None:
            filled = self.fill(item)
            found.judge_prompt = found.judge_prompt or filled
            judge.add(text_tokens(filled.text), JUDGE_REPLY_TOKENS)


def _estimate(name: str, settings: CallSettings, load: _Load) -> SideEstimate:
    price: Price | None = Prices().find(settings)
    usage = Usage(input_tokens=load.input_tokens, output_tokens=load.output_tokens)
    seconds = [load.calls * ASSUMED_CALL_S / settings.concurrency]
    if settings.rpm:
        seconds.append(load.calls / settings.rpm * 60)
    if settings.tpm:
        seconds.append((load.input_tokens + load.output_tokens) / settings.tpm * 60)
    return SideEstimate(
        name=name,
        calls=load.calls,
        input_tokens=load.input_tokens,
        output_tokens=load.output_tokens,
        # Tiered prices depend on the size of one call, so the sum is priced as that many calls of mean size.
        cost_usd=None if price is None else _cost(price, usage, load.calls),
        price_source=price.source if price is not None else "",
        seconds=max(seconds),
    )


def _cost(price: Price, usage: Usage, calls: int) -> float:
    if calls == 0:
        return 0.0
    mean = Usage(
        input_tokens=round(usage.input_tokens / calls), output_tokens=round(usage.output_tokens / calls)
    )
    return price.cost(mean) * calls


def _chunks(rows: Iterator[Sample], size: int) -> Iterator[list[Sample]]:
    while chunk := list(islice(rows, size)):
        yield chunk
