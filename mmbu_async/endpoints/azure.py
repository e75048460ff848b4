"""Azure OpenAI: chat completions at Azure's addresses, with Azure's header for the key.

Three addresses are in use, and all are taken (https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle
and https://learn.microsoft.com/azure/foundry/openai/reference, looked up in 2026-11):

- `https://NAME.openai.azure.com`, without a version or with `/openai/v1`: the v1 API, where the model is the
  name of the deployment;
- the same with `?api-version=2024-10-21`: a dated version, which has the deployment in its address;
- what the portal shows as target: `.../openai/deployments/NAME/chat/completions?api-version=...`.

Its Responses are OpenAI's own: `--endpoint responses --base-url https://NAME.openai.azure.com/openai/v1`.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from mmbu_async.config import CallSettings
from mmbu_async.endpoints.openai import OpenAIChat

_DATED = re.compile(r"(?:^|&)api-version=\d")


class AzureChat(OpenAIChat):
    """`POST /chat/completions` of a deployment."""

    def path(self, settings: CallSettings) -> str:
        where = urlsplit(settings.url)
        place = where.path.rstrip("/")
        if place.endswith("/openai/v1") or "/openai/deployments/" in place:
            return "/chat/completions"
        root = "" if place.endswith("/openai") else "/openai"
        if _DATED.search(where.query):
            return f"{root}/deployments/{quote(settings.model, safe='')}/chat/completions"
        return f"{root}/v1/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"api-key": key} if key else {}
