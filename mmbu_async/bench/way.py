"""One request on its way: what is noted until it ends, and the record that this becomes."""

from __future__ import annotations

from dataclasses import dataclass, field

from mmbu_async.bench.ask import Ask
from mmbu_async.bench.record import Phase, Record
from mmbu_async.endpoints.failures import CUT_SHORT
from mmbu_async.endpoints.timed import Marks
from mmbu_async.endpoints.tokens import text_tokens
from mmbu_async.endpoints.transport import TransportError
from mmbu_async.endpoints.wire import StreamParser
from mmbu_async.model import Completion, Failure, FailureKind, Usage

FASTEST_TOKENS_A_SECOND = 20_000.0
"""Of one stream. The fastest hardware writes a few thousand; what is faster has lain in a buffer."""
FEWEST_TOKENS_TO_TELL = 8
"""Below, a whole reply can honestly be one piece: some servers send several tokens at once."""


@dataclass(slots=True, kw_only=True)
class Way:
    """Readings of one clock, in seconds."""

    ask: Ask
    number: int
    intended: float
    stage_began: float
    began: float
    in_flight: int
    marks: Marks = field(default_factory=Marks)
    first_byte: float | None = None
    first_thought: float | None = None
    first_output: float | None = None
    last_token: float | None = None
    bytes_down: int = 0
    status: int | None = None
    events: int = 0
    gaps: list[float] = field(default_factory=list)

    def feed(self, parser: StreamParser, event: bytes, at: float) -> bool:
        """An event came; False: it cannot be read."""
        spoken, thought = parser.spoken, parser.thought
        try:
            parser.feed(event)
        except (AttributeError, KeyError, TypeError, ValueError):
            return False
        if parser.spoken > spoken:
            if self.first_output is None:
                self.first_output = at
        elif parser.thought > thought:
            if self.first_thought is None:
                self.first_thought = at
        else:
            return True
        if self.last_token is not None:
            self.gaps.append(at - self.last_token)
        self.last_token = at
        self.events += 1
        return True

    def record(
        self,
        now: float,
        phase: Phase,
        *,
        ended: Completion | Failure | None = None,
        usage: Usage | None = None,
        cost_usd: float | None = None,
    ) -> Record:
        """It has ended now. `ended` None: it was waited for no longer."""
        marks, began, ask, used = self.marks, self.began, self.ask, usage or Usage(reported=False)
        connected, sent = marks.connected, marks.sent
        return Record(
            number=self.number,
            intended_s=self.intended - self.stage_began,
            delay_s=began - self.intended,
            connect_s=None if connected is None or marks.connecting is None else connected - marks.connecting,
            sent_s=None if sent is None else sent - began,
            upload_s=None if sent is None or connected is None else sent - connected,
            first_byte_s=_since(began, self.first_byte),
            first_thought_s=_since(began, self.first_thought),
            first_output_s=_since(began, self.first_output),
            last_token_s=_since(began, self.last_token),
            total_s=now - began,
            phase=phase,
            message=self._words(phase, ended),
            status=self.status,
            request_id=ended.request_id if ended is not None else "",
            finish=ended.finish.value if isinstance(ended, Completion) else "",
            events=self.events,
            longest_gap_s=max(self.gaps, default=0.0),
            in_one_piece=phase is Phase.OK and self._in_one_piece(used),
            bytes_up=len(ask.body),
            bytes_down=self.bytes_down,
            images=ask.images,
            pixels=ask.pixels,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            reasoning_tokens=used.reasoning_tokens,
            cached_tokens=used.cached_tokens,
            estimated=isinstance(ended, Completion) and not used.reported,
            cost_usd=cost_usd,
            in_flight=self.in_flight,
            row=ask.row.sample.id if ask.row is not None else "",
        )

    def usage(self, ended: Completion | Failure) -> Usage:
        """As told; of a reply without any, as estimated, and then not `reported`."""
        if isinstance(ended, Failure):
            return ended.usage or Usage(reported=False)
        if ended.usage.reported:
            return ended.usage
        thought = text_tokens(ended.reasoning)
        return Usage(
            input_tokens=self.ask.raw_input,
            output_tokens=thought + text_tokens(ended.text),
            reasoning_tokens=thought,
            reported=False,
        )

    def broken(self, error: TransportError) -> Phase:
        """Where a connection was lost or time ran out."""
        if self.first_byte is not None:
            return Phase.CUT
        if not error.sent or self.marks.connected is None:
            return Phase.CONNECT
        return Phase.UPLOAD if self.marks.sent is None else Phase.FIRST_BYTE

    def phase(self, ended: Completion | Failure) -> Phase:
        """Of what came back."""
        if isinstance(ended, Completion):
            silent = not self.events and not (ended.text or ended.reasoning)
            return Phase.NO_TOKEN if silent else Phase.OK
        status = self.status or 0
        if status == 429 or (ended.kind is FailureKind.RATE_LIMIT and not self.events):
            return Phase.RATE_LIMIT
        if status >= 500:
            return Phase.SERVER
        if not 200 <= status < 300:
            return Phase.REFUSED
        if ended.message == CUT_SHORT or (self.events and ended.kind is not FailureKind.MALFORMED):
            return Phase.CUT
        return Phase.MALFORMED if ended.kind is FailureKind.MALFORMED else Phase.SERVER

    def _words(self, phase: Phase, ended: Completion | Failure | None) -> str:
        if ended is None:
            return "waited for no longer"
        if isinstance(ended, Completion):
            return "" if phase is Phase.OK else "the reply has no token that can be seen"
        after = f" (after {self.events} pieces)" if phase is Phase.CUT and self.events else ""
        return ended.message + after

    def _in_one_piece(self, usage: Usage) -> bool:
        first = self.first_thought if self.first_thought is not None else self.first_output
        tokens = max(self.events, usage.output_tokens)
        if first is None or self.last_token is None or tokens < FEWEST_TOKENS_TO_TELL:
            return False
        return (self.last_token - first) * FASTEST_TOKENS_A_SECOND < tokens - 1


def _since(began: float, at: float | None) -> float | None:
    return None if at is None else at - began
