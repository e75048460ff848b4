"""Whatever others write is read without a crash, and what is read makes sense."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmbu_async import judging, tasks
from mmbu_async.model import Benchmark, Completion, Failure, Finish, JudgeItem, Sample
from tests.property import parsers
from tests.property.conftest import NAMES, known
from tests.whole_run import MINI

PIECES = st.sampled_from(
    [
        *(
            "<answer>",
            "</answer>",
            "<ANSWER >",
            "<think>",
            "</think>",
            "[RESULT] 1",
            "[RESULT] 0",
            "[RESULT]",
        ),
        *(
            "```json",
            "```",
            "**",
            "A",
            "(B)",
            "C.",
            "D)",
            "Answer:",
            "answer is",
            "not",
            "or",
            "\n",
            "\r\n",
            " ",
        ),
        *(
            "[",
            "]",
            "{",
            "}",
            '"',
            "'",
            ",",
            "bbox_2d",
            "10",
            "-3.5",
            "1e309",
            "nan",
            "Ｂ",
            "ﬁ",
            "\u202e",
            "\x00",
        ),
        *("细胞", "\ud800", "<box>", "12, 34, 56, 78", "[1, 2, 3, 4]", "\\boxed{A}", "yes", "no", "%", "½"),
    ]
)
REPLIES = st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join))
"""Any text, and texts made of what readers look for."""
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=12), PIECES
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8) | PIECES, inner, max_size=4)
    ),
    max_leaves=12,
)
FORMATS = pytest.mark.parametrize("kind", ["openai", "anthropic", "responses", "gemini"])
ONCE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@ONCE
@given(text=REPLIES, finish=st.sampled_from(Finish))
def test_any_reply_gets_a_score_on_every_route_of_every_benchmark(
    asked: tuple[tuple[Benchmark, Sample], ...], text: str, finish: Finish
) -> None:
    for benchmark, sample in asked:
        parsers.reply(benchmark, sample, text, finish)


@ONCE
@given(before=REPLIES, finish=st.sampled_from(Finish))
def test_the_truth_in_tags_is_right_whatever_stands_before_it(
    asked: tuple[tuple[Benchmark, Sample], ...], before: str, finish: Finish
) -> None:
    """Rows that a judge scores are right where it says so; the others by rule."""
    for benchmark, sample in asked:
        if benchmark.name == "mmbu-public" and "<" not in before:
            score = parsers.reply(benchmark, sample, f"{before}\n<answer>{sample.answer}</answer>", finish)
            assert score.correct is True, (sample.route, score)


@given(text=REPLIES)
def test_a_verdict_is_the_last_word_or_none(text: str) -> None:
    parsers.verdict(text)
    assert parsers.verdict(f"{text}\n[RESULT] 1\n") is True
    assert parsers.verdict(f"{text} [RESULT] 1 and so [RESULT] 0") is False
    assert parsers.verdict(f"{text} [RESULT] 1.") is None


@given(question=REPLIES, answer=REPLIES, truth=st.text(), labels=st.lists(st.text(max_size=20), max_size=5))
def test_every_value_stands_in_the_judge_s_prompt_as_it_is_and_changes_nothing_else(
    question: str, answer: str, truth: str, labels: list[str]
) -> None:
    fill = judging.load("open_per_dataset_v3").fill
    item = JudgeItem(question=question, labels=tuple(labels), true_answer=truth, model_answer=answer)
    text = fill(item).text
    empty = fill(JudgeItem(question="", labels=(), true_answer="", model_answer="")).text
    values = (question, "\n".join(f"- {label}" for label in labels), truth, answer)
    assert len(text) == len(empty) + sum(map(len, values))
    assert all(value in text for value in values)


@given(
    question=st.text(min_size=1).filter(lambda text: bool(text.strip())),
    options=st.lists(st.integers(10**9, 10**12).map(str), min_size=1, max_size=5, unique=True),
)
def test_the_model_sees_the_question_as_it_is_and_neither_options_nor_truth(
    question: str, options: list[str]
) -> None:
    for benchmark, sample in known().asked:
        if benchmark.name == "mmbu-public":
            asked = replace(sample, question=question, answer=options[0], options=tuple(options))
            prompt = benchmark.prompt(asked)
            whole = f"{prompt.system}\n{prompt.text}"
            assert question.strip() in whole
            assert not any(option in whole.replace(question, "") for option in options)


@FORMATS
@given(body=st.one_of(JSON.map(lambda value: json.dumps(value).encode()), st.binary(max_size=200)))
def test_any_body_is_a_reply_or_a_failure(kind: str, body: bytes) -> None:
    for status in (200, 400, 404, 429, 503):
        outcome = parsers.response(kind, status, body)
        assert status == 200 or isinstance(outcome, Failure)


def _bent(value: Any, draw: Any) -> Any:
    """A value with some of its parts replaced by anything."""
    if draw(st.integers(0, 9)) == 0:
        return draw(LEAVES | st.lists(LEAVES, max_size=2))
    if isinstance(value, dict):
        return {key: _bent(item, draw) for key, item in value.items()}
    if isinstance(value, list):
        return [_bent(item, draw) for item in value]
    return value


RESPONSE = {
    "id": "r",
    "model": "m",
    "status": "completed",
    "incomplete_details": None,
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "yes"}]},
    ],
    "usage": {
        "input_tokens": 5,
        "output_tokens": 2,
        "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
    },
}
GOOD: dict[str, Any] = {
    "openai": {
        "id": "c",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"content": "yes", "refusal": None, "reasoning": "r"},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 2,
            "completion_tokens_details": {"reasoning_tokens": 1},
            "prompt_tokens_details": {"cached_tokens": 1},
        },
    },
    "anthropic": {
        "id": "m",
        "type": "message",
        "model": "m",
        "content": [{"type": "text", "text": "yes"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 1},
    },
    "responses": RESPONSE,
    "gemini": {
        "candidates": [
            {
                "content": {"parts": [{"text": "r", "thought": True}, {"text": "yes"}], "role": "model"},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "promptFeedback": {"blockReason": ""},
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 1},
        "modelVersion": "m",
        "responseId": "r",
    },
}
EVENTS: dict[str, list[Any]] = {
    "openai": [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "yes"}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"id": "c", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"id": "m", "model": "m", "usage": {"input_tokens": 5}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "yes"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ],
    "responses": [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}},
        {"type": "response.output_text.delta", "delta": "yes"},
        {"type": "response.reasoning_summary_text.delta", "delta": "r"},
        {"type": "response.completed", "response": RESPONSE},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "yes"}]}}], "usageMetadata": {"promptTokenCount": 5}},
        {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"candidatesTokenCount": 2}},
    ],
}


@FORMATS
@given(data=st.data())
def test_a_reply_with_odd_parts_is_a_reply_or_a_failure(kind: str, data: st.DataObject) -> None:
    parsers.response(kind, 200, json.dumps(_bent(GOOD[kind], data.draw)).encode())


@FORMATS
@given(data=st.data())
def test_a_stream_with_odd_events_in_any_pieces_is_a_reply_or_a_failure(
    kind: str, data: st.DataObject
) -> None:
    sent = [json.dumps(_bent(event, data.draw)) for event in EVENTS[kind]]
    body = "".join(f"data: {event}\n\n" for event in sent).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=5)))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    parsers.stream(kind, pieces)


@FORMATS
@given(data=st.data())
def test_a_whole_stream_says_the_same_in_any_pieces(kind: str, data: st.DataObject) -> None:
    done = "data: [DONE]\n\n" if kind == "openai" else ""
    body = "".join(f"data: {orjson.dumps(event).decode()}\n\n" for event in EVENTS[kind]) + done
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    pieces = [body[a:b].encode() for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    found = parsers.stream(kind, pieces)
    assert isinstance(found, Completion)
    assert (found.text, found.finish, found.usage.input_tokens) == ("yes", Finish.STOP, 5)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_row_is_a_sample_or_a_named_error(name: str, data: st.DataObject) -> None:
    good = data.draw(st.sampled_from(known().rows[name]))
    fields = {key: data.draw(JSON) if data.draw(st.integers(0, 7)) == 0 else good[key] for key in good}
    parsers.row(tasks.load(name), fields)


@pytest.mark.parametrize("ending", ["jsonl", "json", "tsv", "csv"])
@ONCE
@given(
    data=st.one_of(st.binary(max_size=300), st.lists(JSON, max_size=4).map(lambda v: json.dumps(v).encode()))
)
def test_any_table_is_read_or_refused_by_name(tmp_path: Path, ending: str, data: bytes) -> None:
    parsers.table(tmp_path / f"metadata.{ending}", data)


@given(data=st.data())
def test_any_image_is_made_acceptable_or_refused(data: st.DataObject) -> None:
    """Real images with bytes changed, cut or added; and any bytes."""
    files = sorted((MINI / "images").iterdir())
    image = bytearray(data.draw(st.sampled_from(files)).read_bytes())
    for _ in range(data.draw(st.integers(0, 4))):
        image[data.draw(st.integers(0, len(image) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(image)) | st.just(len(image)))
    parsers.image(bytes(image[:cut]) + data.draw(st.binary(max_size=20)))
    parsers.image(data.draw(st.binary(max_size=100)))


@given(value=JSON | REPLIES)
def test_any_options_are_read_or_refused(value: Any) -> None:
    parsers.options(value)


@given(text=REPLIES)
def test_any_text_has_boxes_or_none(text: str) -> None:
    parsers.boxes(text)
