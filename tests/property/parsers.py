"""Everything that parses what others wrote: a reply, a verdict, a response, a row, a table, an image.

Each function hands hostile input to one parser, lets through the errors that it may raise, and asserts what
must hold of whatever comes back. Property tests draw the input; a fuzzer mutates it (`fuzz/`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from multidict import CIMultiDict

from mmbu_async import judging
from mmbu_async.endpoints.client import WIRE_FORMATS
from mmbu_async.endpoints.failures import failure_from_response
from mmbu_async.endpoints.sse import EventSplitter
from mmbu_async.endpoints.wire import read_response
from mmbu_async.errors import DataError, ImageError
from mmbu_async.images import ImageLimits, prepare
from mmbu_async.model import (
    Benchmark,
    Completion,
    Failure,
    FailureKind,
    Finish,
    ImageRef,
    Json,
    RawRow,
    Sample,
    Score,
    ScoreItem,
    Status,
    Verdict,
)
from mmbu_async.scoring.boxes import read_boxes
from mmbu_async.scoring.options import read_options
from mmbu_async.sources.tables import records

LIMITS = ImageLimits(
    name="test",
    max_bytes_base64=200_000,
    max_edge=256,
    max_pixels=65_536,
    accepted=frozenset({"image/png", "image/jpeg"}),
    source="a test",
)


def reply(benchmark: Benchmark, sample: Sample, text: str, finish: Finish = Finish.STOP) -> Score:
    """A model's reply, from the raw text to its score. Nothing may be raised."""
    answer = benchmark.read(sample, Completion(text=text, finish=finish))
    verdict = None
    if (item := benchmark.judge_item(sample, answer)) is not None:
        judge = judging.load(benchmark.judge)
        prompt = judge.fill(item).text
        assert item.model_answer in prompt
        verdict = Verdict(correct=True)
    (score,) = benchmark.score([ScoreItem(sample=sample, answer=answer, verdict=verdict)])
    if score.status is Status.SCORED:
        assert score.correct is not None
        assert min(score.tp, score.fp, score.fn) >= 0
        assert score.tp + score.fp + score.fn >= 1, "every row weighs something"
        assert not score.correct or score.fp == score.fn == 0 or score.tp > 0
    else:
        assert score.correct is None
    assert all(math.isfinite(value) for value in score.detail.values() if isinstance(value, float))
    return score


def verdict(text: str) -> bool | None:
    """A judge's reply."""
    found = judging.load("open_per_dataset_v3").read_verdict(text)
    if found is not None:
        assert text.rstrip().endswith(f"[RESULT] {int(found)}")
    return found


def response(kind: str, status: int, body: bytes) -> Completion | Failure:
    """An HTTP response's body in one wire format, whole."""
    headers = CIMultiDict({"x-request-id": "r"})
    if not 200 <= status < 300:
        failure = failure_from_response(status, headers, body, now=0.0)
        assert failure.message and "\n" not in failure.message
        return failure
    return _sound(read_response(WIRE_FORMATS[kind](), status, headers, body))


def stream(kind: str, chunks: Sequence[bytes]) -> Completion | Failure:
    """The same as server-sent events, in whatever pieces they come."""

    parser, splitter = WIRE_FORMATS[kind]().stream_parser(), EventSplitter()
    for event in [*(event for chunk in chunks for event in splitter.feed(chunk)), *splitter.end()]:
        try:
            parser.feed(event)
        except (AttributeError, KeyError, TypeError, ValueError):
            # The client takes these, and only these, for an event that cannot be read.
            return Failure(kind=FailureKind.MALFORMED, message="unreadable event")
    return _sound(parser.result(CIMultiDict(), 200))


def _sound(outcome: Completion | Failure) -> Completion | Failure:
    usage = outcome.usage
    if usage is not None:
        counts = (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_tokens)
        assert all(isinstance(count, int) and count >= 0 for count in counts)
    if isinstance(outcome, Completion):
        assert isinstance(outcome.text, str)
    else:
        assert outcome.retry_after_s is None or outcome.retry_after_s >= 0
    return outcome


def row(benchmark: Benchmark, fields: dict[str, Json]) -> None:
    """One row of a dataset: a sample, or a named error."""
    raw = RawRow(position=0, fields=fields, images=(ImageRef(locator="a.png"),), where="test, line 1")
    try:
        samples = benchmark.samples(raw)
    except DataError as error:
        assert str(error)
        return
    for sample in samples:
        benchmark.prompt(sample)
        benchmark.family(sample)
        reply(benchmark, sample, sample.answer)


def table(file: Path, data: bytes) -> int:
    """A table's file; its ending says the form. How many rows there are."""
    file.write_bytes(data)
    try:
        return sum(1 for _ in records(file, file.name))
    except DataError as error:
        assert file.name in str(error)
        return 0


def image(data: bytes) -> None:
    """An image's bytes: made acceptable, or refused with a sentence."""
    try:
        made = prepare(data, LIMITS)
    except ImageError as error:
        assert str(error)
        return
    assert made.media_type in LIMITS.accepted
    assert 0 < made.scale <= 1
    assert max(made.width, made.height) <= 256


def options(value: Json) -> None:
    """The options column."""
    try:
        found = read_options(value)
    except ValueError:
        return
    assert all(isinstance(option, str) for option in found)


def boxes(text: str) -> None:
    """Boxes in a reply."""
    for tagged in (True, False):
        for box in read_boxes(text, tagged=tagged).boxes:
            assert len(box) == 4
