"""What can go wrong, by name, and when it does.

Whether a request meets a fault depends on the seed, on what the request says and on how often it came, never
on time or order (schedules apart): the same request gets the same reply, and a retry is a new draw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mmbu_async.errors import ConfigError


class Fault(StrEnum):
    """One name for each way to fail, in the order of the failure table."""

    # Worth another attempt.
    REQUEST_TIMEOUT = "request_timeout"
    """408."""
    TOO_EARLY = "too_early"
    """425."""
    RATE_LIMIT = "rate_limit"
    """429 with the configured Retry-After."""
    SERVER_ERROR = "server_error"
    """500."""
    BAD_GATEWAY = "bad_gateway"
    """502."""
    UNAVAILABLE = "unavailable"
    """503."""
    GATEWAY_TIMEOUT = "gateway_timeout"
    """504."""
    OVERLOADED = "overloaded"
    """529."""
    RESET = "reset"
    """Connection reset before the first byte of the reply."""
    RESET_MID_BODY = "reset_mid_body"
    """Connection reset after half the body."""
    CUT_MID_BODY = "cut_mid_body"
    """Connection closed in good order after half the body."""
    TIMEOUT = "timeout"
    """Accepted, never answered."""
    DRIP = "drip"
    """The right reply, a byte at a time."""
    STALL = "stall"
    """The right reply, later by `stall_s`."""
    MALFORMED_JSON = "malformed_json"
    """200, and the JSON (or an event of the stream) breaks off."""
    HTML_ERROR = "html_error"
    """502 with a web page for a body."""
    HTML_PAGE = "html_page"
    """200 with a web page for a body, as captive portals send."""
    ERROR_IN_200 = "error_in_200"
    """200 with an error object; in a stream an error event after the first words."""
    EMPTY_CHOICES = "empty_choices"
    """200 with no choice (OpenAI) or no content block (Anthropic)."""

    # Stops the run.
    UNAUTHORIZED = "unauthorized"
    """401."""
    FORBIDDEN = "forbidden"
    """403."""
    MODEL_NOT_FOUND = "model_not_found"
    """404."""
    PAYMENT_REQUIRED = "payment_required"
    """402."""
    QUOTA = "quota"
    """429 that says the quota is used up."""
    CREDIT_BALANCE = "credit_balance"
    """400 that says the credit is used up, in each vendor's words."""
    SPEND_LIMIT = "spend_limit"
    """The limit that the user set for himself is reached: 400 at Anthropic, 429 at OpenAI."""

    # Fails the row.
    BAD_REQUEST = "bad_request"
    """400."""
    IMAGE_TOO_LARGE = "image_too_large"
    """400."""
    CONTENT_POLICY = "content_policy"
    """400."""
    UNSUPPORTED_PARAMETER = "unsupported_parameter"
    """400."""
    BODY_TOO_LARGE = "body_too_large"
    """413."""

    # A reply all the same.
    TRUNCATED = "truncated"
    """Half the reply, ended by the token limit."""
    UNTAGGED = "untagged"
    """The reply without its answer tags."""
    EMPTY_TEXT = "empty_text"
    """The reply is the empty text."""
    REFUSAL = "refusal"
    """The model declines, in the vendor's own field."""
    CONTENT_FILTER = "content_filter"
    """Stopped by a filter in mid-reply."""
    THINK = "think"
    """A think block with a decoy answer inside the text."""
    REASONING_FIELD = "reasoning_field"
    """Reasoning with a decoy answer in the vendor's separate field."""
    NULL_CONTENT = "null_content"
    """Reasoning alone; the content is null, the end is normal."""
    THINKING_SPENT = "thinking_spent"
    """Reasoning alone; the token limit ended it."""
    NO_USAGE = "no_usage"
    """The right reply without token counts."""
    NO_VERDICT = "no_verdict"
    """A judge's line without its verdict."""
    OTHER_VERDICT = "other_verdict"
    """A judge's line with the opposite verdict: judges of a panel differ."""


ROLES = ("model", "judge")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    """One fault and when it strikes; exactly one of the conditions is set."""

    fault: Fault
    role: str | None = None
    """`model` or `judge`; None: both."""
    rate: float | None = None
    """Share of requests."""
    first: int | None = None
    """The first so many occurrences of every request."""
    text: str | None = None
    """Every request that holds this text, always."""
    requests: tuple[int, int] | None = None
    """Requests by number of arrival, from 1, both ends included."""
    seconds: tuple[float, float] | None = None
    """Requests that arrive so many seconds after the start, the upper end excluded."""

    def __post_init__(self) -> None:
        conditions = (self.rate, self.first, self.text, self.requests, self.seconds)
        if sum(condition is not None for condition in conditions) != 1:
            raise ConfigError(
                f"fault {self.fault.value}: set exactly one of rate, first, text, requests, seconds."
            )
        if self.rate is not None and not 0 <= self.rate <= 1:
            raise ConfigError(f"fault {self.fault.value}: rate {self.rate} is not between 0 and 1.")
        if self.role is not None and self.role not in ROLES:
            raise ConfigError(f"fault {self.fault.value}: role {self.role!r} is neither model nor judge.")

    @classmethod
    def parse(cls, text: str) -> FaultRule:
        """Reads `NAME[@ROLE]=CONDITION`: a rate, `first:N`, `text:WORDS`, `requests:A-B` or `seconds:A-B`."""
        head, equals, condition = text.partition("=")
        fault, role = _name(head.strip(), text)
        word, colon, value = condition.strip().partition(":")
        try:
            if equals and not colon:
                return cls(fault=fault, role=role, rate=float(word))
            if word == "first":
                return cls(fault=fault, role=role, first=int(value))
            if word == "text" and value:
                return cls(fault=fault, role=role, text=value)
            if word in ("requests", "seconds"):
                low, dash, high = value.partition("-")
                if word == "requests":
                    return cls(fault=fault, role=role, requests=(int(low), int(high if dash else low)))
                return cls(fault=fault, role=role, seconds=(float(low), float(high)))
        except ValueError:
            pass
        raise ConfigError(
            f"fault {text!r} cannot be read; write NAME=0.05, NAME@judge=first:2, NAME=text:WORDS, "
            "NAME=requests:10-20 or NAME=seconds:5-7.5."
        )

    @classmethod
    def parse_schedule(cls, text: str) -> tuple[FaultRule, ...]:
        """Reads a schedule file: a rule a line as `parse` reads it; blank lines and # comments do nothing."""
        lines = (line.strip() for line in text.splitlines())
        return tuple(cls.parse(line) for line in lines if line and not line.startswith("#"))


def _name(head: str, whole: str) -> tuple[Fault, str | None]:
    name, at, role = head.partition("@")
    try:
        return Fault(name), role if at else None
    except ValueError:
        known = ", ".join(fault.value for fault in Fault)
        raise ConfigError(f"fault {whole!r}: {name!r} is none of {known}.") from None


def choose(
    rules: Sequence[FaultRule],
    *,
    role: str,
    text: str,
    number: int,
    seconds: float,
    occurrence: int,
    draw: Callable[[], float],
) -> Fault | None:
    """The fault that one request meets, if any.

    Texts win over schedules, schedules over first occurrences, those over rates; rates share one draw, so
    that they add up.
    """
    mine = [rule for rule in rules if rule.role in (None, role)]
    for rule in mine:
        if rule.text is not None and rule.text in text:
            return rule.fault
    for rule in mine:
        if rule.requests is not None and rule.requests[0] <= number <= rule.requests[1]:
            return rule.fault
        if rule.seconds is not None and rule.seconds[0] <= seconds < rule.seconds[1]:
            return rule.fault
    for rule in mine:
        if rule.first is not None and occurrence <= rule.first:
            return rule.fault
    rates = [rule for rule in mine if rule.rate is not None]
    if not rates:
        return None
    drawn = draw()
    for rule in rates:
        drawn -= rule.rate or 0.0
        if drawn < 0:
            return rule.fault
    return None
