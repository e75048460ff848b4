"""One row for a terminal: what was asked, what came back, how it was read, judged and scored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import orjson
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from mmbu_async.model import Completion, Json, Status
from mmbu_async.report import words
from mmbu_async.report.plain import block, line
from mmbu_async.store import RowDetail, RowRecord, StoredCall

PROMPT_TITLES: Mapping[str, str] = {
    "system": "System message",
    "user": "User message (the image goes with it)",
    "judge": "Judge prompt",
}


def print_row(detail: RowDetail, prompts: Mapping[str, str], console: Console) -> None:
    """`prompts`: the filled texts by role (`system`, `user`, `judge`), as the caller knows them."""
    for section in _sections(detail, prompts):
        console.print(section, soft_wrap=isinstance(section, Text))


def _sections(detail: RowDetail, prompts: Mapping[str, str]) -> Iterator[RenderableType]:
    row = detail.record
    yield Text(line(f"Row {row.sample.id} · {row.family} · number {row.sample.position + 1}"), style="bold")
    yield _outcome(row)
    yield _grid(_facts(row))
    for role, text in prompts.items():
        if role != "judge":
            yield from _texts(PROMPT_TITLES.get(role, role), text)
    if row.completion is not None:
        yield from _texts("Reasoning (no part of the reply)", row.completion.reasoning)
        yield from _texts(f"Reply, raw ({_end(row.completion)})", row.completion.text or "(nothing)")
    if judge_prompt := prompts.get("judge"):
        yield from _texts(PROMPT_TITLES["judge"], judge_prompt)
    for name, verdict in row.verdicts.items():
        yield from _texts(f"Reply of judge {name}", verdict.reply or "(nothing)")
    if detail.calls:
        yield Text("\nAttempts", style="bold")
        yield _attempts(detail.calls)
    columns = [(name, _json(value)) for name, value in row.sample.fields.items() if value is not None]
    if columns:
        yield Text("\nColumns of the dataset", style="bold")
        yield _grid(columns)


def _outcome(row: RowRecord) -> Text:
    match row.status:
        case Status.SCORED if row.score is not None:
            right = bool(row.score.correct)
            return Text("RIGHT" if right else "WRONG", style="bold green" if right else "bold red")
        case Status.FAILED:
            return Text("FAILED: no attempt gave a reply; this is no wrong answer.", style="bold yellow")
        case Status.UNJUDGED:
            return Text("UNJUDGED: there is no usable verdict; this is no wrong answer.", style="bold yellow")
        case _:
            return Text("PENDING: not asked yet.", style="bold yellow")


def _facts(row: RowRecord) -> Iterator[tuple[str, str]]:
    sample = row.sample
    yield "Question", sample.question or "(blank)"
    yield "Image", _images(row)
    if sample.options:
        yield "Options", " | ".join(sample.options)
    yield "Truth", sample.answer
    if row.answer is not None:
        yield "Answer", f"{row.answer.text or '(empty)'}   [found by: {row.answer.how}]"
    for name, verdict in row.verdicts.items():
        word = {True: "right", False: "wrong", None: "no usable verdict"}[verdict.correct]
        yield "Verdict", f"{word}, says {name}"
    if row.score is not None:
        yield "Score", f"TP {row.score.tp}, FP {row.score.fp}, FN {row.score.fn}"
        for name, value in row.score.detail.items():
            yield f"  {name}", _json(value)
    if row.failure is not None:
        status = f" (HTTP {row.failure.status})" if row.failure.status else ""
        yield "Failure", f"{row.failure.kind}{status}: {row.failure.message}"
    yield "Spent", _spent(row)
    if row.timing is not None:
        first = row.timing.first_token_s
        began = "" if first is None else f", first token after {words.duration(first)}"
        yield "Took", f"{words.duration(row.timing.total_s)}{began}"


def _images(row: RowRecord) -> str:
    names = ", ".join(image.locator for image in row.sample.images) or "none"
    notes = []
    if row.image_note:
        notes.append(f"converted: {row.image_note}")
    if row.image_scale != 1:
        notes.append(f"sent at {row.image_scale:.4g} of its size")
    if row.image_sha256:
        notes.append(f"SHA-256 {row.image_sha256[:12]}")
    return f"{names}   [{'; '.join(notes)}]" if notes else names


def _spent(row: RowRecord) -> str:
    cost = words.money(row.cost_usd)
    if row.cost_unknown:
        cost = "at an unknown price" if row.cost_usd == 0 else f"over {cost}"
    own, judge = row.usage, row.judge_usage
    text = (
        f"{words.counted(row.attempts, 'attempt', 'attempts')}, {words.count(own.input_tokens)} tokens in, "
        f"{words.count(own.output_tokens)} out"
    )
    if row.judge_attempts:
        text += (
            f"; {words.counted(row.judge_attempts, 'judge call', 'judge calls')}, "
            f"{words.count(judge.input_tokens)} in, {words.count(judge.output_tokens)} out"
        )
    return f"{text}; {cost}"


def _attempts(calls: Iterable[StoredCall]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for column in ("asked", "session", "no.", "took", "in", "out", "cost"):
        table.add_column(column, justify="left" if column == "asked" else "right", no_wrap=column != "asked")
    table.add_column("outcome", overflow="fold")
    for call in calls:
        attempt, outcome = call.attempt, call.attempt.outcome
        usage = outcome.usage
        table.add_row(
            Text(line(call.judge or "model")),
            str(call.session_id),
            str(attempt.number),
            words.duration(attempt.timing.total_s),
            words.count(usage.input_tokens) if usage else words.NONE,
            words.count(usage.output_tokens) if usage else words.NONE,
            words.NONE if attempt.cost_usd is None else words.money(attempt.cost_usd),
            Text(line(_said(call))),
        )
    return table


def _said(call: StoredCall) -> str:
    outcome = call.attempt.outcome
    if isinstance(outcome, Completion):
        said = f"reply, {_end(outcome)}"
    else:
        status = f" {outcome.status}" if outcome.status else ""
        said = f"{outcome.kind}{status}: {outcome.message}"
    return f"{said} [{outcome.request_id}]" if outcome.request_id else said


def _end(reply: Completion) -> str:
    raw = reply.finish_raw
    return (
        reply.finish.value if raw in ("", reply.finish.value) else f"{reply.finish.value}, in its words {raw}"
    )


def _texts(title: str, text: str) -> Iterator[RenderableType]:
    if text:
        yield Text(f"\n{line(title)}", style="bold")
        yield Text(block(text))


def _grid(facts: Iterable[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(Text(line(name)), Text(line(value)))
    return grid


def _json(value: Json) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else orjson.dumps(value).decode()
