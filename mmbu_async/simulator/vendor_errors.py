"""Our words for errors -> status, type and message as each vendor writes them."""

from __future__ import annotations

OPENAI: dict[str, tuple[int, str, str | None, str]] = {
    # case: (status, type, code, words)
    "request_timeout": (408, "timeout", None, "Request timed out."),
    "too_early": (425, "server_error", None, "Too early: try again."),
    "rate_limit": (
        429,
        "requests",
        "rate_limit_exceeded",
        "Rate limit reached for {model} in organization org-simulator on requests per min (RPM). "
        "Visit https://platform.openai.com/account/rate-limits to learn more.",
    ),
    "server_error": (
        500,
        "server_error",
        None,
        "The server had an error while processing your request. Sorry about that!",
    ),
    "bad_gateway": (502, "server_error", None, "Bad gateway."),
    "unavailable": (
        503,
        "service_unavailable",
        None,
        "The engine is currently overloaded, please try again later.",
    ),
    "gateway_timeout": (504, "server_error", None, "Gateway timeout."),
    "overloaded": (529, "server_error", None, "Overloaded."),
    "unauthorized": (
        401,
        "invalid_request_error",
        "invalid_api_key",
        "Incorrect API key provided. You can find your API key at "
        "https://platform.openai.com/account/api-keys.",
    ),
    "no_key": (
        401,
        "invalid_request_error",
        None,
        "You didn't provide an API key. You need to provide your API key in an Authorization header using "
        "Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
    ),
    "forbidden": (
        403,
        "invalid_request_error",
        "unsupported_country_region_territory",
        "Country, region, or territory not supported",
    ),
    "model_not_found": (
        404,
        "invalid_request_error",
        "model_not_found",
        "The model `{model}` does not exist or you do not have access to it.",
    ),
    "payment_required": (402, "insufficient_balance", "402", "Insufficient credits."),
    "quota": (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details. For more information "
        "on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
    ),
    "credit_balance": (
        400,
        "invalid_request_error",
        "billing_hard_limit_reached",
        "Billing hard limit has been reached.",
    ),
    "spend_limit": (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota: the monthly budget of this project is used up.",
    ),
    "bad_request": (400, "invalid_request_error", None, "Invalid request."),
    "bad_json": (400, "invalid_request_error", None, "We could not parse the JSON body of your request."),
    "image_too_large": (
        400,
        "invalid_request_error",
        "image_too_large",
        "The image is too large: reduce its size and try again.",
    ),
    "image_parse": (
        400,
        "invalid_request_error",
        "image_parse_error",
        "You uploaded an unsupported image. Please make sure your image is valid and has one of the "
        "following formats: ['png', 'jpeg', 'gif', 'webp'].",
    ),
    "content_policy": (
        400,
        "invalid_request_error",
        "content_policy_violation",
        "Your request was rejected as a result of our safety system.",
    ),
    "unsupported_parameter": (
        400,
        "invalid_request_error",
        "unsupported_parameter",
        "Unsupported parameter: 'temperature' is not supported with this model.",
    ),
    "body_too_large": (413, "invalid_request_error", None, "Request body is too large."),
    "tokens_limit": (429, "tokens", "rate_limit_exceeded", "Rate limit reached for {model} on tokens."),
    "not_found": (404, "invalid_request_error", "unknown_url", "Invalid URL."),
}

ANTHROPIC: dict[str, tuple[int, str, str]] = {
    # case: (status, type, words)
    "request_timeout": (408, "timeout_error", "Request timed out."),
    "too_early": (425, "api_error", "Too early."),
    "rate_limit": (
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of requests per minute. For details, "
        "refer to: https://docs.claude.com/en/api/rate-limits.",
    ),
    "server_error": (500, "api_error", "Internal server error"),
    "bad_gateway": (502, "api_error", "Bad gateway"),
    "unavailable": (503, "api_error", "Service unavailable"),
    "gateway_timeout": (504, "timeout_error", "Request timed out"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "unauthorized": (401, "authentication_error", "invalid x-api-key"),
    "no_key": (401, "authentication_error", "x-api-key header is required"),
    "forbidden": (
        403,
        "permission_error",
        "Your API key does not have permission to use the specified resource.",
    ),
    "model_not_found": (404, "not_found_error", "model: {model}"),
    "payment_required": (402, "billing_error", "There is an issue with your billing or payment information."),
    "quota": (
        429,
        "rate_limit_error",
        "Your organization has reached the monthly API usage threshold of its tier. Please check your "
        "plan and billing details.",
    ),
    "spend_limit": (
        400,
        "invalid_request_error",
        "You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 "
        "UTC.",
    ),
    "credit_balance": (
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade "
        "or purchase credits.",
    ),
    "bad_request": (400, "invalid_request_error", "Invalid request."),
    "bad_json": (400, "invalid_request_error", "The request body is not valid JSON."),
    "image_too_large": (
        400,
        "invalid_request_error",
        "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 6400000 bytes > 5242880 bytes",
    ),
    "image_parse": (400, "invalid_request_error", "Could not process image"),
    "content_policy": (400, "invalid_request_error", "Output blocked by content filtering policy"),
    "unsupported_parameter": (
        400,
        "invalid_request_error",
        "temperature: Extra inputs are not permitted",
    ),
    "body_too_large": (413, "request_too_large", "Request exceeds the maximum size"),
    "tokens_limit": (429, "rate_limit_error", "This request would exceed the rate limit of tokens."),
    "not_found": (404, "not_found_error", "Not found"),
}

ANTHROPIC_DETAILS = {"quota": {"error_code": "enforced_spend_limit_reached"}}
"""What some errors say to machines beside their type."""
