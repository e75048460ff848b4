"""What became of one request: one record each, good or bad. Every figure is computed from these."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mmbu_async.model import Completion, FailureKind


class Phase(StrEnum):
    """How far a request came. The order is that of its way."""

    UNSENT = "unsent"
    """It was due, and the bench ended before it could start."""
    CONNECT = "connect"
    """No connection: refused, unknown host, TLS, too slow."""
    UPLOAD = "upload"
    """The connection broke while the request went out."""
    FIRST_BYTE = "first byte"
    """All went out, and nothing came back."""
    RATE_LIMIT = "429"
    REFUSED = "refused"
    """Another status from 400 to 499, or a redirect."""
    SERVER = "server error"
    """Status 500 and above."""
    CUT = "cut"
    """The reply broke off; `events` says after how many pieces with a token."""
    MALFORMED = "malformed"
    """A body or an event that cannot be read."""
    NO_TOKEN = "no token"  # noqa: S105 - tokens of language
    """A reply in good order without a single token that can be seen."""
    ABANDONED = "abandoned"
    """Under way when the bench was ended, and waited for no longer."""
    OK = "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One request. Times are seconds; those of its way count from its actual start, and what its user waited
    is that plus `delay_s`."""

    number: int
    """Order of the intended starts within the stage, from 0."""
    intended_s: float
    """When it was meant to start, after the stage's begin."""
    delay_s: float = 0.0
    """From then to its actual start: waiting in this process, under a cap of its own or by its slowness. Half
    a millisecond below 0 at most, since timers have steps."""
    connect_s: float | None = None
    """A new connection took so long; None: an open one was taken."""
    sent_s: float | None = None
    """The system had taken the last byte of the request."""
    upload_s: float | None = None
    """How long that took once the connection stood."""
    first_byte_s: float | None = None
    first_thought_s: float | None = None
    """First piece of reasoning."""
    first_output_s: float | None = None
    """First piece of the reply itself."""
    last_token_s: float | None = None
    total_s: float = 0.0
    """The end, good or bad."""
    phase: Phase
    message: str = ""
    """Why it is not OK, in one line."""
    status: int | None = None
    request_id: str = ""
    finish: str = ""
    events: int = 0
    """Pieces of a stream that bore a token, of reasoning or reply."""
    longest_gap_s: float = 0.0
    """Between two of them."""
    in_one_piece: bool = False
    """The stream came in a way that no model writes: something buffered it, and its times mean nothing."""
    bytes_up: int = 0
    bytes_down: int = 0
    """Of bodies, after decompression."""
    images: int = 0
    pixels: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    """Reasoning included."""
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False
    """The endpoint told no usage, and the tokens are counted by the rule of thumb."""
    cost_usd: float | None = None
    """None: unknown."""
    in_flight: int = 0
    """Requests under way at its start, this one included."""
    row: str = ""
    """Id of the row that was asked about; '' for synthetic work."""
    text: str | None = None
    """The reply, where answers are scored."""
    correct: bool | None = None
    """Whether the answer is right; None: not scored."""

    @property
    def ok(self) -> bool:
        return self.phase is Phase.OK

    @property
    def started_s(self) -> float:
        return self.intended_s + self.delay_s

    @property
    def ended_s(self) -> float:
        """After the stage's begin."""
        return self.intended_s + self.delay_s + self.total_s

    @property
    def latency_s(self) -> float:
        """From the intended start to the end: what its user waited."""
        return self.delay_s + self.total_s

    @property
    def first_token_s(self) -> float | None:
        """From the intended start to the first token of either kind; None where that means nothing."""
        if self.in_one_piece:
            return None
        found = [at for at in (self.first_thought_s, self.first_output_s) if at is not None]
        return self.delay_s + min(found) if found else None

    @property
    def token_time_s(self) -> float | None:
        """Mean time a token takes after the first one; None where that means nothing."""
        first, last = self.first_token_s, self.last_token_s
        if first is None or last is None or self.output_tokens < 2:
            return None
        return (self.delay_s + last - first) / (self.output_tokens - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request that has ended, and what came of it."""

    record: Record
    reply: Completion | None
    failure_kind: FailureKind | None
    gaps_s: tuple[float, ...]
    """Between pieces with a token; empty where the stream came in one piece or not at all."""
