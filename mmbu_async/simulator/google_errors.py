"""Our words for errors -> status, code and message as Google writes them, and what it adds for machines.

Wordings are those of https://ai.google.dev/gemini-api/docs/troubleshooting and of public bug reports; the
shape of `details` is that of https://google.aip.dev/193.
"""

from __future__ import annotations

from mmbu_async.model import Json

BLOCKED = "content_policy"
"""The case that Google answers with status 200 and `promptFeedback`."""
_TYPE = "type.googleapis.com/google.rpc."
_DOMAIN = "googleapis.com"
_SERVICE = "generativelanguage.googleapis.com"
_OVER = (
    "You exceeded your current quota, please check your plan and billing details. For more information on "
    "this "
    "error, head to: https://ai.google.dev/gemini-api/docs/rate-limits."
)
GEMINI: dict[str, tuple[int, str, str]] = {
    # case: (status, code, words)
    "request_timeout": (408, "DEADLINE_EXCEEDED", "The request timed out."),
    "too_early": (425, "UNAVAILABLE", "Too early."),
    "rate_limit": (429, "RESOURCE_EXHAUSTED", _OVER),
    "tokens_limit": (429, "RESOURCE_EXHAUSTED", _OVER),
    "server_error": (
        500,
        "INTERNAL",
        "An internal error has occurred. Please retry or report in "
        "https://developers.generativeai.google/guide/troubleshooting",
    ),
    "bad_gateway": (502, "INTERNAL", "Bad gateway."),
    "unavailable": (503, "UNAVAILABLE", "The service is currently unavailable."),
    "gateway_timeout": (504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
    "overloaded": (529, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "unauthorized": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    "no_key": (
        403,
        "PERMISSION_DENIED",
        "Method doesn't allow unregistered callers (callers without established identity). Please use API "
        "Key or "
        "other form of API consumer identity to call this API.",
    ),
    "forbidden": (403, "PERMISSION_DENIED", "The caller does not have permission"),
    "model_not_found": (
        404,
        "NOT_FOUND",
        "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call "
        "ListModels to see the list of available models and their supported methods.",
    ),
    "payment_required": (402, "FAILED_PRECONDITION", "Billing is not enabled for this project."),
    "quota": (429, "RESOURCE_EXHAUSTED", _OVER),
    "credit_balance": (
        429,
        "RESOURCE_EXHAUSTED",
        "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to "
        "manage your "
        "project and billing.",
    ),
    "spend_limit": (
        429,
        "RESOURCE_EXHAUSTED",
        "Your project has exceeded its monthly spending cap. Please go to AI Studio at "
        "https://ai.studio/spend to "
        "manage your project spend cap.",
    ),
    "bad_request": (400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
    "bad_json": (400, "INVALID_ARGUMENT", "Invalid JSON payload received. Unexpected end of string."),
    "image_too_large": (
        400,
        "INVALID_ARGUMENT",
        "Request payload size exceeds the limit: 20971520 bytes.",
    ),
    "image_parse": (400, "INVALID_ARGUMENT", "Unable to process input image. Please retry or report."),
    BLOCKED: (200, "", "The prompt was blocked."),
    "unsupported_parameter": (400, "INVALID_ARGUMENT", "Thinking level is not supported for this model."),
    "body_too_large": (413, "INVALID_ARGUMENT", "Request payload size exceeds the limit."),
    "not_found": (404, "NOT_FOUND", "Requested entity was not found."),
}
_QUOTAS = {
    "rate_limit": ("requests", "GenerateRequestsPerMinutePerProjectPerModel"),
    "tokens_limit": ("input_token_count", "GenerateContentInputTokensPerModelPerMinute"),
    "quota": ("requests", "GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
}


def details(code: str, model: str) -> list[Json]:
    """What comes with a case beside its words. The quota of a day asks to come again in seconds, as Google's
    does: who believes it waits for nothing."""
    if code == "unauthorized":
        return [
            {
                "@type": _TYPE + "ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": _DOMAIN,
                "metadata": {"service": _SERVICE},
            }
        ]
    if code not in _QUOTAS:
        return []
    metric, quota = _QUOTAS[code]
    violation = {
        "quotaMetric": f"{_SERVICE}/generate_content_paid_tier_{metric}",
        "quotaId": quota,
        "quotaDimensions": {"location": "global", "model": model},
    }
    failure = {"@type": _TYPE + "QuotaFailure", "violations": [violation]}
    return [failure, *retry_details(22.0)] if code == "quota" else [failure]


def retry_details(wait_s: float, *, whole: bool = False) -> list[Json]:
    """After how long to come again; `whole`: in whole seconds."""
    seconds = str(-int(-wait_s // 1)) if whole else f"{wait_s:.9f}".rstrip("0").rstrip(".")
    return [{"@type": _TYPE + "RetryInfo", "retryDelay": f"{seconds}s"}]
