"""Azure's spelling: OpenAI's chat completions with a content filter's word on prompt and reply.

`POST /openai/deployments/NAME/chat/completions?api-version=...` and `POST /openai/v1/chat/completions`.
Shapes are those of https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

from mmbu_async.model import Json
from mmbu_async.simulator.openai import OpenAI
from mmbu_async.simulator.wire import ApiError, ChatRequest, Envelope, Reply

_SAFE = {
    name: {"filtered": False, "severity": "safe"} for name in ("hate", "self_harm", "sexual", "violence")
}
_OWN: dict[str, tuple[int, str, str]] = {
    # case: (status, code, words); all others as OpenAI has them
    "unauthorized": (
        401,
        "401",
        "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid "
        "key for "
        "an active subscription and use a correct regional API endpoint for your resource.",
    ),
    "no_key": (401, "401", "Access denied due to missing subscription key."),
    "forbidden": (403, "403", "Public access is disabled. Please configure private endpoint."),
    "model_not_found": (
        404,
        "DeploymentNotFound",
        "The API deployment for this resource does not exist. If you created the deployment within the "
        "last 5 "
        "minutes, please wait a moment and try again.",
    ),
    "rate_limit": (
        429,
        "429",
        "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have "
        "exceeded "
        "call rate limit of your current OpenAI S0 pricing tier.",
    ),
    "tokens_limit": (
        429,
        "429",
        "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have "
        "exceeded "
        "token rate limit of your current OpenAI S0 pricing tier.",
    ),
    "content_policy": (
        400,
        "content_filter",
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. "
        "Please "
        "modify your prompt and retry. To learn more about our content filtering policies please read our "
        "documentation: https://go.microsoft.com/fwlink/?linkid=2198766",
    ),
    "not_found": (404, "404", "Resource not found"),
}


class Azure(OpenAI):
    """Chat completions of a deployment; '' where the model in the body names it."""

    name = "azure"
    needs_key = True

    def __init__(self, deployment: str = "") -> None:
        self._deployment = deployment

    def key(self, sent: Mapping[str, str]) -> str:
        return sent.get("api-key", "").strip() or super().key(sent)

    def payload(self, body: bytes) -> dict[str, Json]:
        payload = super().payload(body)
        return payload | {"model": self._deployment} if self._deployment else payload

    def body(self, reply: Reply, envelope: Envelope) -> Json:
        value = super().body(reply, envelope)
        for choice in value["choices"]:
            choice["content_filter_results"] = _results(reply)
        return value | {"prompt_filter_results": _prompt_results()}

    def events(self, reply: Reply, envelope: Envelope, include_usage: bool) -> Iterator[tuple[bytes, bool]]:
        first = {
            "choices": [],
            "created": 0,
            "id": "",
            "model": "",
            "object": "",
            "prompt_filter_results": _prompt_results(),
        }
        yield b"data: " + orjson.dumps(first) + b"\n\n", False
        yield from super().events(reply, envelope, include_usage)

    def error(self, error: ApiError, request_id: str) -> Json:
        if error.code not in _OWN:
            return super().error(error, request_id)
        value: dict[str, Json] = {"code": _OWN[error.code][1], "message": error.message}
        if error.code == "content_policy":
            found = _SAFE | {"violence": {"filtered": True, "severity": "medium"}}
            inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": found}
            value |= {"type": None, "param": "prompt", "status": 400, "innererror": inner}
        return {"error": value}

    def said(self, code: str, request: ChatRequest | None) -> tuple[int, str]:
        if code not in _OWN:
            return super().said(code, request)
        status, _, text = _OWN[code]
        return status, text


def _prompt_results() -> Json:
    return [{"prompt_index": 0, "content_filter_results": _SAFE}]


def _results(reply: Reply) -> Json:
    return _SAFE | {"violence": {"filtered": True, "severity": "medium"}} if reply.filtered else _SAFE
