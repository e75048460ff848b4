"""Which error is answered, in the words of the vendor, and what it says about when to come again."""

from __future__ import annotations

from mmbu_async.simulator.config import SimulatorConfig
from mmbu_async.simulator.faults import Fault
from mmbu_async.simulator.google_errors import retry_details
from mmbu_async.simulator.headers import go_duration, retry_headers
from mmbu_async.simulator.limits import Refusal
from mmbu_async.simulator.wire import ApiError, ChatRequest, Wire

STATUSES = frozenset(
    {
        Fault.REQUEST_TIMEOUT,
        Fault.TOO_EARLY,
        Fault.RATE_LIMIT,
        Fault.SERVER_ERROR,
        Fault.BAD_GATEWAY,
        Fault.UNAVAILABLE,
        Fault.GATEWAY_TIMEOUT,
        Fault.OVERLOADED,
        Fault.UNAUTHORIZED,
        Fault.FORBIDDEN,
        Fault.MODEL_NOT_FOUND,
        Fault.PAYMENT_REQUIRED,
        Fault.QUOTA,
        Fault.CREDIT_BALANCE,
        Fault.SPEND_LIMIT,
        Fault.BAD_REQUEST,
        Fault.IMAGE_TOO_LARGE,
        Fault.CONTENT_POLICY,
        Fault.UNSUPPORTED_PARAMETER,
        Fault.BODY_TOO_LARGE,
    }
)
"""Faults that are an error status and nothing else; they are answered at once and charge no limit."""
_SAY_WHEN = frozenset({Fault.RATE_LIMIT, Fault.UNAVAILABLE, Fault.OVERLOADED})


def plain(code: str, wire: Wire, request: ChatRequest | None) -> ApiError:
    """The case in the vendor's own words."""
    status, words = wire.said(code, request)
    return ApiError(status, code, words)


def injected(fault: Fault, wire: Wire, request: ChatRequest, config: SimulatorConfig, now: float) -> ApiError:
    """An error that was asked for. `now` is in Unix seconds."""
    error = plain(fault.value, wire, request)
    if fault in _SAY_WHEN and config.retry_after_s is not None:
        _say_when(error, config.retry_after_style, wire, config.retry_after_s, now)
    return error


def limited(refusal: Refusal, wire: Wire, request: ChatRequest, now: float) -> ApiError:
    """A 429 in true words; what can never fit gets no time to come again."""
    limit, requested, what = int(refusal.limit), int(refusal.requested), refusal.what
    if wire.vendor == "google":
        _, words = wire.said("rate_limit", request)
    elif wire.vendor == "anthropic":
        words = (
            f"This request would exceed your organization's rate limit of {limit} {what} per minute. "
            "For details, refer to: https://docs.claude.com/en/api/rate-limits."
        )
    elif refusal.never:
        words = (
            f"Request too large for {request.model} on {what} per min: Limit {limit}, Requested {requested}."
        )
    else:
        words = (
            f"Rate limit reached for {request.model} in organization org-simulator on {what} per min: Limit "
            f"{limit}, Requested {requested}. Please try again in {go_duration(refusal.wait_s)}."
        )
    error = ApiError(429, "rate_limit" if what == "requests" else "tokens_limit", words)
    if not refusal.never:
        _say_when(error, "seconds" if wire.vendor == "anthropic" else "both", wire, refusal.wait_s, now)
    return error


def _say_when(error: ApiError, style: str, wire: Wire, wait_s: float, now: float) -> None:
    """In headers, or, as Google does, among the details."""
    if wire.vendor == "google":
        error.details = retry_details(wait_s, whole=style == "seconds")
    else:
        error.headers = retry_headers(style, wire.vendor, wait_s, now)
