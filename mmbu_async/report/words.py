"""Numbers as a reader wants them. What is not known is said in words, never as 0."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mmbu_async.model import Json
from mmbu_async.report.groups import Group
from mmbu_async.stats import Estimate, Headline, Interval
from mmbu_async.store.records import CallTotals

if TYPE_CHECKING:
    from mmbu_async.report.model import Clock

NONE = "–"
"""Stands where a figure has no value."""


def count(number: int) -> str:
    return f"{number:,}"


def counted(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def rows(number: int) -> str:
    return counted(number, "row", "rows")


def share(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"


def percent(value: float) -> str:
    return f"{value:.0%}".replace("%", " %")


def span(low: float | None, high: float | None) -> str:
    return NONE if low is None or high is None else f"{low:.3f}–{high:.3f}"


def interval(found: Estimate | Interval | None) -> str:
    return NONE if found is None else span(found.low, found.high)


def share_percent(value: float) -> str:
    """A share of rows, where a per cent reads better than a fraction."""
    return f"{value:.1%}".replace("%", " %")


def p_value(value: float) -> str:
    return f"{value:.3f}" if value >= 0.0005 else "<0.001"


def signed(value: float | None) -> str:
    """A difference; its sign is shown also where it is positive."""
    return NONE if value is None else f"{value:+.3f}".replace("-", "\u2212")


def difference(found: Estimate) -> str:
    """The interval of a difference; a dash between signed numbers would be read as one more sign."""
    return NONE if found.low is None or found.high is None else f"{signed(found.low)} to {signed(found.high)}"


def scores(group: Group) -> tuple[str, str, str, str]:
    """Accuracy, its interval, F1, its interval. While rows are open: from the worst to the best case."""
    if group.score is not None:
        found: Headline = group.score
        return (
            share(found.accuracy.value),
            interval(found.accuracy),
            share(found.f1.value),
            interval(found.f1),
        )
    worst, best = group.worst, group.best
    return (
        span(worst.accuracy.value, best.accuracy.value),
        span(worst.accuracy.low, best.accuracy.high),
        span(worst.f1.value, best.f1.value),
        span(worst.f1.low, best.f1.high),
    )


def baseline(group: Group, *, between: str = "   ") -> str:
    """What picking options at random would score, and over which rows where not over all."""
    over = "" if group.chance_rows == group.n else f", over {rows(group.chance_rows)} with options"
    return f"{share(group.chance)}{between}picking options at random{over}"


def resampled(group: Group) -> str:
    """By what the intervals of the headline and the families were resampled."""
    return "row" if group.clusters is None else "cluster (by row in the tables after the families)"


def money(usd: float) -> str:
    """US dollars with two digits that say something, also below a cent."""
    if usd == 0 or usd >= 0.1:
        return f"${usd:,.2f}"
    return f"${usd:.4f}" if usd >= 0.0001 else "under $0.0001"


def cost(spend: CallTotals) -> str:
    """What is known of the money, and that it is not all where it is not."""
    if spend.cost_unknown == 0:
        return money(spend.cost_usd)
    return "unknown" if spend.cost_usd == 0 else f"over {money(spend.cost_usd)}"


def saved(verdicts: int, judge: str, cost_usd: float | None) -> str:
    """Verdicts that were not bought, and what that saved."""
    of_money = "price unknown" if cost_usd is None else f"{money(cost_usd)} saved"
    return f"{counted(verdicts, 'verdict', 'verdicts')} of {judge}, {of_money}"


def duration(seconds: float) -> str:
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


def moment(unix_seconds: float) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def rate(per_second: float | None) -> str:
    if per_second is None:
        return "unknown"
    return f"{per_second:.3g} rows/s" if per_second < 1_000 else f"{per_second:,.0f} rows/s"


def wall(clock: Clock) -> str:
    """`22 s in 5 sessions`."""
    return f"{duration(clock.wall_s)} in {counted(clock.sessions, 'session', 'sessions')}"


def throughput(clock: Clock) -> str:
    """How fast rows were asked, and in which time where some of the time went into other things."""
    if clock.rows_per_s is None:
        return rate(None)
    within = (
        "" if clock.asking_s == clock.wall_s else f" in the {duration(clock.asking_s)} that asked the model"
    )
    return f"{rate(clock.rows_per_s)}{within}"


def tally(counted: Mapping[str, int]) -> str:
    """`7 timeout, 2 image`."""
    return ", ".join(f"{count(number)} {name or '(no name)'}" for name, number in counted.items())


def setting(value: Json) -> str:
    """The value of a setting, as it would be typed."""
    if isinstance(value, str):
        return value
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def attribute(name: str) -> str:
    """What the values of a stratum's attribute are called; `task` holds the topics that a task names."""
    return "task topic" if name == "task" else name
