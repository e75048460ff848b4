"""One row as one run has it: what was asked, what came back, how it was judged. Templates show it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mmbu_async.model import Box, Completion, Failure, Json, PreparedImage, Prompt, Status
from mmbu_async.report import words
from mmbu_async.store import Browser, RowDetail, RowRecord, RowVerdict, RunRecord, StoredCall
from mmbu_async.viewer.address import FINISH_WORDS
from mmbu_async.viewer.desk import RunRules
from mmbu_async.viewer.drawing import boxes_of, true_boxes

DRAWN = frozenset({"predicted", "truth"})
"""Parts of a score's detail that are drawn and listed as boxes."""
SHA_DIGITS = 64
"""Of a SHA-256; a row keeps those of its images end to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeWord:
    """What one judge said."""

    verdict: RowVerdict
    decides: bool
    """Whether the run's scores are made with this judge's verdicts."""
    of_this_prompt: bool | None
    """Whether it answers the prompt as it would be filled today; None where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """One exchange, in words."""

    call: StoredCall
    said: str
    text: str
    """A reply that stands nowhere else on the page."""
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A row in one run."""

    run: RunRecord
    row: RowRecord
    outcome: str
    """One of OUTCOMES."""
    prompt: Prompt | None
    """None where the benchmark's rules are not known."""
    problem: str
    """Why they are not."""
    judge_prompt: str | None
    """As it would be filled today; None where no judge is asked about this answer."""
    judges: tuple[JudgeWord, ...]
    calls: tuple[ShownCall, ...]

    @property
    def end(self) -> str:
        return end_of(self.row.completion) if self.row.completion else ""

    @property
    def cost(self) -> str:
        cost = words.money(self.row.cost_usd)
        if not self.row.cost_unknown:
            return cost
        return "unknown" if self.row.cost_usd == 0 else f"over {cost}"

    @property
    def details(self) -> list[tuple[str, Json]]:
        """What the scorer wants a reader to see, without what is drawn."""
        detail = self.row.score.detail if self.row.score else {}
        return [(name, value) for name, value in detail.items() if name not in DRAWN]

    @property
    def predicted(self) -> list[Box] | None:
        return boxes_of(self.row.score.detail, "predicted") if self.row.score else None


def read_side(browser: Browser, run: RunRecord, detail: RowDetail, rules: RunRules) -> Side:
    row = detail.record
    known = rules.rules
    judge_prompt = None
    if known is not None and row.answer is not None:
        item = known.benchmark.judge_item(row.sample, row.answer)
        judge_prompt = None if item is None else known.fill(item).text
    verdicts = browser.verdicts(run, row.key)
    return Side(
        run=run,
        row=row,
        outcome=outcome_of(row),
        prompt=None if known is None else known.benchmark.prompt(row.sample),
        problem=rules.problem,
        judge_prompt=judge_prompt,
        judges=tuple(_judge_word(verdict, run, judge_prompt) for verdict in verdicts),
        calls=tuple(_shown_calls(row, detail.calls, verdicts)),
    )


def outcome_of(row: RowRecord) -> str:
    """One of OUTCOMES."""
    if row.status is Status.SCORED and row.score is not None:
        return "right" if row.score.correct else "wrong"
    return row.status.value


def truth_of(side: Side, rules: RunRules) -> list[Box] | None:
    """The true boxes of a row; None where it is not about boxes."""
    if side.row.score is not None:
        return boxes_of(side.row.score.detail, "truth")
    return None if rules.rules is None else true_boxes(rules.rules.benchmark, side.row.sample)


def image_notes(row: RowRecord, index: int, shown: PreparedImage) -> Iterator[str]:
    """What was done to an image to show and to send it, and whether it is still the same."""
    if shown.converted and shown.converted == row.image_note:
        yield f"shown and sent converted: {shown.converted}"
    else:
        if shown.converted:
            yield f"shown converted: {shown.converted}"
        if row.image_note:
            yield f"sent converted: {row.image_note}"
    if row.image_scale != 1:
        yield f"sent at {row.image_scale:.4g} of its size"
    sent = row.image_sha256[index * SHA_DIGITS : (index + 1) * SHA_DIGITS]
    if sent and sent != shown.original_sha256:
        yield "this is not the image that was sent: its bytes are other ones now"


def end_of(reply: Completion) -> str:
    """How a reply ended, with the endpoint's own word for it."""
    word, raw = FINISH_WORDS[reply.finish], reply.finish_raw
    return word if raw in ("", reply.finish.value) else f"{word}, in its words “{raw}”"


def _judge_word(verdict: RowVerdict, run: RunRecord, prompt: str | None) -> JudgeWord:
    same = None
    if prompt is not None and verdict.prompt_sha256:
        same = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest() == verdict.prompt_sha256
    decides = run.judge is not None and run.judge.name == verdict.judge
    return JudgeWord(verdict=verdict, decides=decides, of_this_prompt=same)


def _shown_calls(
    row: RowRecord, calls: Sequence[StoredCall], verdicts: Sequence[RowVerdict]
) -> Iterator[ShownCall]:
    elsewhere = {verdict.reply for verdict in verdicts}
    if row.completion is not None:
        elsewhere.add(row.completion.text)
    for call in calls:
        outcome = call.attempt.outcome
        text = outcome.text if isinstance(outcome, Completion) else ""
        yield ShownCall(
            call=call,
            said=_said(outcome),
            text="" if text in elsewhere else text,
            failed=isinstance(outcome, Failure),
        )


def _said(outcome: Completion | Failure) -> str:
    if isinstance(outcome, Completion):
        return f"reply: {end_of(outcome)}"
    status = f" (HTTP {outcome.status})" if outcome.status else ""
    return f"{outcome.kind.value}{status}: {outcome.message}"
