"""Each vendor's own client, asked one question, and what it says of the answer in our words."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mmbu_async.model import Completion

KEY = "sk-canary-0123456789"
MOST = 400
"""Output tokens that are allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of whichever client."""

    text: str
    system: str | None = None
    image: bytes = b""
    """PNG; empty: none."""
    stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A reply as a vendor's client reads it."""

    text: str
    finish: str
    reasoning: str = ""
    refusal: str = ""
    model: str = ""
    id: str = ""
    tokens: tuple[int, int, int, int, int] | None = None
    """Input, output, reasoning, cached, cache writes, in our way to count; None: not reported."""

    @classmethod
    def ours(cls, reply: Completion, refusal: str, id_: str) -> Heard:
        """The same of our reply. Ours has one text, and says by its end that it is a refusal."""
        usage = reply.usage
        return cls(
            text="" if refusal and reply.text == refusal else reply.text,
            finish=reply.finish_raw,
            reasoning=reply.reasoning,
            refusal=refusal if reply.text == refusal else "",
            model=reply.model,
            id=id_,
            tokens=(
                usage.input_tokens,
                usage.output_tokens,
                usage.reasoning_tokens,
                usage.cached_tokens,
                usage.cache_write_tokens,
            )
            if usage.reported
            else None,
        )


Ask = Callable[[str, Question], Awaitable[Heard]]
"""Base address of the simulator, and the question."""


def _data_url(image: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(image).decode()


# ---------------------------------------------------------------- OpenAI chat completions, Azure's too


def _chat(question: Question) -> dict[str, Any]:
    system = [{"role": "system", "content": question.system}] if question.system is not None else []
    content: Any = question.text
    if question.image:
        content = [
            {"type": "image_url", "image_url": {"url": _data_url(question.image)}},
            {"type": "text", "text": question.text},
        ]
    asked = {"model": "m", "max_tokens": MOST, "messages": [*system, {"role": "user", "content": content}]}
    return asked | ({"stream": True, "stream_options": {"include_usage": True}} if question.stream else {})


async def _ask_chat(client: Any, question: Question) -> Heard:
    answer = await client.chat.completions.create(**_chat(question))
    if not question.stream:
        choice = answer.choices[0]
        return Heard(
            text=choice.message.content or "",
            finish=choice.finish_reason,
            reasoning=getattr(choice.message, "reasoning_content", ""),
            refusal=choice.message.refusal or "",
            model=answer.model,
            id=answer.id,
            tokens=_chat_tokens(answer.usage),
        )
    found: dict[str, str] = dict.fromkeys(
        ("content", "refusal", "reasoning_content", "finish", "model", "id"), ""
    )
    usage = None
    async for chunk in answer:
        usage = chunk.usage or usage
        found["model"], found["id"] = found["model"] or chunk.model, found["id"] or chunk.id
        for choice in chunk.choices:
            found["finish"] = choice.finish_reason or found["finish"]
            for name in ("content", "refusal", "reasoning_content"):
                found[name] += getattr(choice.delta, name, None) or ""
    return Heard(
        text=found["content"],
        finish=found["finish"],
        reasoning=found["reasoning_content"],
        refusal=found["refusal"],
        model=found["model"],
        id=found["id"],
        tokens=_chat_tokens(usage),
    )


def _chat_tokens(usage: Any) -> tuple[int, int, int, int, int] | None:
    if usage is None:
        return None
    return (
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.completion_tokens_details.reasoning_tokens,
        usage.prompt_tokens_details.cached_tokens,
        usage.prompt_tokens_details.cache_write_tokens,
    )


async def openai(url: str, question: Question) -> Heard:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0) as client:
        return await _ask_chat(client, question)


async def azure(url: str, question: Question) -> Heard:
    """The dated address, which has the deployment in it."""
    from openai import AsyncAzureOpenAI

    async with AsyncAzureOpenAI(
        azure_endpoint=url, api_version="2024-10-21", api_key=KEY, max_retries=0
    ) as client:
        return await _ask_chat(client, question)


# ---------------------------------------------------------------- OpenAI Responses


async def responses(url: str, question: Question) -> Heard:
    from openai import AsyncOpenAI

    content: Any = question.text
    if question.image:
        content = [
            {"type": "input_image", "image_url": _data_url(question.image), "detail": "auto"},
            {"type": "input_text", "text": question.text},
        ]
    asked: dict[str, Any] = {
        "model": "m",
        "max_output_tokens": MOST,
        "store": False,
        "input": [{"role": "user", "content": content}],
    }
    if question.system is not None:
        asked["instructions"] = question.system
    async with AsyncOpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0) as client:
        if not question.stream:
            return _response(await client.responses.create(**asked))
        last: Any = None
        said = ""
        # Their accumulating stream, which takes no piece of an item that was not announced.
        async with client.responses.stream(**asked) as stream:
            async for event in stream:
                if event.type == "response.output_text.delta":
                    said += event.delta
                elif event.type in ("response.completed", "response.incomplete", "response.failed"):
                    last = event.response
    if last is not None and last.error is not None:
        raise FailedResponseError(last.error.code, last.error.message)
    heard = _response(last)
    assert heard.text == said
    return heard


class FailedResponseError(Exception):
    """A response that failed under status 200: the client only hands it over."""


def _response(answer: Any) -> Heard:
    parts = [part for item in answer.output if item.type == "message" for part in item.content]
    thoughts = [part.text for item in answer.output if item.type == "reasoning" for part in item.summary]
    usage = answer.usage
    return Heard(
        text=answer.output_text,
        finish=answer.incomplete_details.reason if answer.incomplete_details else answer.status,
        reasoning="\n\n".join(thoughts),
        refusal="".join(part.refusal for part in parts if part.type == "refusal"),
        model=answer.model,
        id=answer.id,
        tokens=usage
        and (
            usage.input_tokens,
            usage.output_tokens,
            usage.output_tokens_details.reasoning_tokens,
            usage.input_tokens_details.cached_tokens,
            usage.input_tokens_details.cache_write_tokens,
        ),
    )


# ---------------------------------------------------------------- Anthropic


async def anthropic(url: str, question: Question) -> Heard:
    from anthropic import AsyncAnthropic

    content: Any = question.text
    if question.image:
        data = base64.b64encode(question.image).decode()
        source = {"type": "base64", "media_type": "image/png", "data": data}
        content = [{"type": "image", "source": source}, {"type": "text", "text": question.text}]
    asked: dict[str, Any] = {
        "model": "m",
        "max_tokens": MOST,
        "messages": [{"role": "user", "content": content}],
    }
    if question.system is not None:
        asked["system"] = question.system
    async with AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        answer: Any
        if question.stream:
            async with client.messages.stream(**asked) as stream:
                answer = await stream.get_final_message()
        else:
            answer = await client.messages.create(**asked)
    usage = answer.usage
    tokens = None
    if usage is not None:
        read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
        tokens = (usage.input_tokens + read + written, usage.output_tokens, 0, read, written)
    return Heard(
        text="".join(block.text for block in answer.content if block.type == "text"),
        finish=answer.stop_reason,
        reasoning="".join(block.thinking for block in answer.content if block.type == "thinking"),
        model=answer.model,
        id=answer.id,
        tokens=tokens,
    )


# ---------------------------------------------------------------- Google


async def gemini(url: str, question: Question) -> Heard:
    from google import genai
    from google.genai import types

    client = genai.Client(
        api_key=KEY,
        # Their own default is v1 since 3.0; ours has the aliases of models and what is new as well.
        http_options=types.HttpOptions(
            base_url=url, api_version="v1beta", retry_options=types.HttpRetryOptions(attempts=1)
        ),
    )
    parts = [types.Part.from_text(text=question.text)]
    if question.image:
        parts.insert(0, types.Part.from_bytes(data=question.image, mime_type="image/png"))
    asked: dict[str, Any] = {
        "model": "m",
        "contents": [types.Content(role="user", parts=parts)],
        "config": types.GenerateContentConfig(max_output_tokens=MOST, system_instruction=question.system),
    }
    async with client.aio as models:
        if not question.stream:
            return _gemini([await models.models.generate_content(**asked)])
        return _gemini([chunk async for chunk in await models.models.generate_content_stream(**asked)])


def _gemini(answers: list[Any]) -> Heard:
    parts = [
        part
        for answer in answers
        for candidate in answer.candidates or ()
        if candidate.content
        for part in candidate.content.parts or ()
    ]
    reasons = [
        one.finish_reason for answer in answers for one in answer.candidates or () if one.finish_reason
    ]
    blocked = [answer.prompt_feedback.block_reason for answer in answers if answer.prompt_feedback]
    usage = next((one.usage_metadata for one in reversed(answers) if one.usage_metadata), None)
    tokens = None
    if usage is not None:
        thoughts = usage.thoughts_token_count or 0
        said = (usage.candidates_token_count or 0) + thoughts
        tokens = (usage.prompt_token_count, said, thoughts, usage.cached_content_token_count or 0, 0)
    return Heard(
        text="".join(part.text or "" for part in parts if not part.thought),
        finish=(reasons or blocked)[-1].value,
        reasoning="".join(part.text or "" for part in parts if part.thought),
        model=answers[-1].model_version,
        id=answers[-1].response_id,
        tokens=tokens,
    )


CLIENTS: Mapping[str, Ask] = {
    "openai": openai,
    "responses": responses,
    "azure": azure,
    "anthropic": anthropic,
    "gemini": gemini,
}
