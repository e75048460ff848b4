"""One run as one flat JSON object, as a leaderboard keeps them: scalars only, null where nothing is known.

Nothing is refused: a run with open rows says `complete: false`, has no accuracy, and gives the ends between
which it lies. Where no row is open the ends are the figure itself. docs/exports.md lists the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import orjson

from mmbu_async.model import Json
from mmbu_async.report.groups import Group
from mmbu_async.report.model import Party, ReportData
from mmbu_async.report.plain import json_text
from mmbu_async.store.records import CallTotals

FORMAT = 1
"""Rises when a key changes its meaning or goes; new keys may come without."""

Pairs = Iterator[tuple[str, Json]]


def to_leaderboard(report: ReportData) -> str:
    """The object as JSON text; ends with a line end."""
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return json_text(orjson.dumps(leaderboard_row(report), option=option).decode())


def leaderboard_row(report: ReportData) -> dict[str, Json]:
    """Keys in the order in which a reader wants them."""
    ran = report.ran
    return {
        "format": FORMAT,
        "model": ran.model.model,
        "benchmark": ran.benchmark,
        "run": report.run,
        "complete": report.complete,
        "official": ran.official,
        "unofficial_because": "; ".join(ran.unofficial) or None,
        "dataset_fingerprint": ran.fingerprint,
        "dataset_rows": report.rows.dataset,
        **dict(_rows(report)),
        **dict(_figures("", report.overall)),
        "interval_level": report.level,
        "interval_resamples": report.resamples,
        **{
            key: value
            for group in report.families
            for key, value in _family(f"family.{group.name or ''}.", group)
        },
        **dict(_party("model", ran.model)),
        # A majority is nobody's model.
        "judge": (ran.judge.model or ran.judge.name) if ran.judge else None,
        **dict(_party("judge", ran.judge) if ran.judge else ()),
        "panel": "; ".join(judge.name for judge in report.panel.judges) if report.panel else None,
        "panel_krippendorff_alpha": report.panel.alpha if report.panel else None,
        **dict(_flat("selection", ran.selection)),
        "package_version": ran.packages[-1] if ran.packages else None,
        "scored_by_version": ran.scored_by,
        "date": datetime.fromtimestamp(ran.created_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **dict(_spent(report)),
    }


def _rows(report: ReportData) -> Pairs:
    rows = report.rows
    graded = rows.selected - rows.ungraded
    yield "rows", rows.selected
    yield "scored", rows.scored
    yield "right", rows.right
    yield "ungraded", rows.ungraded
    yield "unjudged", rows.unjudged
    yield "failed", rows.failed
    yield "pending", rows.pending
    yield "coverage", rows.scored / graded if graded else None


def _family(prefix: str, group: Group) -> Pairs:
    yield f"{prefix}rows", group.n
    yield f"{prefix}right", group.right
    yield f"{prefix}open", group.open
    yield from _figures(prefix, group)


def _figures(prefix: str, group: Group) -> Pairs:
    for name, found, worst, best in (
        ("accuracy", group.accuracy, group.worst.accuracy, group.best.accuracy),
        ("f1", group.f1, group.worst.f1, group.best.f1),
    ):
        yield f"{prefix}{name}", found.value
        yield f"{prefix}{name}_low", found.low
        yield f"{prefix}{name}_high", found.high
        yield f"{prefix}{name}_worst", worst.value
        yield f"{prefix}{name}_best", best.value


def _party(role: str, party: Party) -> Pairs:
    yield f"{role}_endpoint", party.endpoint or None
    yield f"{role}_host", party.host or None
    yield from _flat(f"{role}_settings", party.settings)
    yield from _flat(f"{role}_prompt_sha256", party.prompts)


def _spent(report: ReportData) -> Pairs:
    sides = (report.model_spend, report.judge_spend)
    known = all(side.cost_unknown == 0 for side in sides)
    cost = sum(side.cost_usd for side in sides)
    yield "cost_usd", cost if known else None
    yield "known_cost_usd", cost
    for role, side in zip(("model", "judge"), sides, strict=True):
        yield from _tokens(role, side)
    yield "wall_seconds", report.clock.wall_s


def _tokens(role: str, side: CallTotals) -> Pairs:
    reported = side.usage_unreported == 0
    yield f"{role}_calls", side.calls
    yield f"{role}_input_tokens", side.input_tokens if reported else None
    yield f"{role}_output_tokens", side.output_tokens if reported else None


def _flat(prefix: str, values: Mapping[str, Json]) -> Pairs:
    """Nested names joined by dots; a list becomes its JSON text."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}.{name}", value)
        elif isinstance(value, list | tuple):
            yield f"{prefix}.{name}", orjson.dumps(value).decode()
        else:
            yield f"{prefix}.{name}", value
