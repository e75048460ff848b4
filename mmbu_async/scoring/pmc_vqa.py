"""PMC-VQA: the prompt, the choices of the CSV, and the letter that a reply commits to.

The rules are those of evalscope 1.14.1, so that scores can be compared with its own; they are kept where a
reader would do otherwise:

* A marker is `ANSWER:`, in any case, with an ASCII colon and perhaps asterisks. Markers are tried from the
  last to the first; one with no label after it is passed over, so an echoed `ANSWER: [LETTER]` does no harm.
* After a marker the label may stand in brackets or mathematics: `(B)`, `$B$`, `\\boxed{B}`. It must be upper
  case. Prose after it ends it (`B, not C` is B); labels after it join it, and two are no single answer.
* A reply without a label at any marker falls back to its last upper-case letter, of whatever word: `This
  shows a Dog` is D. That is a lenient guess: `how` says so, and reports give it apart.

The text is read as it is handed in: the rules know no think blocks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mmbu_async.model import Answer
from mmbu_async.scoring.letters import letters

MARKER = "marker"
FALLBACK = "fallback"
"""The lenient guess: the last upper-case letter of the reply."""
NONE = "none"

_MATHEMATICS = r"(?:(?:\$++|\\\(|\\(?:boxed|fbox|text|textbf|mathbf|mathrm)\s*+\{)\s*+)*+"
_SEPARATORS = ",，/、"
_MARKER = re.compile(rf"ANSWER\s*+:\s*+\**+\s*+{_MATHEMATICS}", re.IGNORECASE)
_MARKER_CHINESE = re.compile(rf"答案\s*+[:：]\s*+\**+\s*+{_MATHEMATICS}")
_IN_BRACKETS = re.compile(rf"[(\[（【]\s*+([A-Za-z\d](?:\s*+[{_SEPARATORS}]\s*+[A-Za-z\d])*+)\s*+[)\]）】]")
_BARE = re.compile(rf"([A-Za-z\d][A-Za-z\d {_SEPARATORS}]*+)")
_BARE_CHINESE = re.compile(rf"([A-Za-z0-9][A-Za-z0-9 {_SEPARATORS}]*+)")
_WORD = re.compile(r"[A-Za-z\d]++")
_CONNECTORS = frozenset({"and", "or"})
_SET_OFF_CONNECTOR = re.compile(r"\s++(?:and|or)\s++", re.IGNORECASE)
_BETWEEN_LABELS = str.maketrans("", "", f" {_SEPARATORS}")
_FIELD = re.compile(r"\{(letters|question|choices)\}")


def prompt_text(template: str, question: str, choices: Sequence[str]) -> str:
    """The template with its `{letters}`, `{question}` and `{choices}` filled in, in one pass: braces in the
    values stay."""
    labels = letters(len(choices))
    values = {
        "letters": ",".join(labels),
        "question": question,
        "choices": "\n".join(f"{letter}) {text}" for letter, text in zip(labels, choices, strict=True)),
    }
    return _FIELD.sub(lambda field: values[field[1]], template)


def without_prefix(choice: str, letter: str) -> str:
    """A cell such as ` B:text ` without its own letter and colon; any other letter stays."""
    text = choice.strip()
    before, colon, after = text.partition(":")
    return after.strip() if colon and before.rstrip() == letter else text


def read_answer(reply: str, choices: int, *, multiple: bool = False) -> Answer:
    """The letter that a reply commits to, of the letters of 2 to 26 choices; '' where it names none.

    With `multiple` several letters may be right; they come sorted, `AC`.
    """
    allowed = frozenset(letters(choices))
    labels = _after_a_marker(reply, _MARKER, _BARE, allowed)
    if not labels:
        return _last_capital(reply, allowed)
    return Answer(text=_several(labels, allowed) if multiple else _single(labels, allowed), how=MARKER)


def read_answer_chinese(reply: str, choices: int) -> Answer:
    """The same under the Chinese prompt, whose marker is `答案:` or `答案：`."""
    allowed = frozenset(letters(choices))
    labels = _after_a_marker(reply, _MARKER_CHINESE, _BARE_CHINESE, allowed)
    return Answer(text=_single(labels, allowed), how=MARKER) if labels else _last_capital(reply, allowed)


def _last_capital(reply: str, allowed: frozenset[str]) -> Answer:
    last = next((letter for letter in reversed(reply) if letter.isupper()), "")
    return Answer(text=last, how=FALLBACK) if last in allowed else Answer(text="", how=NONE)


def _after_a_marker(
    reply: str, marker: re.Pattern[str], bare: re.Pattern[str], allowed: frozenset[str]
) -> str:
    """The labels after the last marker that has any, as written; '' where no marker has."""
    for found in reversed(list(marker.finditer(reply))):
        for pattern in (_IN_BRACKETS, bare):
            written = pattern.match(reply, found.end())
            if written and (labels := _leading_labels(written[1], allowed)):
                return labels
    return ""


def _leading_labels(written: str, allowed: frozenset[str]) -> str:
    """What stands before the first word that is no label; an `and` between two labels does not end them."""
    end = 0
    connector = False
    for word in _WORD.finditer(written):
        if allowed.issuperset(word[0]):
            end = word.end()
            connector = False
        elif end and not connector and word[0].lower() in _CONNECTORS:
            connector = True
        else:
            break
    return written[:end]


def _single(labels: str, allowed: frozenset[str]) -> str:
    return labels if labels in allowed else ""


def _several(labels: str, allowed: frozenset[str]) -> str:
    letters = set(_SET_OFF_CONNECTOR.sub(",", labels).translate(_BETWEEN_LABELS))
    return "".join(sorted(letters)) if letters <= allowed else ""
