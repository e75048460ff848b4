"""`mmbu doctor`: one row to the model and each judge, and in plain words what is wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from mmbu_async.config import CallSettings, JudgeConfig, RunConfig
from mmbu_async.endpoints.client import EndpointClient, Expected
from mmbu_async.endpoints.prices import Prices
from mmbu_async.endpoints.safety import warnings
from mmbu_async.errors import ConfigError, ImageError
from mmbu_async.images import ImageLimits, prepare
from mmbu_async.model import (
    Answer,
    Attempt,
    Benchmark,
    Completion,
    Failure,
    FailureKind,
    Finish,
    JudgeItem,
    PreparedImage,
    Prompt,
    Sample,
)
from mmbu_async.pipeline.budget import Budget
from mmbu_async.pipeline.explain import explain
from mmbu_async.pipeline.parameters import refused_parameter
from mmbu_async.sources import Source

SLOW_S = 30.0
"""Seconds for one short reply beyond which a run's length should be thought about."""
_EXPECTED = Expected(input_tokens=0, most_output_tokens=0, usual_output_tokens=0)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing the doctor looked at."""

    about: str
    ok: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctor:
    """Looks at one row's way through the model and each judge. Nothing is stored."""

    config: RunConfig
    benchmark: Benchmark
    source: Source
    limits: ImageLimits
    fill: Callable[[JudgeItem], Prompt]
    read_verdict: Callable[[str], bool | None]

    async def examine(self, sample: Sample) -> list[Finding]:
        """Findings in the order in which a row is worked on."""
        findings: list[Finding] = []
        try:
            images = [prepare(self.source.read_image(ref), self.limits) for ref in sample.images]
        except ImageError as error:
            return [Finding(about="image", ok=False, text=f"row {sample.id}: {error}")]
        findings += [_about_image(image) for image in images]
        reply = await self._ask(self.config, self.benchmark.prompt(sample), images, findings, "model")
        answer = Answer(text=sample.answer, how="tag")
        if reply is not None:
            findings.append(self._about_answer(sample, reply))
            answer = self.benchmark.read(sample, reply)
        item = self.benchmark.judge_item(sample, answer) or self.benchmark.judge_item(
            sample, Answer(text=sample.answer, how="tag")
        )
        if item is not None:
            for judge in self.config.judges:
                verdict = await self._ask(judge, self.fill(item), [], findings, "judge")
                if verdict is not None:
                    findings.append(self._about_verdict(judge, verdict))
        return findings

    async def _ask(
        self,
        settings: CallSettings,
        prompt: Prompt,
        images: list[PreparedImage],
        findings: list[Finding],
        about: str,
    ) -> Completion | None:
        """One attempt; its findings are appended."""
        try:
            key = settings.api_key()
        except ConfigError as error:
            findings.append(Finding(about=about, ok=False, text=str(error)))
            return None
        findings += [Finding(about=about, ok=True, text=text) for text in warnings(settings, key)]
        price = Prices().find(settings)
        made: list[Attempt] = []

        async def keep(attempt: Attempt, final: bool) -> None:
            made.append(attempt)

        # No time for another attempt either: waiting for Retry-After uses up none.
        once = settings.model_copy(update={"max_attempts": 1, "max_retry_time": 0.0})
        async with EndpointClient(
            once, key=key, purse=Budget(None, 0.0, lambda: None), price=price, random=Random(0)
        ) as client:
            body = client.wire.body(once, prompt, images)
            outcome = await client.call(body, _EXPECTED, keep)
        findings.append(_about_call(about, settings, made[-1], outcome))
        if price is None:
            findings.append(
                Finding(
                    about=about,
                    ok=True,
                    text=f"no price is known for {settings.model} at {settings.host}; costs will be reported "
                    f"as unknown unless you give {settings.flag('input_price')} and "
                    f"{settings.flag('output_price')}.",
                )
            )
        return outcome if isinstance(outcome, Completion) else None

    def _about_answer(self, sample: Sample, reply: Completion) -> Finding:
        answer = self.benchmark.read(sample, reply)
        shown = answer.text[:80].replace("\n", " ")
        if not reply.text.strip():
            text = "the reply is empty"
            if reply.finish is Finish.LENGTH:
                text += ": the token limit was spent before any text; raise --max-tokens"
            return Finding(about="answer", ok=False, text=text + ".")
        if answer.untagged:
            why = " since the token limit cut it" if reply.finish is Finish.LENGTH else ""
            return Finding(about="answer", ok=False, text=f"no <answer> tags{why}; the raw reply is scored.")
        return Finding(about="answer", ok=True, text=f"committed answer: {shown!r} (found by: {answer.how}).")

    def _about_verdict(self, judge: JudgeConfig, reply: Completion) -> Finding:
        whose = f" of {judge.label}" if self.config.panel else ""
        verdict = self.read_verdict(reply.text)
        if verdict is not None:
            return Finding(about="judge", ok=True, text=f"verdict{whose}: {int(verdict)}.")
        why = (
            f"it spent its token limit before the result; raise {judge.flag('max_tokens')}"
            if reply.finish is Finish.LENGTH
            else f"its reply was {reply.text[-120:]!r}"
        )
        return Finding(about="judge", ok=False, text=f"no usable verdict{whose}: {why}.")


def _about_image(image: PreparedImage) -> Finding:
    size = f"{image.width} x {image.height} pixels, {len(image.data) / 1024:,.0f} KB"
    how = f"converted ({image.converted})" if image.converted else "sent untouched"
    scale = f", scaled by {image.scale:.3f}" if image.scale != 1.0 else ""
    return Finding(about="image", ok=True, text=f"{image.media_type}, {size}, {how}{scale}.")


def _about_call(
    about: str, settings: CallSettings, attempt: Attempt, outcome: Completion | Failure
) -> Finding:
    seconds = attempt.timing.total_s
    if isinstance(outcome, Failure):
        return Finding(about=about, ok=False, text=_words(outcome, settings))
    usage = outcome.usage
    tokens = (
        f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
        if usage.reported
        else "no usage reported"
    )
    slow = f": slow, a run of 3,000 rows takes {3000 * seconds / settings.concurrency / 60:,.0f} minutes"
    text = f"{settings.model} at {settings.host} replied in {seconds:.1f} s ({tokens})"
    return Finding(about=about, ok=True, text=text + (slow if seconds > SLOW_S else "") + ".")


def _words(failure: Failure, settings: CallSettings) -> str:
    match failure.kind:
        case FailureKind.RATE_LIMIT:
            wait = f"wait, or set {settings.flag('rpm')}"
            return f"{settings.url} says too many requests ({failure.message}): {wait}."
        case FailureKind.BAD_REQUEST if refused_parameter(failure, settings) is None:
            return (
                f"{settings.url} refuses the request ({failure.message}): an image or a parameter is not to "
                f"its liking; {settings.flag('params')} passes what it wants."
            )
        case FailureKind.TIMEOUT | FailureKind.CONNECTION:
            return (
                f"{settings.url} cannot be reached ({failure.message}): check "
                f"{settings.flag('base_url')} and the network."
            )
        case FailureKind.MALFORMED:
            return f"{settings.url} answers, but not in the {settings.endpoint} format ({failure.message})."
        case _:
            return explain(failure, settings)
