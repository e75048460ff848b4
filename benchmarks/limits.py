"""Under a rate limit: how much of what is allowed is used, and how often the endpoint has to say no.

    python -m benchmarks.limits [--json FILE] [--quick]

The simulator enforces a limit of requests or of tokens a minute and keeps the log that is counted here; we
are told the same limit with --rpm or --tpm.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import measured
from benchmarks.scheme import Figure, Findings, Options, present
from benchmarks.servers import endpoint
from benchmarks.splits import small_split

BURST_S = 3.0
"""Seconds of its rate that the endpoint lets a client save up; an hour of a run has no use for more."""
LATENCY = "lognormal:0.5,0.4"
CONCURRENCY = 256
EDGE_S = 5.0
"""Left out at both ends: the saved-up burst and the slow start, and the last rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit, set at the endpoint and told to us."""

    what: str
    rpm: float | None = None
    tpm: float | None = None
    rows: int
    """So many that the run takes about 40 seconds."""

    @property
    def flags(self) -> list[str]:
        return ["--rpm", str(self.rpm)] if self.rpm is not None else ["--tpm", str(self.tpm)]

    @property
    def settings(self) -> dict[str, float]:
        return {"rpm": self.rpm} if self.rpm is not None else {"tpm": self.tpm or 0.0}

    @property
    def a_second(self) -> float:
        return (self.rpm or self.tpm or 0.0) / 60


LIMITS = (
    Limit(what="requests a minute (500)", rpm=500, rows=330),
    Limit(what="requests a minute (6,000)", rpm=6000, rows=4000),
    Limit(what="tokens a minute (1,000,000)", tpm=1_000_000, rows=2800),
)


def measure(options: Options) -> Findings:
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    for limit in LIMITS:
        window = _window(limit, options)
        figures += [
            Figure(
                what=f"share used of {limit.what}",
                value=window["used_percent"],
                unit="%",
                at_least=97,
            ),
            Figure(
                what=f"requests answered with 429 under {limit.what}",
                value=window["refused_percent"],
                unit="%",
                at_most=0.5,
            ),
        ]
        details[limit.what] = window
    return Findings(figures=figures, method=METHOD, details=details)


METHOD = (
    "The simulator enforces the limit as a token bucket that saves up "
    f"{BURST_S:g} seconds at most, with a latency of {LATENCY}; we are told the same limit. Counted from the "
    f"simulator's log, the first and last {EDGE_S:g} seconds left out for the share that is used and nothing "
    "left out for the 429s. Of tokens, input and output count as the endpoint charged them. One run each."
)


def _window(limit: Limit, options: Options) -> dict[str, float]:
    """One run, seen from the simulator's log."""
    rows = options.rows(limit.rows, limit.rows // 2)
    split = small_split(options.folder, ["scored"] * rows)
    log = options.folder / "limits.jsonl"
    log.unlink(missing_ok=True)
    flags = ["--latency", LATENCY, "--blind", "--limit-burst-s", str(BURST_S), "--log", str(log)]
    with endpoint(*flags, *limit.flags) as server:
        measured.run(
            server, split, options.folder / "limits.sqlite", concurrency=CONCURRENCY, **limit.settings
        )
    return _counted(log, limit)


def _counted(log: Path, limit: Limit) -> dict[str, float]:
    requests = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    times = [one["arrived_at"] for one in requests]
    since, until = min(times) + EDGE_S, max(times) - EDGE_S
    admitted = [one for one in requests if since <= one["arrived_at"] < until and one["status"] != 429]
    used = float(len(admitted))
    if limit.tpm is not None:
        used = float(sum(one["input_tokens"] + one["output_tokens"] for one in admitted))
    refused = sum(one["status"] == 429 for one in requests)
    return {
        "requests": len(requests),
        "window_s": round(until - since, 2),
        "used_percent": round(used / (until - since) / limit.a_second * 100, 2),
        "refused": refused,
        "refused_percent": round(refused / len(requests) * 100, 3),
    }


def main() -> None:
    present("limits", measure, __doc__)


if __name__ == "__main__":
    main()
