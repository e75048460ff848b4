"""The simulator as a judge: it applies the two gates of the prompt it was sent, by rule.

It knows the prompt only as text that arrives, as a real judge does. What stands in the fields is data: a
model answer that gives orders, or that holds field names or verdicts, is compared like any other.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_LABELS = "Valid labels are the paired closed-VQA options for this same question:\n"
_RULES = "\n\nOutput rules:\n"
_QUESTION = "\n\nQuestion/context:\n"
_TRUE = "\n\nTRUE ANSWER:\n"
_MODEL = "\n\nMODEL ANSWER:\n"
_END = "\n\nNow output exactly one line:\nRationale:"

_HEDGES = re.compile(
    r"\b(?:or|either|possibly|perhaps|maybe|probably|cannot|can't|unsure|uncertain|unclear|versus|vs)\b|/"
)

_PUNCTUATION = re.compile(r"(?<!\d)\.|\.(?!\d)|(?<=\w)-|-(?!\d)|[^\w\s.%+-]|_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the prompt asks about."""

    labels: tuple[str, ...]
    true_answer: str
    model_answer: str


def read(prompt: str) -> Case | None:
    """The fields of a filled prompt; None when it is no such prompt.

    The model answer is the last field, and the prompt ends in fixed words: so the ends are taken from the
    outside in. The true answer ends at the *first* mark after it, for the model writes what comes behind.
    """
    start = prompt.find(_LABELS)
    end = prompt.rfind(_END)
    if start < 0 or end < 0:
        return None
    rules = prompt.find(_RULES, start)
    question = prompt.find(_QUESTION, rules)
    true_at = prompt.find(_TRUE, question)
    model_at = prompt.find(_MODEL, true_at)
    if min(rules, question, true_at, model_at) < 0 or model_at + len(_MODEL) > end:
        return None
    lines = prompt[start + len(_LABELS) : rules].splitlines()
    return Case(
        labels=tuple(line.removeprefix("- ") for line in lines if line.strip()),
        true_answer=prompt[true_at + len(_TRUE) : model_at],
        model_answer=prompt[model_at + len(_MODEL) : end],
    )


def judge(prompt: str) -> str:
    """One line: a rationale and the verdict."""
    case = read(prompt)
    if case is None:
        return "Rationale: The prompt names no answer to grade. [RESULT] 0"
    reason, right = _decide(case)
    return f"Rationale: {reason} [RESULT] {int(right)}"


def _decide(case: Case) -> tuple[str, bool]:
    answer = normal(case.model_answer)
    if not answer:
        return "Empty; no committed answer.", False
    truth = _set(case.true_answer, case.labels)
    labels = {normal(label) for label in case.labels}
    if case.model_answer.rstrip().endswith("?") and not any(label.endswith("?") for label in case.labels):
        return "A question, not a commitment.", False
    if truth == {answer}:
        return f"States the true label '{answer}'.", True
    if answer in labels:
        return f"States '{answer}', which is another label.", False
    parts = _set(case.model_answer, case.labels)
    if len(parts) > 1 and parts <= labels:
        # Gate 1 asks for one concept; where the truth itself names several labels, it is their set.
        if len(truth) > 1:
            return f"States {len(parts)} labels of the set.", parts == truth
        return "Hedged across several labels.", False
    if _HEDGES.search(case.model_answer.casefold()):
        return "Hedged; no single committed label.", False
    return "Not a label of the set.", False


def normal(text: str) -> str:
    """Case, punctuation, white space and width folded away; minus signs and decimal points kept."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_PUNCTUATION.sub(" ", folded).split())


def _set(answer: str, labels: tuple[str, ...]) -> set[str]:
    """The labels that a comma-separated answer names; a label that holds a comma stays whole."""
    whole = normal(answer)
    if whole in {normal(label) for label in labels}:
        return {whole}
    return {part for part in (normal(piece) for piece in re.split(r"[,;]", answer)) if part}
