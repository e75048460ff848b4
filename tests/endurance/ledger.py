"""The books of one session: what the endpoint's own log says against what the store says.

A request is known by the id that the endpoint gave it. Every request in the log must be a call in the store,
with the same tokens and their price; a request whose reply could not be read (cut, given up, no JSON) must be
a call of unknown cost, since the endpoint may bill it. The one exception is a session that did not end by
itself (killed, aborted, store full): of it may be missing

- replies that came and are not stored: at most as many as the concurrency, for a call keeps its slot until
  its reply is on disk; after a freeze also one for each row in hand, since replies that it made late are
  failed attempts, which keep no slot;
- all requests together: at most a call for each slot and a failed attempt for each row in hand.

Calls that never left (no connection, no name, no image) cost nothing and are in no log.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mmbu_async.simulator import Fault
from tests.endurance.plan import EMPTY_IS_A_REPLY

PRICES = {"input": 1000.0, "output": 3000.0}
"""US dollars a million tokens, of model and judge."""

UNREADABLE = frozenset(
    {
        *(Fault.RESET, Fault.RESET_MID_BODY, Fault.CUT_MID_BODY, Fault.TIMEOUT, Fault.MALFORMED_JSON),
        *(Fault.HTML_PAGE, Fault.HTML_ERROR, Fault.ERROR_IN_200, Fault.EMPTY_CHOICES),
    }
)
NOT_BILLED = frozenset({Fault.HTML_ERROR})
"""The simulator makes a reply before the gateway breaks; an error status is taken as free."""

_CALLS = """
SELECT id, judge_id IS NOT NULL AS judged, sample_id, ok, kind, status, request_id, input_tokens,
    output_tokens, usage_reported, cost_usd
FROM call WHERE id > ? ORDER BY id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One row of the store."""

    id: int
    judged: bool
    sample_id: int
    ok: bool
    kind: str
    status: int | None
    request_id: str
    input_tokens: int | None
    output_tokens: int | None
    usage_reported: bool
    cost_usd: float | None

    @property
    def sent(self) -> bool:
        """Whether it may have reached the endpoint."""
        return self.ok or self.status is not None or self.cost_usd is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a session ended, as far as its books are concerned."""

    orderly: bool
    """By itself, with its store at work: nothing may be missing."""
    server_gone: bool
    """The endpoint went away meanwhile, or connections could not be made: calls may be in no log."""
    concurrency: int
    judge_concurrency: int
    frozen: bool = False
    """The program stood still for longer than its time limits."""


@dataclass(slots=True, kw_only=True)
class Books:
    """What was found; adds up over the sessions of a seed."""

    requests: int = 0
    charged: int = 0
    tokens_matched: int = 0
    usd_matched: float = 0.0
    unknown_cost: int = 0
    """Calls in the store whose cost nobody knows."""
    unread: int = 0
    """Whole replies that the program gave up before it read them: a retry is a repeated call."""
    lost: int = 0
    """Whole replies that a kill, an abort or a full disk kept from the store: each a repeated call."""
    unstored: int = 0
    """Requests of any outcome that are not in the store, for the same reasons."""
    broken: list[str] = field(default_factory=list)

    def close(self, name: str, calls: Sequence[Call], log: Sequence[dict[str, Any]], terms: Terms) -> None:
        """Compare one session's calls with the requests that the endpoint had meanwhile."""
        for role in ("model", "judge"):
            mine = [call for call in calls if call.judged == (role == "judge")]
            asked = [record for record in log if record["role"] == role]
            concurrency = terms.concurrency if role == "model" else terms.judge_concurrency
            self._role(f"{name}, {role}", mine, asked, terms, concurrency)

    def _role(
        self,
        name: str,
        calls: Sequence[Call],
        log: Sequence[dict[str, Any]],
        terms: Terms,
        concurrency: int,
    ) -> None:
        by_id = {call.request_id: call for call in calls if call.request_id}
        known = {record["request_id"] for record in log}
        sent = [call for call in calls if call.sent]
        silent = sum(call.cost_usd is None and call.request_id not in known for call in calls)
        self.requests += len(log)
        self.charged += sum(_charged(record) for record in log)
        self.unknown_cost += sum(call.cost_usd is None for call in calls)
        for record in log:
            if (call := by_id.get(record["request_id"])) is not None:
                self._match(name, call, record)
        for call in calls:
            if call.ok and call.request_id not in known:
                self.broken.append(f"{name}: call {call.id} holds a reply that the endpoint never gave")
        missing = [record for record in log if record["request_id"] not in by_id]
        replies = sum(map(readable, missing))
        unread = min(replies, silent)
        lost = replies - unread
        self.unread += unread
        self.lost += lost
        unstored = max(0, len(log) - len(sent))
        self.unstored += unstored
        if not terms.orderly:
            in_hand = concurrency + max(8, concurrency // 2)
            most = concurrency + in_hand * terms.frozen
            if lost > most:
                self.broken.append(f"{name}: {lost} whole replies are lost, more than {most} slots")
            if unstored > concurrency + in_hand:
                self.broken.append(f"{name}: {unstored} of {len(log)} requests are not in the store")
            return
        if len(sent) < len(log) or (len(sent) > len(log) and not terms.server_gone):
            self.broken.append(
                f"{name}: the endpoint had {len(log)} requests, the store has {len(sent)} calls"
            )
        if lost:
            self.broken.append(f"{name}: {lost} whole replies are not in the store, and nothing was killed")
        charged = sum(map(_charged, missing))
        if charged > silent:
            self.broken.append(f"{name}: {charged} charged requests, and {silent} calls of unknown cost")

    def _match(self, name: str, call: Call, record: dict[str, Any]) -> None:
        """One request that both know."""
        where = f"{name}: call {call.id} ({record['fault'] or 'no fault'})"
        if call.ok and not readable(record):
            self.broken.append(f"{where} is a reply, and the endpoint's was unreadable")
        if not call.usage_reported:
            if _charged(record) and call.cost_usd is not None:
                self.broken.append(f"{where} was charged, and the store has it for {call.cost_usd}")
            return
        tokens = (record["input_tokens"], record["output_tokens"])
        if (call.input_tokens, call.output_tokens) != tokens:
            self.broken.append(
                f"{where} used {tokens} tokens, and the store has {call.input_tokens, call.output_tokens}"
            )
        usd = (tokens[0] * PRICES["input"] + tokens[1] * PRICES["output"]) / 1e6
        if call.cost_usd is None or abs(call.cost_usd - usd) > 1e-9:
            self.broken.append(f"{where} cost {usd}, and the store has {call.cost_usd}")
        self.tokens_matched += sum(tokens)
        self.usd_matched += usd


def readable(record: dict[str, Any]) -> bool:
    """Whether a whole reply went out."""
    whole = record["status"] == 200 and not record["aborted"] and not record["shutdown"]
    empty = record["fault"] == Fault.EMPTY_CHOICES and record["kind"] == EMPTY_IS_A_REPLY
    return whole and (empty or record["fault"] not in UNREADABLE)


def _charged(record: dict[str, Any]) -> bool:
    return bool(record["charged"]) and record["fault"] not in NOT_BILLED


def new_calls(connection: sqlite3.Connection, after: int) -> list[Call]:
    """Calls that were stored since."""
    return [
        Call(
            id=row[0],
            judged=bool(row[1]),
            sample_id=row[2],
            ok=bool(row[3]),
            kind=row[4],
            status=row[5],
            request_id=row[6],
            input_tokens=row[7],
            output_tokens=row[8],
            usage_reported=bool(row[9]),
            cost_usd=row[10],
        )
        for row in connection.execute(_CALLS, (after,))
    ]
